#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation
  import Testing

  @Suite("compact")
  struct CompactTests {
    private static func make(in folder: TemporaryFolder) throws -> String {
      let path = folder.path("store")
      var configuration = Configuration()
      configuration.cleaning = .off
      let store = try ChangeStore(at: path, configuration: configuration)
      for round in 0..<3_000 {
        try store.applyAndWait([
          SampleStore.record(round, "notes", "\(round % 7)", .update, "version \(round)")
        ])
      }
      _ = try store.consumer(named: "list")
      try store.close()
      return path
    }

    @Test("a dry run says what a compaction then does, and changes nothing")
    func dryRun() throws {
      let folder = try TemporaryFolder()
      let store = try Self.make(in: folder)
      let before = try folder.contents(store)
      let dry = try Tool.run(["compact", store, "--dry-run"], in: folder)
      #expect(dry.status == 0)
      #expect(dry.output.hasPrefix("1 segment of "))
      #expect(dry.output.contains("The consumer list would get only the newest"))
      #expect(try folder.contents(store) == before)
      let done = try Tool.run(["compact", store], in: folder)
      #expect(done.status == 0 && done.errors.isEmpty)
      #expect(done.output.contains("2,993 records removed"))
      let size = { (contents: [String: Data]) in contents.values.reduce(0) { $0 + $1.count } }
      #expect(try 4 * size(folder.contents(store)) < size(before))
      for arguments in [["compact", store], ["compact", "--dry-run", store]] {
        let again = try Tool.run(arguments, in: folder)
        #expect(again.output == "There is nothing to remove.\n")
      }
      #expect(try Tool.run(["verify", store], in: folder).status == 0)
    }

    @Test("info shows the space by segment and reason")
    func space() throws {
      let folder = try TemporaryFolder()
      let store = try Self.make(in: folder)
      let before = try Tool.run(["info", store], in: folder)
      #expect(before.output.contains("superseded"))
      #expect(!before.output.contains(", packed"))
      _ = try Tool.run(["compact", store], in: folder)
      #expect(try Tool.run(["info", store], in: folder).output.contains(", packed"))
    }

    @Test("a store that is in use, or none, is not compacted")
    func refusals() throws {
      let folder = try TemporaryFolder()
      let path = try Self.make(in: folder)
      let store = try ChangeStore(at: path)
      #expect(try Tool.run(["compact", path], in: folder).status == 4)
      #expect(try Tool.run(["compact", path, "--dry-run"], in: folder).status == 0)
      try store.close()
      #expect(try Tool.run(["compact", folder.path("none")], in: folder).status == 3)
      #expect(try Tool.run(["compact", path, "--dry-run=yes"], in: folder).status == 2)
    }
  }
#endif
