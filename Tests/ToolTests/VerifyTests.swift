#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation
  import Testing

  @Suite("verify")
  struct VerifyTests {
    @Test("a store without damage is exit code 0, and figures")
    func clean() throws {
      let folder = try TemporaryFolder()
      let store = try SampleStore.make(in: folder, SampleStore.manyRecords())
      let outcome = try Tool.run(["verify", store], in: folder)
      #expect(outcome.status == 0)
      #expect(outcome.errors.isEmpty)
      #expect(outcome.output.hasPrefix("No damage; checked 1 commit, 2,000 records, "))
    }

    @Test(
      "damage is exit code 1, and a line that names the file",
      arguments: ["segment", "index", "MANIFEST"])
    func damage(kind: String) throws {
      let folder = try TemporaryFolder()
      let store = try SampleStore.make(in: folder, SampleStore.manyRecords())
      let name = try #require(folder.names(store).first { $0.hasSuffix(kind) })
      let path = "\(store)/\(name)"
      var bytes = try #require(FileManager.default.contents(atPath: path))
      bytes[bytes.count / 2] ^= 0x10
      try bytes.write(to: URL(fileURLWithPath: path))
      let outcome = try Tool.run(["verify", store], in: folder)
      #expect(outcome.status == 1)
      #expect(outcome.lines.count == 1)
      #expect(outcome.output.contains(name))
      #expect(outcome.output.contains("(derived)") == (kind == "index"))
      #expect(outcome.errors.contains("airdb-log: "))
      #expect(try folder.contents(store)[name] == bytes, "It repairs nothing.")
    }

    @Test("a missing segment is damage, not a store that is not found")
    func missingSegment() throws {
      let folder = try TemporaryFolder()
      let store = try SampleStore.make(in: folder, SampleStore.manyRecords())
      let name = try #require(folder.names(store).first { $0.hasSuffix("segment") })
      try FileManager.default.removeItem(atPath: "\(store)/\(name)")
      for command in [["verify", store], ["dump", store]] {
        #expect(try Tool.run(command, in: folder).status == 1)
      }
    }

    @Test("a progress bar is there on a terminal, and nowhere else")
    func progress() throws {
      let folder = try TemporaryFolder()
      let store = try SampleStore.make(in: folder, SampleStore.manyRecords())
      let terminal = try PseudoTerminal()
      let process = try Tool.process(["verify", store], in: folder)
      process.standardError = terminal.slave
      try process.run()
      process.waitUntilExit()
      let shown = terminal.output()
      #expect(shown.contains("Checking  ["))
      #expect(shown.hasSuffix("\r\u{1B}[K"), "The bar is taken away at the end.")
      let quiet = try Tool.run(["verify", store], in: folder)
      #expect(quiet.errors.isEmpty)
    }
  }
#endif
