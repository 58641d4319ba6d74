import AirDbLogStore
import TestSupport
import Testing

/// Compaction changes where records are, never what a store says.
@Suite struct CompactionTests {
  private static func configuration() -> Configuration {
    var configuration = Configuration()
    configuration.segmentRecords = 40
    configuration.segmentBytes = 8 << 10
    configuration.replayBytes = 0
    configuration.cleaning = .off
    return configuration
  }

  @Test(arguments: 0..<24 as Range<UInt64>)
  func `random scripts of applying, compacting and reopening agree with the model`(
    seed: UInt64
  ) throws {
    var options = RecordGenerator.Options()
    options.keys = [12, 60, 300][Int(seed % 3)]
    var generator = RecordGenerator(seed: seed, options: options)
    var model = ReferenceModel()
    let platform = MemoryPlatform()
    let scheduler = ManualScheduler()
    var configuration = Self.configuration()
    configuration.durability = seed % 2 == 0 ? .powerLoss : .processCrash
    var store = try ChangeStore(
      path: "/store", configuration, platform: platform, scheduler: scheduler)
    var compactions = 0
    for step in 0..<120 {
      switch generator.below(12) {
      case 0:
        scheduler.run()
        compactions += try store.compact().segments > 0 ? 1 : 0
      case 1:
        try store.close()
        scheduler.run()
        store = try ChangeStore(
          path: "/store", configuration, platform: platform, scheduler: scheduler)
      case 2:
        try store.reopen()
      default:
        let batch = generator.batch(1 + generator.below(30))
        let expected = try model.apply(batch)
        let result = try store.applyAndWait(batch)
        #expect(result.accepted == expected.accepted, "seed \(seed), step \(step)")
        if generator.below(2) == 0 { scheduler.run() }
      }
      if step % 20 == 19 { try check(store, model, seed) }
    }
    scheduler.run()
    try store.compact()
    try check(store, model, seed)
    let statistics = try store.statistics()
    #expect(statistics.liveRecords == UInt64(model.entries.count))
    #expect(compactions > 0)
    try store.close()
    scheduler.run()
    let reopened = try ChangeStore(
      path: "/store", configuration, platform: platform, scheduler: scheduler)
    try check(reopened, model, seed)
  }

  private func check(_ store: ChangeStore, _ model: ReferenceModel, _ seed: UInt64) throws {
    let feed = model.feed
    var cursor: ChangeCursor?
    var records: [ChangeRecord] = []
    while true {
      let page = try store.changes(after: cursor, limit: 17)
      records += page.records
      cursor = page.next
      if page.isLast { break }
    }
    #expect(records == feed.records, "seed \(seed)")
    for entry in feed.entries {
      let key = RecordKey(collection: entry.record.collection, id: entry.record.id)
      #expect(try store.record(forKey: key) == entry.record, "seed \(seed)")
    }
    #expect(try store.latestTimestamp == model.latest?.text)
    let report = try store.verify()
    #expect(report.isClean, "seed \(seed): \(report.problems)")
  }

  @Test func `files of replaced segments go, and the space comes back`() throws {
    let platform = MemoryPlatform()
    let scheduler = ManualScheduler()
    let store = try ChangeStore(
      path: "/store", Self.configuration(), platform: platform, scheduler: scheduler)
    for round in 0..<60 {
      try store.applyAndWait(
        (0..<20).map { key in
          ChangeRecord(
            id: "\(key)", collection: "c", type: .update, payload: .init(count: 50),
            hlcTimestamp: "\(1_700_000_000_000 + round)-0000-n")
        })
      scheduler.run()
    }
    let before = try store.statistics()
    let result = try store.compact()
    scheduler.run()
    let after = try store.statistics()
    #expect(result.recordsDropped > 1_000)
    #expect(after.segmentBytes * 5 < before.segmentBytes)
    #expect(after.liveRecords == 20)
    let segments = try platform.list("/store").filter { $0.hasSuffix(".segment") }
    #expect(segments.count <= after.sealedSegments + 1)
  }
}
