import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// The recorded history of a real project. Skipped where it is absent.
@Suite(.enabled(if: ChangeStream.isPresent, "the recorded stream is not there"))
struct StreamHistoryTests {
  /// Several segments, and many batches in each.
  private static var configuration: Configuration {
    var configuration = Configuration()
    configuration.durability = .processCrash
    configuration.segmentRecords = 1_500
    configuration.cacheBytes = 1 << 20
    configuration.cleaning = .off
    return configuration
  }

  private static let model = Result {
    var model = ReferenceModel()
    for batch in try ChangeStream.batches() { try model.apply(batch) }
    return model
  }

  @Test func `The stream is what its description says`() throws {
    let batches = try ChangeStream.batches()
    let model = try Self.model.get()
    #expect(batches.joined().count == 20_000)
    #expect(model.entries.count == 6_582)
    #expect(model.entries.values.count { $0.record.type == .delete } == 1_779)
  }

  @Test func `Applied in its batches it is the model's result, live and after reopening`()
    async throws
  {
    let model = try Self.model.get()
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      let store = try ChangeStore(at: path, configuration: Self.configuration)
      for batch in try ChangeStream.batches() { try store.applyAndWait(batch) }
      try await expectEqual(store, model, pageSize: 500)
      try store.close()
      let again = try ChangeStore(at: path, configuration: Self.configuration)
      try await expectEqual(again, model, pageSize: 333)
      let statistics = try again.statistics()
      #expect(statistics.sealedSegments > 5)
      #expect(statistics.records > 15_000)
    }
  }

  @Test func `Applied in other orders it is the same state`() async throws {
    let model = try Self.model.get()
    let batches = try ChangeStream.batches()
    // No two versions of one key with equal timestamps: order decides nothing.
    for kind in ["shuffled", "repeated", "split"] {
      var random = SeededGenerator(seed: UInt64(kind.utf8.count))
      var order: [[ChangeRecord]]
      switch kind {
      case "shuffled": order = batches.shuffled(using: &random)
      case "repeated":
        order = []
        for batch in batches {
          order.append(batch)
          if random.next() % 4 == 0 { order.append(batches.randomElement(using: &random)!) }
        }
      default:
        let records = Array(batches.joined()).shuffled(using: &random)
        order = []
        var start = 0
        while start < records.count {
          let end = min(records.count, start + 1 + Int(random.next() % 80))
          order.append(Array(records[start..<end]))
          start = end
        }
      }
      let store = try ChangeStore.inMemory(configuration: Self.configuration)
      for batch in order { try store.applyAndWait(batch) }
      let found = try await store.sweep(pageSize: 1_000)
      // Ties between keys come in order of arrival, which differs.
      #expect(Set(found) == Set(model.feed.records), "\(kind)")
      #expect(found.count == model.entries.count, "\(kind)")
      let isOrdered = zip(found, found.dropFirst()).allSatisfy {
        HlcComparator.compare($0.hlcTimestamp, $1.hlcTimestamp) <= 0
      }
      #expect(isOrdered, "\(kind)")
      #expect(try store.latestTimestamp == model.latest?.text, "\(kind)")
      #expect(try store.verify().isClean, "\(kind)")
    }
  }

  @Test func `Page by page it comes over to another store`() async throws {
    let model = try Self.model.get()
    let source = try ChangeStore.inMemory(configuration: Self.configuration)
    let target = try ChangeStore.inMemory(configuration: Self.configuration)
    // Each part is followed by a sync, as between two peers.
    let batches = try ChangeStream.batches()
    for part in 0..<5 {
      for batch in batches[(part * batches.count / 5)..<((part + 1) * batches.count / 5)] {
        try source.applyAndWait(batch)
      }
      // A feed by timestamp does not show what came late, so it is read from the beginning.
      var cursor: String?
      while true {
        let page = try await source.getChangesSince(sinceHlcTimestamp: cursor, limit: 100)
        guard let last = page.last else { break }
        try await target.applyChanges(page)
        cursor = last.hlcTimestamp
      }
      #expect(try await target.getLatestHlc() == source.getLatestHlc())
    }
    try await expectEqual(source, model, pageSize: 500)
    #expect(try await target.sweep(pageSize: 500) == model.feed.records)
  }

  #if os(macOS) || os(Linux)
    @Test func `Killed again and again, it is always that of a prefix, and in the end of all`()
      async throws
    {
      let batches = try ChangeStream.batches()
      try await withTemporaryDirectory { root in
        let path = root + "/store"
        var model = ReferenceModel()
        var next = 0
        var random = SeededGenerator(seed: 95)
        for _ in 0..<6 {
          let helper = try HelperProcess(["replay", path, "\(next)"])
          var acknowledged = next - 1
          for _ in 0..<(random.next() % 900) {
            guard let line = helper.readLine() else { break }
            acknowledged = try #require(Int(line))
          }
          helper.kill()
          while let line = helper.readLine() { acknowledged = try #require(Int(line)) }
          helper.wait()
          while next <= acknowledged {
            try model.apply(batches[next])
            next += 1
          }
          let store = try ChangeStore(
            at: path, configuration: CrashScript.configuration(.powerLoss))
          let found = try store.changes(limit: .max, byteLimit: .max).records
          if found != model.feed.records, next < batches.count {
            // The batch that was under way has come through.
            try model.apply(batches[next])
            next += 1
          }
          #expect(found == model.feed.records)
          #expect(try store.verify().isClean)
          try store.close()
        }
        let store = try ChangeStore(at: path, configuration: Self.configuration)
        for batch in batches[next...] { try store.applyAndWait(batch) }
        #expect(try await store.sweep(pageSize: 500) == Self.model.get().feed.records)
      }
    }
  #endif

  #if os(Linux)
    @Test func `The preset for app extensions takes less than 12 MiB of heap`() throws {
      try withTemporaryDirectory { root in
        let helper = try HelperProcess(["stream", root + "/store"])
        let lines = helper.readLines()
        #expect(helper.wait() == 0)
        #expect(lines.contains("read 6582"))
        let heap = try #require(
          lines.last.flatMap { $0.split(separator: " ").last }.flatMap { Int($0) })
        // Less than a tenth would say that nothing has been measured.
        #expect((1 << 20..<12 << 20).contains(heap), "\(heap) bytes")
      }
    }
  #endif
}
