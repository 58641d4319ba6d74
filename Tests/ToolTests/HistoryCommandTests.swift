#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation
  import Testing

  @Suite("The command history")
  struct HistoryCommandTests {
    /// A line of `history --json`, read by a JSON reader that is not the tool's.
    private struct Line: Decodable {
      struct Change: Decodable {
        var collection: String
        var id: String
        var type: Int
        var hlc: String
      }

      var position: String?
      var sequence: UInt64?
      var date: Int64?
      var author: String?
      var changes: [Change]?
      var next: String?
      var isLast: Bool?
    }

    private static let authors = [
      "mine", "peer", "", "caf\u{E9}", "cafe\u{301}", "\u{1B}[2J\n\u{9B}",
    ]

    /// A commit for each sample record, by the authors in turn.
    private static func makeStore(in folder: TemporaryFolder) throws -> (String, [Position]) {
      let path = folder.path("store")
      let store = try ChangeStore(at: path)
      var positions: [Position] = []
      for (index, record) in SampleStore.records.enumerated() {
        let author = authors[index % authors.count]
        let result = try store.applyAndWait([record], author: author)
        positions.append(try #require(result.position))
      }
      try store.close()
      return (path, positions)
    }

    private static func read(_ outcome: Tool.Outcome) throws -> (commits: [Line], end: Line) {
      #expect(outcome.status == 0)
      #expect(outcome.errors.isEmpty)
      var lines = try outcome.lines.map {
        try JSONDecoder().decode(Line.self, from: Data($0.utf8))
      }
      let end = try #require(lines.last)
      lines.removeLast()
      #expect(end.position == nil && end.isLast != nil)
      return (lines, end)
    }

    @Test("every commit is there, and a JSON reader reads back the same bytes")
    func json() throws {
      let folder = try TemporaryFolder()
      let (store, positions) = try Self.makeStore(in: folder)
      let (commits, end) = try Self.read(Tool.run(["history", store, "--json"], in: folder))
      #expect(commits.map(\.position) == positions.map { "\($0)" })
      #expect(commits.map(\.sequence) == positions.map(\.sequence))
      for (index, commit) in commits.enumerated() {
        let record = SampleStore.records[index]
        let change = try #require(commit.changes?.first)
        #expect(commit.changes?.count == 1)
        #expect(Array((commit.author ?? "-").utf8) == Array(Self.authors[index % 6].utf8))
        #expect(Array(change.collection.utf8) == Array(record.collection.utf8))
        #expect(Array(change.id.utf8) == Array(record.id.utf8))
        #expect(change.type == record.type.rawValue && change.hlc == record.hlcTimestamp)
      }
      #expect(end.isLast == true && end.next == positions.last.map { "\($0)" })
      let dates = commits.compactMap(\.date)
      #expect(dates == dates.sorted() && dates.count == commits.count)
    }

    @Test("what is for people names position, author and change, without control characters")
    func text() throws {
      let folder = try TemporaryFolder()
      let (store, positions) = try Self.makeStore(in: folder)
      let outcome = try Tool.run(["history", store], in: folder)
      #expect(outcome.status == 0)
      // A line a commit, a line a change, and the end.
      #expect(outcome.lines.count == 2 * positions.count + 1)
      #expect(outcome.lines[0].hasPrefix("\(positions[0])  20"))
      #expect(outcome.lines[0].hasSuffix(#"by "mine""#))
      #expect(outcome.lines[1] == #"    insert  1700000000001-0000-node  "notes"  "plain""#)
      #expect(outcome.lines[4].hasSuffix("no author"))
      #expect(outcome.lines[10].hasSuffix(#"by "\u{1B}[2J\u{A}\u{9B}""#))
      #expect(outcome.lines.last == "The end; next: --after \(positions[positions.count - 1])")
      let isControl = { (code: UInt32) in
        code < 0x20 && code != 0x0A || (0x7F...0x9F).contains(code)
      }
      #expect(!outcome.output.unicodeScalars.contains { isControl($0.value) })
    }

    @Test("it goes on behind any position, up to a limit, and nothing is shown twice")
    func after() throws {
      let folder = try TemporaryFolder()
      let (store, positions) = try Self.makeStore(in: folder)
      var shown: [String] = []
      var after: [String] = []
      while true {
        let (commits, end) = try Self.read(
          Tool.run(["history", store, "--json", "--limit", "5"] + after, in: folder))
        #expect(commits.count <= 5)
        shown += commits.compactMap(\.position)
        after = ["--after", try #require(end.next)]
        if end.isLast == true { break }
      }
      #expect(shown == positions.map { "\($0)" })
    }

    @Test("it filters by author and collection, by their bytes")
    func filters() throws {
      let folder = try TemporaryFolder()
      let (store, positions) = try Self.makeStore(in: folder)
      for (number, author) in Self.authors.enumerated() {
        for option in ["--author", "--not-author"] {
          let (commits, end) = try Self.read(
            Tool.run(["history", store, "--json", option, author], in: folder))
          let expected = positions.indices.filter { ($0 % 6 == number) == (option == "--author") }
          #expect(commits.map(\.position) == expected.map { "\(positions[$0])" })
          // Also behind what was left out.
          #expect(end.next == positions.last.map { "\($0)" })
        }
      }
      for collection in ["notes", "e\u{301}", "\u{E9}", "", "none"] {
        let (commits, _) = try Self.read(
          Tool.run(["history", store, "--json", "--collection", collection], in: folder))
        let expected = SampleStore.records.indices.filter {
          Array(SampleStore.records[$0].collection.utf8) == Array(collection.utf8)
        }
        #expect(commits.map(\.position) == expected.map { "\(positions[$0])" })
      }
    }

    @Test("it begins at a date")
    func from() throws {
      let folder = try TemporaryFolder()
      let (store, positions) = try Self.makeStore(in: folder)
      for (date, count) in [
        ("1999-01-01", positions.count), ("1999-01-01T12:00:00Z", positions.count),
        ("1999-01-01T12:00:00.250Z", positions.count), ("9999-01-01", 0),
      ] {
        let (commits, _) = try Self.read(
          Tool.run(["history", store, "--json", "--from", date], in: folder))
        #expect(commits.count == count, "\(date)")
      }
    }

    @Test("an empty store says so")
    func empty() throws {
      let folder = try TemporaryFolder()
      let path = folder.path("empty")
      try ChangeStore(at: path).close()
      #expect(try Tool.run(["history", path], in: folder).lines == ["There is no commit."])
      let (commits, end) = try Self.read(Tool.run(["history", path, "--json"], in: folder))
      #expect(commits.isEmpty && end.next == nil && end.isLast == true)
    }

    @Test("a position that does not fit is refused, with advice")
    func positions() throws {
      let folder = try TemporaryFolder()
      let (store, positions) = try Self.makeStore(in: folder)
      let own = "\(positions[2])".split(separator: ".")
      let wrong = [
        "\(String(repeating: "0", count: 32)).\(own[1]).\(own[2]).0", "\(own[0]).ffffffffff.0.0",
        "\(own[0]).\(own[1]).0.0",
      ]
      for position in wrong {
        let outcome = try Tool.run(["history", store, "--after", position], in: folder)
        #expect(outcome.status == 4)
        #expect(outcome.output.isEmpty)
        #expect(outcome.errors.contains("--after"))
      }
    }

    @Test("a copy that is adopted refuses the positions of the original, and else is the same")
    func adopt() throws {
      let folder = try TemporaryFolder()
      let (store, positions) = try Self.makeStore(in: folder)
      let copy = folder.path("copy")
      try FileManager.default.copyItem(atPath: store, toPath: copy)
      let outcome = try Tool.run(["adopt", copy], in: folder)
      #expect(outcome.status == 0)
      #expect(outcome.errors.isEmpty)
      let identity = try #require(outcome.lines.first?.split(separator: " ")[3])
      #expect(identity != positions[0].storeId)
      #expect(try Tool.run(["info", copy], in: folder).output.contains(identity))
      #expect(try Tool.run(["verify", copy], in: folder).status == 0)
      let dumps = try [store, copy].map { try Tool.run(["dump", $0], in: folder).output }
      #expect(dumps[0] == dumps[1])
      let old = ["--after", "\(positions[3])"]
      #expect(try Tool.run(["history", copy] + old, in: folder).status == 4)
      #expect(try Tool.run(["history", store] + old, in: folder).status == 0)
      let (commits, end) = try Self.read(Tool.run(["history", copy, "--json"], in: folder))
      #expect(commits.count == positions.count && end.next?.hasPrefix(identity) == true)
      let nothing = try Tool.run(["adopt", folder.path], in: folder)
      #expect(nothing.status == 3)
      #expect(nothing.errors.contains("MANIFEST"))
      #expect(!(try folder.names(folder.path).contains("LOCK")))
      let open = try ChangeStore(at: copy)
      #expect(try Tool.run(["adopt", copy], in: folder).status == 4)
      try open.close()
    }

    @Test(
      "what is not called as the help says is a usage error",
      arguments: [
        ["--after", "x"], ["--after", "1.2.3.4"], ["--from", "yesterday"],
        ["--from", "2026-13-01"],
        ["--json=yes"], ["--limit", "-1"], ["--limit", "0"], ["--json", "--json"],
        ["--from", "2026-01-01", "--after", "00000000000000000000000000000000.1.2.3"],
      ])
    func usage(options: [String]) throws {
      let folder = try TemporaryFolder()
      let (store, _) = try Self.makeStore(in: folder)
      let outcome = try Tool.run(["history", store] + options, in: folder)
      #expect(outcome.status == 2)
      #expect(outcome.output.isEmpty)
      #expect(outcome.errors.contains("airdb-log help history"))
    }
  }
#endif
