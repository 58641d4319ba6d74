#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation
  import Testing

  @Suite("The commands that look into a store")
  struct StoreCommandTests {
    @Test("dump prints every record, and a JSON reader reads back the same bytes")
    func dump() throws {
      let folder = try TemporaryFolder()
      let store = try SampleStore.make(in: folder)
      let outcome = try Tool.run(["dump", store], in: folder)
      #expect(outcome.status == 0)
      #expect(outcome.errors.isEmpty)
      #expect(try DumpedRecord.read(outcome.lines) == SampleStore.records)
    }

    @Test("dump has the documented fields, in their order, and no others")
    func fields() throws {
      let folder = try TemporaryFolder()
      let store = try SampleStore.make(in: folder)
      let lines = try Tool.run(["dump", store], in: folder).lines
      #expect(
        lines[0] == """
          {"collection":"notes","id":"plain","type":0,"hlc":"1700000000001-0000-node",\
          "payload":"Hello"}
          """)
      #expect(
        lines[8] == """
          {"collection":"notes","id":"signed","type":0,"hlc":"1700000000007-0000-node",\
          "payload":"signed","authorPublicKey64":"AQID","signature64":""}
          """)
    }

    @Test("no control character of a record gets out as it is")
    func controlCharacters() throws {
      let folder = try TemporaryFolder()
      let store = try SampleStore.make(in: folder)
      let dump = try Tool.run(["dump", store], in: folder)
      expectNoControls(dump.output)
      #expect(dump.output.contains(#"\u001b[2J"#))
      #expect(dump.output.contains(#"\u202e"#))
      #expect(dump.output.contains(#"\u009b"#))
      let missing = try Tool.run(["get", store, "a\u{9B}\u{2066}b", "\u{1B}[2J\r\n"], in: folder)
      #expect(missing.status == 3)
      expectNoControls(missing.errors)
      #expect(missing.errors.contains(#"\u{1B}[2J\u{D}\u{A}"#))
      expectNoControls(try Tool.run(["info", "no\u{1B}[0m\u{202E}store"], in: folder).errors)
      expectNoControls(try Tool.run(["\u{1B}[0m"], in: folder).errors)
    }

    private func expectNoControls(_ text: String) {
      let isControl: (UInt32) -> Bool = { code in
        code < 0x20 && code != 0x0A || (0x7F...0x9F).contains(code) || code == 0x061C
          || [0x200E, 0x200F].contains(code) || (0x2028...0x202E).contains(code)
          || (0x2066...0x2069).contains(code)
      }
      #expect(!text.isEmpty)
      #expect(!text.unicodeScalars.contains { isControl($0.value) })
    }

    @Test("dump goes on behind a timestamp, with all of the next run of equal ones")
    func after() throws {
      let folder = try TemporaryFolder()
      let store = try SampleStore.make(in: folder)
      for time in 0...11 {
        let outcome = try Tool.run(
          ["dump", store, "--after", SampleStore.timestamp(time)], in: folder)
        #expect(outcome.status == 0)
        let expected = SampleStore.records.filter {
          HlcComparator.compare($0.hlcTimestamp, SampleStore.timestamp(time)) > 0
        }
        #expect(try DumpedRecord.read(outcome.lines) == expected)
      }
    }

    @Test("dump keeps to a collection, by its bytes, and to a limit")
    func filters() throws {
      let folder = try TemporaryFolder()
      let store = try SampleStore.make(in: folder)
      let composed = try Tool.run(["dump", "--collection=\u{E9}", store], in: folder)
      #expect(try DumpedRecord.read(composed.lines).map(\.id) == ["composed"])
      let unnamed = try Tool.run(["dump", "--collection", "", store], in: folder)
      #expect(try DumpedRecord.read(unnamed.lines) == [SampleStore.records[5]])
      let none = try Tool.run(["dump", "--collection", "none", store], in: folder)
      #expect(none.status == 0)
      #expect(none.output.isEmpty)
      for limit in [0, 1, 5, 12, 100] {
        let limited = try Tool.run(["dump", store, "--limit", "\(limit)"], in: folder)
        #expect(try DumpedRecord.read(limited.lines) == Array(SampleStore.records.prefix(limit)))
      }
      let last = try Tool.run(["dump", store, "--collection", "notes", "--limit", "3"], in: folder)
      #expect(
        try DumpedRecord.read(last.lines)
          == Array(SampleStore.records.filter { $0.collection == "notes" }.prefix(3)))
    }

    @Test("dump pages through a store that is larger than a page")
    func pages() throws {
      let folder = try TemporaryFolder()
      let records = SampleStore.manyRecords()
      let store = try SampleStore.make(in: folder, records)
      let outcome = try Tool.run(["dump", store], in: folder)
      #expect(try DumpedRecord.read(outcome.lines) == records)
    }

    @Test(
      "a cursor that is no timestamp of the store is a usage error",
      arguments: [
        "nonsense", "2023-11-14T22:13:20.544Z-0000-node", "",
      ])
    func cursors(text: String) throws {
      let folder = try TemporaryFolder()
      let store = try SampleStore.make(in: folder)
      let outcome = try Tool.run(["dump", store, "--after", text], in: folder)
      #expect(outcome.status == 2)
      #expect(outcome.output.isEmpty)
      #expect(outcome.errors.contains("airdb-log dump"))
    }

    @Test("get prints one record, deletions too", arguments: SampleStore.records.indices)
    func get(index: Int) throws {
      let folder = try TemporaryFolder()
      let store = try SampleStore.make(in: folder)
      let record = SampleStore.records[index]
      let outcome = try Tool.run(["get", "--", store, record.collection, record.id], in: folder)
      #expect(outcome.status == 0)
      #expect(try DumpedRecord.read(outcome.lines) == [record])
    }

    @Test("a record that is not there, and a store that is not there, are exit code 3")
    func notFound() throws {
      let folder = try TemporaryFolder()
      let store = try SampleStore.make(in: folder)
      let missing = try Tool.run(["get", store, "notes", "e\u{301}"], in: folder)
      #expect(missing.status == 3)
      #expect(missing.output.isEmpty)
      let empty = try folder.newFolder("empty")
      for path in [folder.path("nothing"), empty, "\(store)/LOCK"] {
        for command in [
          ["info", path], ["dump", path], ["verify", path], ["get", path, "a", "b"],
        ] {
          let outcome = try Tool.run(command, in: folder)
          #expect(outcome.status == 3, "\(command)")
          #expect(outcome.output.isEmpty)
          #expect(outcome.errors.hasPrefix("airdb-log: "))
        }
      }
      #expect(try folder.names(empty).isEmpty)
    }

    @Test("info shows the figures of the store")
    func info() throws {
      let folder = try TemporaryFolder()
      let store = try SampleStore.make(in: folder)
      let outcome = try Tool.run(["info", store], in: folder)
      #expect(outcome.status == 0)
      let rows = rows(outcome)
      #expect(rows["Store"] == store)
      #expect(rows["Timestamps"] == "hybrid")
      #expect(rows["Latest timestamp"] == SampleStore.timestamp(10))
      #expect(rows["Records"] == "12 in the log")
      let deletions = SampleStore.records.count { $0.type == .delete }
      #expect(rows["Live"] == "12 newest versions, among them \(deletions) deletions")
      #expect(rows["Deletion types"] == "2")
      #expect(rows["Other files"]?.hasPrefix("0 ") == true)
      let manifest = try #require(folder.contents(store)["MANIFEST"])
      #expect(rows["Manifest"]?.hasSuffix(" \(manifest.count) bytes") == true)
    }

    private func rows(_ outcome: Tool.Outcome) -> [String: String] {
      var rows: [String: String] = [:]
      for line in outcome.lines {
        rows[line.prefix(18).trimmingCharacters(in: .whitespaces)] =
          line.dropFirst(18).trimmingCharacters(in: .whitespaces)
      }
      return rows
    }

    @Test("a store whose timestamps are opaque texts opens without being told so")
    func opaqueTimestamps() throws {
      let folder = try TemporaryFolder()
      var configuration = Configuration()
      configuration.timestampFormat = .utf8Order
      var record = SampleStore.records[0]
      record.hlcTimestamp = "opaque\u{1B}[0m"
      let store = try SampleStore.make(in: folder, [record], configuration: configuration)
      let info = try Tool.run(["info", store], in: folder)
      #expect(info.status == 0)
      #expect(rows(info)["Latest timestamp"] == #"opaque\u{1B}[0m"#)
      let dump = try Tool.run(["dump", store, "--after", "a"], in: folder)
      #expect(try DumpedRecord.read(dump.lines) == [record])
    }

    @Test("a store with deletion types of its own opens without being told so")
    func deletionValues() throws {
      let folder = try TemporaryFolder()
      var configuration = Configuration()
      configuration.deletionValues = [2, 7, -1]
      let store = try SampleStore.make(in: folder, configuration: configuration)
      let info = rows(try Tool.run(["info", store], in: folder))
      #expect(info["Deletion types"] == "-1, 2, 7")
      let outcome = try Tool.run(["dump", store], in: folder)
      #expect(outcome.status == 0)
      #expect(try DumpedRecord.read(outcome.lines) == SampleStore.records)
    }

    @Test("a store of a newer format is refused with exit code 4")
    func newerFormat() throws {
      let folder = try TemporaryFolder()
      let store = try SampleStore.make(in: folder)
      let manifest = try #require(FileHandle(forUpdatingAtPath: "\(store)/MANIFEST"))
      try manifest.seek(toOffset: 12)
      try manifest.write(contentsOf: [99])
      let outcome = try Tool.run(["info", store], in: folder)
      #expect(outcome.status == 4)
      #expect(outcome.errors.contains("newer"))
    }

    @Test("the commands write nothing, and read beside a live writer")
    func readOnly() throws {
      let folder = try TemporaryFolder()
      let path = folder.path("live")
      let store = try ChangeStore(at: path)
      try store.applyAndWait(SampleStore.records)
      let before = try folder.contents(path)
      for command in [
        ["info", path], ["dump", path], ["verify", path], ["get", path, "notes", "plain"],
      ] {
        #expect(try Tool.run(command, in: folder).status == 0, "\(command)")
      }
      #expect(try folder.contents(path) == before)
      try store.close()
    }
  }
#endif
