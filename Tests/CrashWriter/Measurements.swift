import AirDbLogStore
import Foundation
import TestSupport

extension CrashWriter {
  /// Applies the recorded stream in the preset for app extensions, reads all of it back, and says the
  /// most heap that this took, in bytes.
  static func measureStream(_ path: String) throws {
    // Everything that a first use of the machinery leaves on the heap is there before.
    var count = 0
    try ChangeStream.forEachBatch { batch in
      count += batch.count
      return count < 200
    }
    let sampler = HeapSampler()
    // Syncs take time and no heap.
    var configuration = Configuration.appExtension
    configuration.durability = .processCrash
    let store = try ChangeStore(at: path, configuration: configuration)
    try ChangeStream.forEachBatch { batch in
      try store.applyAndWait(batch)
      return true
    }
    say("applied \(sampler.growth)")
    var cursor: ChangeCursor?
    var read = 0
    while true {
      let page = try store.changes(after: cursor, limit: 100, byteLimit: 256 << 10)
      read += page.records.count
      for record in page.records.prefix(5) {
        guard
          try store.record(
            forKey: RecordKey(collection: record.collection, id: record.id)) == record
        else { throw LogStoreError(.corrupt, "A record is not found by its key.") }
      }
      cursor = page.next
      if page.isLast { break }
    }
    sampler.stop()
    say("read \(read)")
    say("heap \(sampler.growth)")
    try store.close()
  }

  /// Fills a store with new records in an order of timestamps, and says how much heap the open store
  /// takes with all of it loaded: for none, half and all of the records.
  static func measureScale(_ path: String, order: String, count: Int) throws {
    var configuration = Configuration()
    configuration.durability = .processCrash
    configuration.cacheBytes = 1 << 20
    try report(path, configuration, 0)
    var random = SeededGenerator(seed: 1)
    for half in 0..<2 {
      let store = try ChangeStore(at: path, configuration: configuration)
      for start in stride(from: half * count / 2, to: (half + 1) * count / 2, by: 1_000) {
        try store.applyAndWait(
          (start..<(start + 1_000)).map { number in
            record(number, of: count, order: order, &random)
          })
      }
      try store.close()
      try report(path, configuration, (half + 1) * count / 2)
    }
  }

  /// Fills a store with records of a kind, and says how much heap an open store takes after all of it
  /// has been read: without a cache, and with one that is smaller than the store.
  static func measureCache(_ path: String, kind: String) throws {
    var configuration = Configuration()
    configuration.durability = .processCrash
    // It looks after some seconds, and what it takes then is not the cache's; nor is the memory of a
    // sealed segment, which is given back by a job.
    configuration.cleaning = .off
    let scheduler = ManualScheduler()
    let store = try ChangeStore(
      path: path, configuration, platform: SystemPlatform(), scheduler: scheduler)
    let count = ["ids": 100, "authors": 100, "collections": 1_500, "nodes": 6_000][kind] ?? 20_000
    for start in stride(from: 0, to: count, by: 100) {
      try store.applyAndWait(
        (start..<min(start + 100, count)).map { record($0, kind: kind) })
    }
    try store.close()
    scheduler.run()
    for cacheBytes in [0, 2 << 20] {
      configuration.cacheBytes = cacheBytes
      let before = HeapSampler.inUse
      let store = try ChangeStore(at: path, configuration: configuration)
      var cursor: ChangeCursor?
      while true {
        let page = try store.changes(after: cursor, limit: 50, byteLimit: 64 << 10)
        cursor = page.next
        if page.isLast { break }
      }
      // In another order too: what a sweep passes in order does not stay.
      for number in 0..<count {
        let key = record(number * 7_919 % count, kind: kind)
        _ = try store.record(forKey: RecordKey(collection: key.collection, id: key.id))
      }
      let cache = try store.statistics().cacheBytes
      say("\(cacheBytes) heap \(HeapSampler.inUse - before) cache \(cache)")
      try store.close()
    }
  }

  private static func record(_ number: Int, kind: String) -> ChangeRecord {
    func long(_ count: Int) -> String {
      let digits = "\(number)"
      return digits + String(repeating: "x", count: count - digits.utf8.count)
    }
    return ChangeRecord(
      id: kind == "ids" ? long(60_000) : "\(number)",
      collection: kind == "collections" ? long(4_000) : kind == "small" ? long(20) : "c",
      type: .insert, payload: kind == "payloads" ? Data(long(300).utf8) : Data(),
      hlcTimestamp: "\(1_700_000_000_000 + number)-0-" + (kind == "nodes" ? long(900) : "n"),
      authorPublicKey: kind == "authors"
        ? Data(long(60_000).utf8) : kind == "small" ? Data(long(33).utf8) : nil)
  }

  private static func record(
    _ number: Int, of count: Int, order: String, _ random: inout SeededGenerator
  ) -> ChangeRecord {
    let time: Int
    switch order {
    case "ascending": time = number
    // As eight devices whose clocks are ten minutes apart.
    case "overlapping": time = number / 8 + number % 8 * 600_000 / 8
    default: time = Int.random(in: 0..<count, using: &random)
    }
    // One of ten changes a record that is there.
    let isNew = number < 1_000 || number % 10 > 0
    let key = isNew ? number : Int.random(in: 0..<number, using: &random)
    var bits = SeededGenerator(seed: UInt64(key))
    let id = UUID(
      uuid: withUnsafeBytes(of: (bits.next(), bits.next())) { $0.load(as: uuid_t.self) })
    return ChangeRecord(
      id: id.uuidString.lowercased(), collection: "collection \(key % 20)", type: .insert,
      payload: Data("{\"number\":\(number)}".utf8),
      hlcTimestamp: "\(1_700_000_000_000 + time)-0000-node\(number % 8)")
  }

  private static func report(
    _ path: String, _ configuration: Configuration, _ count: Int
  ) throws {
    var configuration = configuration
    configuration.cleaning = .off
    let before = HeapSampler.inUse
    let store = try ChangeStore(at: path, configuration: configuration)
    // Loads every index, and fills the cache.
    _ = try store.getPage(limit: 5_000)
    _ = try store.record(forKey: RecordKey(collection: "none", id: "none"))
    let statistics = try store.statistics()
    let heap = HeapSampler.inUse - before
    say(
      "\(count) heap \(heap) cache \(statistics.cacheBytes) records \(statistics.records) segments \(statistics.sealedSegments)"
    )
    try store.close()
  }
}

extension ChangeStore {
  fileprivate func getPage(limit: Int) throws -> Int { try changes(limit: limit).records.count }
}
