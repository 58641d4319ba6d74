import AirDbLogStore
import TestSupport

extension CrashWriter {
  /// Fills a store in a preset, of which half is superseded, until one compaction may write as many
  /// records as it ever may, and says the most heap that compacting it took beyond what the open store
  /// takes, and the records of the largest segment that was written.
  static func measureCompaction(_ path: String, preset: String) throws {
    var configuration = preset == "extension" ? Configuration.appExtension : Configuration()
    configuration.durability = .processCrash
    configuration.cleaning = .off
    let largest = Locked<UInt64>(0)
    let most = configuration.segmentRecords * CompactionPlan.Rules().fanIn
    let store = try ChangeStore(at: path, configuration: configuration)
    var random = SeededGenerator(seed: 5)
    for start in stride(from: 0, to: 2 * most, by: 512) {
      try store.applyAndWait((start..<(start + 512)).map { record($0, &random) })
    }
    try store.close()
    let settled = try ChangeStore(at: path, configuration: configuration)
    // The cache and the indexes are there before.
    _ = try settled.changes(limit: 5_000)
    let before = try settled.statistics()
    let sampler = HeapSampler()
    let result = try settled.compact()
    sampler.stop()
    for sealed in try settled.engine.snapshot.sealed {
      largest.withLock { $0 = max($0, sealed.segment.info.recordCount) }
    }
    let after = try settled.statistics()
    say("dropped \(result.recordsDropped) of \(before.records)")
    say("largest \(largest.withLock { $0 }) of \(most)")
    // What the cache and the indexes of the new segments take stays, and has a bound of its own.
    let kept =
      max(0, after.cacheBytes - before.cacheBytes)
      + max(0, after.residentIndexBytes - before.residentIndexBytes)
    say("heap \(sampler.growth - min(kept, sampler.growth))")
    try settled.close()
  }

  /// Every other record is new, and one between them replaces an earlier one: so something of each
  /// segment is superseded, and half of all.
  private static func record(_ number: Int, _ random: inout SeededGenerator) -> ChangeRecord {
    let key = number % 2 == 0 ? number : number * 7_919 % (number + 1) / 2 * 2
    return ChangeRecord(
      id: "\(key)-\(key % 97)", collection: "collection \(key % 20)", type: .update,
      payload: .init(random.bytes(60) + Array(repeating: 32, count: 60)),
      hlcTimestamp: "\(1_700_000_000_000 + number)-0000-node\(number % 8)")
  }
}
