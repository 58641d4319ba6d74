#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation
  import Testing

  @Suite("The command consumers")
  struct ConsumersCommandTests {
    private func withStore(
      _ body: (_ store: String, _ folder: TemporaryFolder, _ positions: [Position]) throws -> Void
    ) throws {
      let folder = try TemporaryFolder()
      let path = try SampleStore.make(in: folder)
      let store = try ChangeStore(at: path)
      var positions = [try #require(try store.position)]
      let record = SampleStore.record(50, "notes", "more", .insert, "more")
      positions.append(try #require(try store.applyAndWait([record]).position))
      try store.consumer(named: "search\u{1B}[2J").acknowledge(positions[0])
      _ = try store.consumer(
        named: "export",
        retaining: .history(maximumAge: .seconds(3_600), maximumBytes: 1_000_000))
      try store.close()
      try body(path, folder, positions)
    }

    @Test("the list says who is where, for people and for programs, without control characters")
    func list() throws {
      try withStore { store, folder, positions in
        let text = try Tool.run(["consumers", store], in: folder)
        #expect(text.status == 0 && text.errors.isEmpty)
        #expect(text.output.contains(#""search\u{1B}[2J""#))
        #expect(text.output.contains("position  \(positions[0])"))
        #expect(text.output.contains("position  at the beginning"))
        #expect(text.output.contains("behind    1 commit, "))
        #expect(text.output.contains("up to 3,600 s old, up to 1.0 MB"))
        #expect(!text.output.contains("\u{1B}"))
        let lines = try Tool.run(["consumers", store, "--json"], in: folder).lines
        let objects = try lines.map {
          try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
        #expect(objects.map { $0["name"] as? String } == ["export", "search\u{1B}[2J"])
        #expect(objects.map { $0["position"] as? String } == [nil, "\(positions[0])"])
        #expect(objects.map { $0["lagCommits"] as? Int } == [2, 1])
        #expect(objects.map { $0["maximumAge"] as? Int } == [3_600_000, nil])
        #expect(objects.map { $0["retention"] as? String } == ["history", "latest versions"])
        #expect(lines.allSatisfy { !$0.contains("\u{1B}") })
      }
    }

    @Test("a consumer is moved and removed, unless the store is in use")
    func change() throws {
      try withStore { store, folder, positions in
        func positionOfExport() throws -> String? {
          let lines = try Tool.run(["consumers", store, "--json"], in: folder).lines
          let line = try #require(lines.first { $0.contains("export") })
          let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
          return object?["position"] as? String
        }
        let reset = ["consumers", store, "--reset", "export", "--to"]
        #expect(try Tool.run(reset + ["\(positions[1])"], in: folder).status == 0)
        #expect(try positionOfExport() == "\(positions[1])")
        #expect(try Tool.run(reset + ["beginning"], in: folder).status == 0)
        #expect(try positionOfExport() == nil)
        let foreign = "\(positions[1])".replacingOccurrences(
          of: positions[1].storeId, with: String(repeating: "0", count: 32))
        #expect(try Tool.run(reset + [foreign], in: folder).status == 4)
        #expect(try Tool.run(reset + ["nonsense"], in: folder).status == 2)
        #expect(try Tool.run(["consumers", store, "--reset", "export"], in: folder).status == 2)
        let missing = try Tool.run(["consumers", store, "--retire", "nobody"], in: folder)
        #expect(missing.status == 3 && missing.errors.contains("nobody"))

        let holder = try ChangeStore(at: store)
        #expect(try Tool.run(["consumers", store, "--retire", "export"], in: folder).status == 4)
        #expect(try Tool.run(["consumers", store], in: folder).status == 0)
        try holder.close()
        #expect(try Tool.run(["consumers", store, "--retire", "export"], in: folder).status == 0)
        #expect(try Tool.run(["consumers", store, "--json"], in: folder).lines.count == 1)
      }
    }
  }
#endif
