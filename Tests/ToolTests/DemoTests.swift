#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation
  import Testing

  @Suite(
    "The demo on repositories made for it",
    .enabled(if: GitFixture.git != nil, "There is no git in PATH."))
  struct DemoTests {
    /// Runs the demo on a repository, with a temporary directory that must be empty afterwards.
    private func demo(
      _ arguments: [String], in folder: TemporaryFolder, environment: [String: String?] = [:],
      currentFolder: String? = nil
    ) throws -> Tool.Outcome {
      let temporary = try folder.newFolder("temporary")
      let outcome = try Tool.run(
        ["demo"] + arguments, in: folder,
        environment: environment.merging(["TMPDIR": temporary]) { $1 }, currentFolder: currentFolder
      )
      #expect(try folder.names(temporary).isEmpty)
      return outcome
    }

    private func expectSuccess(
      _ outcome: Tool.Outcome, commits: String, records: String, files: String, deletions: String,
      sourceLocation: SourceLocation = #_sourceLocation
    ) {
      #expect(outcome.status == 0, "\(outcome.errors)", sourceLocation: sourceLocation)
      #expect(outcome.errors.isEmpty, sourceLocation: sourceLocation)
      for part in [
        "Replayed    \(commits), \(records) in ",
        "Compared    \(files) of git's tree: all equal; and \(deletions)\n",
        "Verified    ",
      ] {
        #expect(outcome.output.contains(part), sourceLocation: sourceLocation)
      }
    }

    private func expectEverything(
      _ outcome: Tool.Outcome, sourceLocation: SourceLocation = #_sourceLocation
    ) {
      expectSuccess(
        outcome, commits: "9 commits", records: "20 records", files: "9 files",
        deletions: "3 deletions", sourceLocation: sourceLocation)
      #expect(outcome.output.contains("Synced      12 records in "), sourceLocation: sourceLocation)
      #expect(
        outcome.lines.count { $0.hasPrefix("Killed      ") } == 3, sourceLocation: sourceLocation)
    }

    @Test("it replays all that histories have, and the store ends in git's tree")
    func everything() throws {
      let folder = try TemporaryFolder()
      let repository = try GitFixture(in: folder, .everything)
      let kept = folder.path("kept ü")
      expectEverything(try demo(["--repository", repository.path, "--keep", kept], in: folder))

      let dump = try Tool.run(["dump", "\(kept)/replayed"], in: folder)
      let records = try DumpedRecord.read(dump.lines)
      let live = records.filter { $0.type != .delete }
      for (key, payload) in History.everythingsEnd {
        let found = live.filter { $0.collection == key[0] && $0.id == key[1] }
        #expect(found.map(\.payload) == [payload], "\(key)")
      }
      // Two spellings that `String` would take for one.
      for (id, text) in [("\u{E9}.txt", "composed"), ("e\u{301}.txt", "decomposed")] {
        let found = live.filter { $0.id.utf8.elementsEqual(id.utf8) }
        #expect(found.map(\.payload) == [Data(text.utf8)])
      }
      #expect(live.count == History.everythingsEnd.count + 2)
      #expect(
        Set(records.filter { $0.type == .delete }.map(\.id)) == [
          "src/a b.txt", "bin/data", "src/empty",
        ])

      let synced = try Tool.run(["dump", "\(kept)/synced"], in: folder)
      #expect(synced.output == dump.output)
      for store in ["replayed", "synced", "killed"] {
        #expect(try Tool.run(["verify", "\(kept)/\(store)"], in: folder).status == 0)
      }
      #expect(try folder.names(kept) == ["killed", "replayed", "synced"])
    }

    @Test("its stamps are commit time, counter and author, and increase along the history")
    func stamps() throws {
      let folder = try TemporaryFolder()
      let repository = try GitFixture(in: folder, .everything)
      let kept = folder.path("kept")
      let outcome = try demo(["--repository", repository.path, "--keep", kept], in: folder)
      try #require(outcome.status == 0)
      let dump = try Tool.run(["dump", "\(kept)/replayed"], in: folder)
      let records = try DumpedRecord.read(dump.lines)
      let stamps = Dictionary(
        uniqueKeysWithValues: records.map { (Array($0.id.utf8), $0.hlcTimestamp) })
      func stamp(_ id: String) throws -> [Substring] {
        try #require(stamps[Array(id.utf8)]).split(separator: "-")
      }
      #expect(
        try stamps.values.allSatisfy {
          try /\d{13}-[0-9a-f]{4}-[0-9a-f]{16}/.wholeMatch(in: $0) != nil
        })
      // The first two commits took counters 0...5 of this second; the third one's clock had gone back.
      #expect(try stamp("src/a b.txt")[0] == "1000000000000")
      #expect(
        try Set(["bin/data", "src/a b.txt", "lib/ü/a b.txt"].map { try stamp($0)[1] })
          == ["0006", "0007", "0008"])
      #expect(try stamp("README.md").prefix(2) == ["1000000700000", "0000"])
      #expect(try stamp("README.md")[2] == stamp("link")[2], "Both are Ada's.")
      let order = records.map(\.hlcTimestamp)
      #expect(zip(order, order.dropFirst()).allSatisfy { HlcComparator.compare($0, $1) < 0 })
    }

    @Test("it takes the repository of the current folder, whatever variables of git's say")
    func currentFolder() throws {
      let folder = try TemporaryFolder()
      let repository = try GitFixture(in: folder, .everything)
      expectEverything(
        try demo(
          [], in: folder, environment: ["GIT_DIR": "/nowhere"], currentFolder: repository.path)
      )
    }

    @Test("from a folder inside a work tree it replays the whole repository")
    func subfolder() throws {
      let folder = try TemporaryFolder()
      let repository = try GitFixture(in: folder, .everything)
      try FileManager.default.createDirectory(
        atPath: "\(repository.path)/src", withIntermediateDirectories: false)
      expectEverything(try demo(["--repository", "\(repository.path)/src"], in: folder))
    }

    @Test("a bare repository is one like others")
    func bare() throws {
      let folder = try TemporaryFolder()
      let repository = try GitFixture(in: folder, .everything, isBare: true)
      expectEverything(try demo(["--repository", repository.path], in: folder))
    }

    @Test("the user's settings of git change nothing")
    func settings() throws {
      let folder = try TemporaryFolder()
      let repository = try GitFixture(in: folder, .everything)
      let settings = folder.path("settings")
      try """
      [log]
        showRoot = false
        diffMerges = combined
        showSignature = true
        decorate = full
        date = relative
      [diff]
        renames = copies
        relative = true
        ignoreSubmodules = all
        noprefix = true
      [format]
        pretty = oneline
      [color]
        ui = always
      [core]
        abbrev = 4
        quotePath = true
        pager = false
      """.write(toFile: settings, atomically: false, encoding: .utf8)
      try FileManager.default.createDirectory(
        atPath: "\(repository.path)/src", withIntermediateDirectories: false)
      expectEverything(
        try demo(
          ["--repository", "\(repository.path)/src"], in: folder,
          environment: ["GIT_CONFIG_GLOBAL": settings]))
    }

    @Test("with a limit it ends in the tree of that commit")
    func limit() throws {
      let folder = try TemporaryFolder()
      let repository = try GitFixture(in: folder, .everything)
      let outcome = try demo(["--repository", repository.path, "--limit", "2"], in: folder)
      expectSuccess(
        outcome, commits: "2 commits", records: "6 records", files: "4 files",
        deletions: "0 deletions")
      expectEverything(try demo(["--repository", repository.path, "--limit", "99"], in: folder))
    }

    @Test("a commit of many files, and contents larger than a pipe, pass through")
    func large() throws {
      let folder = try TemporaryFolder()
      var history = History()
      history.commit(
        at: 1_500_000_000, (0..<600).map { .text("folder \($0 % 7)/\($0)", "content \($0)") })
      history.commit(
        at: 1_500_000_001,
        (0..<4).map { .write("large/\($0)", [UInt8](repeating: UInt8($0), count: 300_000)) })
      history.commit(at: 1_500_000_001, (0..<300).map { .delete("folder \($0 % 7)/\($0)") })
      let repository = try GitFixture(in: folder, history)
      expectSuccess(
        try demo(["--repository", repository.path], in: folder), commits: "3 commits",
        records: "904 records", files: "304 files", deletions: "300 deletions")
    }

    @Test("a history without a file is a history")
    func emptyCommits() throws {
      let folder = try TemporaryFolder()
      var history = History()
      history.commit(at: 1_500_000_000, [])
      let repository = try GitFixture(in: folder, history)
      expectSuccess(
        try demo(["--repository", repository.path], in: folder), commits: "1 commit",
        records: "0 records", files: "0 files", deletions: "0 deletions")
    }

    @Test("for a content that the clone lacks its id stands in, and that is said")
    func missingContent() throws {
      let folder = try TemporaryFolder()
      let repository = try GitFixture(in: folder, .everything)
      let object = try repository.git(["rev-parse", "main~8:bin/data"])
      try FileManager.default.removeItem(
        atPath: "\(repository.path)/.git/objects/\(object.prefix(2))/\(object.dropFirst(2))")
      let outcome = try demo(["--repository", repository.path], in: folder)
      expectEverything(outcome)
      #expect(
        outcome.output.contains("Note        1 content replaced by the id: not in this clone"))
    }
  }
#endif
