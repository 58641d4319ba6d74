#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation
  import Testing

  @testable import airdb_log

  /// The check after a kill must pass for every prefix that a writer may leave, and for nothing else.
  @Suite("What is checked after a writer was killed")
  struct WriterScriptTests {
    /// Twenty records: two batches of eight and one of four.
    private static let count = 20
    private static let batchEnds = [8, 16, 20, 28, 36, 40, 48]

    private func source() throws -> ChangeStore {
      let store = try ChangeStore.inMemory()
      try store.applyAndWait(
        (0..<Self.count).map { index in
          ChangeRecord(
            id: "\(index)", collection: "c", type: index % 5 == 0 ? .delete : .insert,
            payload: Data("payload \(index)".utf8), hlcTimestamp: SampleStore.timestamp(index))
        })
      return store
    }

    /// The batches of a script up to some number of changes.
    private func batches(_ source: ChangeStore, upTo end: Int) throws -> [[ChangeRecord]] {
      var script = try WriterScript(source, after: 0)
      var batches: [[ChangeRecord]] = []
      while script.changes < end, let batch = try script.nextBatch() { batches.append(batch) }
      #expect(script.changes == end)
      return batches
    }

    private func differences(
      _ batches: [[ChangeRecord]], _ source: ChangeStore, after changes: Int
    ) throws -> Int {
      let store = try ChangeStore.inMemory()
      for batch in batches { try store.applyAndWait(batch) }
      var differences = Differences()
      try WriterScript.check(store, against: source, after: changes, &differences)
      return differences.count
    }

    @Test("every prefix of batches passes, through several rounds", arguments: [0] + batchEnds)
    func prefixes(end: Int) throws {
      let source = try source()
      let batches = try batches(source, upTo: end)
      #expect(try differences(batches, source, after: end) == 0)
    }

    @Test(
      "the number of changes is read from the latest timestamp", arguments: [1, 8, 65_536, 200_001])
    func number(changes: Int) {
      let last = WriterScript.stamped(SampleStore.records[0], change: changes - 1)
      #expect(WriterScript.changes(latest: last.hlcTimestamp) == changes)
      #expect(WriterScript.changes(latest: nil) == 0)
    }

    @Test("a writer goes on where another one ended", arguments: batchEnds)
    func continuation(end: Int) throws {
      let source = try source()
      var script = try WriterScript(source, after: end)
      #expect(script.changes == end)
      let next = try #require(try script.nextBatch())
      let all = try batches(source, upTo: script.changes)
      #expect(next == all.last)
    }

    @Test("a batch that is lost, cut, or out of its place is seen", arguments: batchEnds)
    func damage(end: Int) throws {
      let source = try source()
      let whole = try batches(source, upTo: end)
      // Of the last batch the last record only, so that the number of changes still is `end`.
      var cut = whole
      cut[cut.count - 1].removeFirst()
      #expect(try differences(cut, source, after: end) > 0)
      if whole.count > 1 {
        var lost = whole
        lost.remove(at: lost.count - 2)
        #expect(try differences(lost, source, after: end) > 0)
      }
      var foreign = whole
      foreign[0].append(SampleStore.record(0, "c", "foreign", .insert, ""))
      #expect(try differences(foreign, source, after: end) > 0)
      var altered = whole
      altered[altered.count - 1][0].payload.append(0)
      #expect(try differences(altered, source, after: end) > 0)
    }

    @Test("the beginning of a batch without its end is seen", arguments: batchEnds)
    func half(end: Int) throws {
      let source = try source()
      var batches = try batches(source, upTo: end)
      batches[batches.count - 1].removeLast()
      #expect(try differences(batches, source, after: end - 1) > 0)
    }
  }
#endif
