#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation
  import Testing

  @Suite("Records out of a store, and back")
  struct ImportExportTests {
    private func lines(_ records: [ChangeRecord], in folder: TemporaryFolder) throws -> [Substring]
    {
      let store = try SampleStore.make(in: folder, records)
      return try Tool.run(["dump", store], in: folder).lines
    }

    private func write(
      _ text: String, in folder: TemporaryFolder, name: String = "lines"
    ) throws -> String {
      let path = folder.path(name)
      try Data(text.utf8).write(to: URL(fileURLWithPath: path))
      return path
    }

    @Test("what is exported comes back byte for byte", arguments: [false, true])
    func roundTrip(isLarge: Bool) throws {
      let folder = try TemporaryFolder()
      let records = isLarge ? SampleStore.manyRecords() : SampleStore.records
      let store = try SampleStore.make(in: folder, records)
      let file = folder.path("records ü.jsonl")
      let export = try Tool.run(["export", store, file], in: folder)
      #expect(export.status == 0 && export.errors.isEmpty)
      #expect(export.output.hasSuffix("records exported.\n"))
      let dump = try Tool.run(["dump", store], in: folder).output
      #expect(try String(contentsOfFile: file, encoding: .utf8) == dump)

      let copy = folder.path("copy")
      let count = records.count == 2_000 ? "2,000" : "\(records.count)"
      let imported = try Tool.run(["import", "--create", copy, file], in: folder)
      #expect(imported.status == 0 && imported.errors.isEmpty)
      #expect(imported.output == "\(count) records imported.\n")
      let again = try Tool.run(["import", copy, file], in: folder)
      #expect(again.output == "0 records imported; \(count) passed over.\n")
      #expect(try Tool.run(["dump", copy], in: folder).output == dump)
      let opened = try ChangeStore(at: copy)
      #expect(try opened.changes(limit: .max).records == records)
      #expect(try folder.names(folder.path).allSatisfy { !$0.hasSuffix(".partial") })
    }

    @Test("through pipes, and of one collection")
    func pipes() throws {
      let folder = try TemporaryFolder()
      let store = try SampleStore.make(in: folder)
      let copy = folder.path("copy")
      let export = try Tool.process(["export", store, "-", "--collection", "\u{E9}"], in: folder)
      let pipe = Pipe()
      export.standardOutput = pipe
      try export.run()
      let imported = try Tool.run(
        ["import", "--create", copy], in: folder, input: pipe.fileHandleForReading)
      #expect(imported.output == "1 record imported.\n")
      #expect(
        try DumpedRecord.read(Tool.run(["dump", copy], in: folder).lines).map(\.id) == ["composed"])
    }

    @Test("any timestamps, in a store that is made for them")
    func anyTimestamps() throws {
      let folder = try TemporaryFolder()
      var configuration = Configuration()
      configuration.timestampFormat = .utf8Order
      let records = ["a", "b", "z z"].map { text in
        var record = SampleStore.records[0]
        (record.id, record.hlcTimestamp) = (text, text)
        return record
      }
      let store = try SampleStore.make(in: folder, records, configuration: configuration)
      let file = folder.path("lines")
      #expect(try Tool.run(["export", store, file], in: folder).status == 0)
      let refused = try Tool.run(["import", "--create", folder.path("other"), file], in: folder)
      #expect(refused.status == 1 && refused.errors.hasPrefix("line 1: "))
      let copy = folder.path("copy")
      #expect(
        try Tool.run(["import", "--create", "--any-timestamps", copy, file], in: folder).status == 0
      )
      #expect(try DumpedRecord.read(Tool.run(["dump", copy], in: folder).lines) == records)
    }

    @Test("white space, line ends, empty lines, null and the order of fields do not matter")
    func leniency() throws {
      let folder = try TemporaryFolder()
      let file = try write(
        "\r\n  \n { \"hlc\" : \"1700000000001-0-n\",\"type\":-7,\t\"id\":\"\\u00e9\\ud83c\\udf89\\/\\b\\f\","
          + "\"collection\":\"\",\"signature64\":null,\"payload\":null } \r\n\n"
          + #"{"collection":"c","id":"2","type":2,"hlc":"1700000000002-0-n","authorPublicKey64":""}"#,
        in: folder)
      let copy = folder.path("copy")
      #expect(try Tool.run(["import", "--create", copy, file], in: folder).status == 0)
      let found = try ChangeStore(at: copy).changes(limit: 10).records
      #expect(
        found == [
          ChangeRecord(
            id: "\u{E9}🎉/\u{8}\u{C}", collection: "", type: MutationType(rawValue: -7)!,
            payload: Data(), hlcTimestamp: "1700000000001-0-n"),
          ChangeRecord(
            id: "2", collection: "c", type: .delete, payload: Data(),
            hlcTimestamp: "1700000000002-0-n", authorPublicKey: Data()),
        ])
    }

    private static let good = #"{"collection":"c","id":"1","type":0,"hlc":"1700000000001-0-n"}"#

    @Test(
      "a line that is no record is reported, with what is wrong",
      arguments: [
        ("nonsense", "column 1: \"{\" is expected"), ("{", "column 2: a field's name"),
        ("[]", "\"{\" is expected"), (good + "x", "column 63: there is more"),
        ("{}", "the field type is missing"),
        (good.replacing("\"id\":\"1\",", with: ""), "the field id is missing"),
        (good.replacing("\"type\":0,", with: ""), "the field type is missing"),
        (good.replacing("\"id\"", with: "\"Id\""), "column 19: there is no field \"Id\""),
        (good.replacing("\"type\"", with: "\"id\""), "column 28: the field \"id\" is there twice"),
        (good.replacing(":0,", with: ":0.5,"), "a whole number is expected"),
        (good.replacing(":0,", with: ":00,"), "\"00\" is not a whole number"),
        (good.replacing(":0,", with: ":9223372036854775808,"), "is not a whole number of 64 bits"),
        (good.replacing(":0,", with: ":\"0\","), "the field type must be a whole number"),
        (good.replacing(":0,", with: ":null,"), "the field type must be a whole number"),
        (good.replacing("\"1\"", with: "1"), "the field id must be a text"),
        (good.replacing("\"1\"", with: "true"), "a text or a whole number is expected"),
        (good.replacing("\"1\"", with: "\"\\x\""), "an escape that JSON does not have"),
        (good.replacing("\"1\"", with: "\"\\u12\""), "four hexadecimal digits"),
        (good.replacing("\"1\"", with: "\"\\u+123\""), "four hexadecimal digits"),
        (good.replacing("\"1\"", with: "\"\\ud800\""), "half of a surrogate pair"),
        (good.replacing("\"1\"", with: "\"\\ud800\\u0041\""), "half of a surrogate pair"),
        (good.replacing("\"1\"", with: "\"a\tb\""), "a control character"),
        (String(good.dropLast(2)), "column 43: the text that begins here does not end"),
        (good.replacing("}", with: ",\"payload64\":\"AQ=\"}"), "payload64 is not base64"),
        (
          good.replacing("}", with: ",\"payload64\":\"\",\"payload\":\"\"}"),
          "payload and payload64 are both there"
        ),
        (good.replacing("17000", with: "x7000"), "timestamp"),
      ])
    func malformed(line: String, reason: String) throws {
      let folder = try TemporaryFolder()
      let file = try write(line + "\n", in: folder)
      let outcome = try Tool.run(["import", "--create", folder.path("store"), file], in: folder)
      #expect(outcome.status == 1)
      #expect(outcome.output.isEmpty)
      #expect(outcome.errors.hasPrefix("line 1: "))
      #expect(outcome.errors.contains(reason), "\(outcome.errors)")
    }

    @Test("bytes that are not UTF-8 are no text")
    func notUtf8() throws {
      let folder = try TemporaryFolder()
      let path = folder.path("bytes")
      try Data(Self.good.utf8.map { $0 == UInt8(ascii: "c") ? 0xFF : $0 })
        .write(to: URL(fileURLWithPath: path))
      let outcome = try Tool.run(["import", "--create", folder.path("store"), path], in: folder)
      #expect(outcome.status == 1 && outcome.errors.contains("the text is not UTF-8"))
    }

    @Test("nothing of a batch with a bad line is applied, all before it is", arguments: 1...9)
    func batches(bad: Int) throws {
      let folder = try TemporaryFolder()
      var lines = try lines(Array(SampleStore.records.prefix(9)), in: folder)
      lines[bad - 1] = bad % 2 == 0 ? "{}" : Substring(Self.good.replacing("17000", with: "bad"))
      let file = try write(lines.joined(separator: "\n"), in: folder)
      let copy = folder.path("copy")
      let outcome = try Tool.run(["import", "--create", "--batch", "3", copy, file], in: folder)
      #expect(outcome.status == 1)
      #expect(outcome.errors.hasPrefix("line \(bad): "))
      let applied = (bad - 1) / 3 * 3
      #expect(
        outcome.errors.contains(
          applied == 0
            ? "Nothing has been imported." : "The lines before \(applied + 1) have been imported."))
      guard applied > 0 else {
        // The store was not there, and is not now.
        return #expect(!FileManager.default.fileExists(atPath: copy))
      }
      let found = try DumpedRecord.read(Tool.run(["dump", copy], in: folder).lines)
      #expect(found == Array(SampleStore.records.prefix(applied)))
    }

    /// What the store itself refuses, when it has been made: here an author that is too long.
    @Test(
      "a store that was made for a batch that is refused is removed, and nothing else",
      arguments: [nil, [], ["mine"]] as [[String]?])
    func refusedWhenMade(present: [String]?) throws {
      let folder = try TemporaryFolder()
      let file = try write(Self.good, in: folder)
      let store = folder.path("store")
      if let present {
        let path = try folder.newFolder("store")
        for name in present {
          try Data("precious".utf8).write(to: URL(fileURLWithPath: "\(path)/\(name)"))
        }
      }
      let author = String(repeating: "a", count: 2_000)
      let outcome = try Tool.run(
        ["import", "--create", "--author", author, store, file], in: folder)
      #expect(outcome.status == 3 && outcome.errors.contains("1,024"), "\(outcome)")
      #expect(FileManager.default.fileExists(atPath: store) == (present != nil))
      if let present { #expect(try folder.names(store) == present) }
    }

    @Test("a store that was there before stays, whatever is refused", arguments: [false, true])
    func refusedWhenThere(hasLongAuthor: Bool) throws {
      let folder = try TemporaryFolder()
      let file = try write(hasLongAuthor ? Self.good : "nonsense", in: folder)
      let store = folder.path("store")
      try ChangeStore(at: store).close()
      let options =
        hasLongAuthor ? ["--author", String(repeating: "a", count: 2_000)] : ["--batch", "1"]
      let outcome = try Tool.run(["import", "--create"] + options + [store, file], in: folder)
      #expect(outcome.status != 0)
      #expect(try Tool.run(["verify", store], in: folder).status == 0)
    }

    @Test("a file without records makes an empty store")
    func empty() throws {
      let folder = try TemporaryFolder()
      let store = folder.path("store")
      let file = try write("\n \n", in: folder)
      let outcome = try Tool.run(["import", "--create", store, file], in: folder)
      #expect(outcome.status == 0 && outcome.output == "0 records imported.\n")
      #expect(try Tool.run(["verify", store], in: folder).status == 0)
    }

    @Test("what is missing is named, and what to do about it")
    func missing() throws {
      let folder = try TemporaryFolder()
      let file = try write(Self.good, in: folder)
      let none = folder.path("none")
      let withoutFlag = try Tool.run(["import", none, file], in: folder)
      #expect(withoutFlag.status == 3)
      #expect(withoutFlag.errors.contains("There is no store at \(none)."))
      #expect(withoutFlag.errors.contains("With --create, import makes one."))
      let withoutParent = try Tool.run(["import", "--create", "\(none)/store", file], in: folder)
      #expect(withoutParent.status == 3)
      #expect(withoutParent.errors.contains("There is no folder \(none),"))
      #expect(withoutParent.errors.contains("Make the folder first"))
      #expect(!FileManager.default.fileExists(atPath: none))
    }

    @Test("all that is wrong in a batch is reported, up to twenty lines")
    func manyProblems() throws {
      let folder = try TemporaryFolder()
      let file = try write(
        (0..<30).map { $0 % 2 == 0 ? "{}" : Self.good.replacing("17000", with: "bad") }
          .joined(separator: "\n"), in: folder)
      let outcome = try Tool.run(["import", "--create", folder.path("store"), file], in: folder)
      let lines = outcome.errors.split(separator: "\n")
      for number in 1...20 { #expect(lines[number - 1].hasPrefix("line \(number): ")) }
      #expect(lines[20] == "and 10 more in this batch")
      #expect(lines[21] == "airdb-log: 30 lines are not a record of this store.")
    }

    @Test("a file of nothing but malformed lines is read no further than a batch")
    func endOfBatch() throws {
      let folder = try TemporaryFolder()
      let file = try write(Array(repeating: "{}", count: 9).joined(separator: "\n"), in: folder)
      let outcome = try Tool.run(
        ["import", "--create", "--batch", "3", folder.path("store"), file], in: folder)
      #expect(outcome.status == 1)
      #expect(outcome.errors.contains("airdb-log: 3 lines are not a record of this store."))
    }

    @Test("what is there is not overwritten, and what is not there is not found")
    func refusals() throws {
      let folder = try TemporaryFolder()
      let store = try SampleStore.make(in: folder)
      let file = try write("precious", in: folder)
      #expect(try Tool.run(["export", store, file], in: folder).status == 4)
      #expect(try String(contentsOfFile: file, encoding: .utf8) == "precious")
      #expect(try Tool.run(["export", store, folder.path("no/file")], in: folder).status == 3)
      #expect(try Tool.run(["import", folder.path("none"), file], in: folder).status == 3)
      #expect(!FileManager.default.fileExists(atPath: folder.path("none")))
      #expect(try Tool.run(["import", store, folder.path("missing")], in: folder).status == 3)
      #expect(try Tool.run(["import", store, folder.path], in: folder).status == 3)
      let open = try ChangeStore(at: store)
      #expect(try Tool.run(["import", store, file], in: folder).status == 4)
      #expect(try Tool.run(["export", store], in: folder).status == 0)
      try open.close()
    }

    @Test(
      "a signal amid an export leaves nothing, or the whole file", arguments: [SIGINT, SIGTERM])
    func interrupted(signal: Int32) throws {
      let folder = try TemporaryFolder()
      let store = try SampleStore.make(in: folder, SampleStore.manyRecords())
      let target = try folder.newFolder("target")
      let process = try Tool.process(["export", store, "\(target)/lines"], in: folder)
      try process.run()
      while try folder.names(target).isEmpty, process.isRunning {}
      kill(process.processIdentifier, signal)
      let outcome = try Tool.outcome(of: process)
      if outcome.status == 0 {
        #expect(try folder.names(target) == ["lines"])
      } else {
        #expect(outcome.status == -signal)
        #expect(try folder.names(target).isEmpty)
      }
    }

    @Test("progress is shown on a terminal, and taken away")
    func progress() throws {
      let folder = try TemporaryFolder()
      let store = try SampleStore.make(in: folder, SampleStore.manyRecords())
      let file = folder.path("lines")
      for (command, label) in [
        (["export", store, file], "Exporting"),
        (["import", "--create", folder.path("copy"), file], "Importing"),
      ] {
        let terminal = try PseudoTerminal()
        let process = try Tool.process(command, in: folder)
        process.standardError = terminal.slave
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        let shown = terminal.output()
        #expect(shown.contains("\(label)  ["))
        #expect(shown.hasSuffix("\u{1B}[K"))
      }
    }

    @Test("the author is that of the commits")
    func author() throws {
      let folder = try TemporaryFolder()
      let file = try write(Self.good, in: folder)
      let copy = folder.path("copy")
      #expect(
        try Tool.run(["import", "--create", "--author", "me", copy, file], in: folder).status == 0)
      #expect(try ChangeStore(at: copy).commits(limit: 1).commits.map(\.author) == ["me"])
    }
  }
#endif
