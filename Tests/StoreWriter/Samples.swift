import AirDbLogStore
import Foundation
import HlcText
import TestSupport

/// A store to be written on disk, with what must be in it.
struct Sample {
  var name: String
  var configuration = Configuration()
  /// Batches by number.
  var batches: [[ChangeRecord]]
  /// After how many batches each the writer drops the store without closing it, and opens it
  /// again.
  var batchesPerSession = Int.max
  var isClosed = true
  /// After how many batches each the store is compacted.
  var batchesPerCompaction = Int.max
  /// Whether consumers follow it, each at a pace of its own.
  var hasConsumers = false

  func write(to directory: String) throws {
    let path = "\(directory)/\(name)"
    let isDropped = batchesPerSession < batches.count
    let open = {
      // A queue's job could hold a dropped store open for a moment; these jobs cannot.
      try ChangeStore(
        path: path, configuration, platform: SystemPlatform(),
        scheduler: isDropped ? ManualScheduler() : nil)
    }
    var store: ChangeStore? = try open()
    var model = ReferenceModel(
      format: configuration.timestampFormat == .utf8Order ? .utf8Order : .hybrid)
    var compacted = 0
    for (index, batch) in batches.enumerated() {
      if index > 0, index % batchesPerSession == 0 {
        store = nil
        store = try open()
      }
      try store?.applyAndWait(batch, author: index % 3 == 0 ? "device \(index % 2)" : nil)
      try model.apply(batch)
      if hasConsumers, let store { try follow(store, index) }
      if (index + 1) % batchesPerCompaction == 0, let store {
        compacted += try store.compact().segments
      }
    }
    precondition((compacted > 0) == (batchesPerCompaction < .max), "\(name): \(compacted)")
    let expected = try RecordLine.lines(model.feed.records)
    try expected.write(to: URL(fileURLWithPath: "\(path).expected.jsonl"))
    if isClosed {
      try store?.close()
    } else {
      Self.left.append(store)
    }
  }

  /// Registers consumers, moves them, back as well, and retires one.
  private func follow(_ store: ChangeStore, _ index: Int) throws {
    let retentions: [(name: String, retention: Consumer.Retention)] = [
      ("search index", .latestVersions), ("Sök ☃", .history(maximumAge: .seconds(86_400))),
      ("mirror", .history(maximumBytes: 4_096)), ("retired", .history()),
    ]
    for (number, (name, retention)) in retentions.enumerated()
    where index % (3 + number) == 0 && (name != "retired" || index < batches.count / 2) {
      let consumer = try store.consumer(named: name, retaining: retention)
      if index % 11 == 10 { try consumer.reset(to: nil) }
      if let position = try store.position { try consumer.acknowledge(position) }
    }
    if index == batches.count / 2 {
      try store.consumer(named: "retired", retaining: .history()).retire()
      _ = try store.consumer(named: "at the beginning")
    }
  }

  /// Stores that are open when the process ends.
  nonisolated(unsafe) private static var left: [ChangeStore?] = []
}

extension Sample {
  static var all: [Sample] {
    [
      // Segments, indexes and liveness, many times over.
      Sample(name: "sealed", configuration: .small, batches: generated(seed: 1, count: 3000)),
      Sample(
        name: "unclosed", configuration: .small, batches: generated(seed: 2, count: 2000),
        isClosed: false),
      Sample(
        name: "sessions", configuration: .small, batches: generated(seed: 3, count: 2000),
        batchesPerSession: 23, hasConsumers: true),
      Sample(
        name: "restless", configuration: .tiny, batches: generated(seed: 10, count: 1500),
        batchesPerSession: 4),
      Sample(
        name: "iso-clock", configuration: .small,
        batches: generated(seed: 4, count: 1000) {
          $0.usesIso8601 = true
        }),
      // Packed segments beside others, some packed several times; then nothing but packed ones.
      Sample(
        name: "compacted", configuration: .small.onDemand,
        batches: generated(seed: 11, count: 3000),
        batchesPerSession: 37, batchesPerCompaction: 29, hasConsumers: true),
      Sample(
        name: "packed", configuration: .tiny.onDemand, batches: generated(seed: 12, count: 1000),
        isClosed: false, batchesPerCompaction: 10),
      // As an app would have it.
      Sample(name: "defaults", batches: generated(seed: 5, count: 2000), hasConsumers: true),
      Sample(
        name: "process-crash", configuration: .processCrash,
        batches: generated(seed: 6, count: 1500), isClosed: false),
      Sample(name: "opaque-clock", configuration: .opaque, batches: opaque(seed: 7, count: 600)),
      Sample(name: "deletions", configuration: .deletions, batches: generated(seed: 8, count: 800)),
      Sample(name: "large", batches: large(seed: 9)),
      Sample(name: "empty", batches: []),
    ]
  }

  private static func generated(
    seed: UInt64, count: Int, _ configure: (inout RecordGenerator.Options) -> Void = { _ in }
  ) -> [[ChangeRecord]] {
    var options = RecordGenerator.Options()
    options.keys = 500
    configure(&options)
    var generator = RecordGenerator(seed: seed, options: options)
    var batches: [[ChangeRecord]] = []
    var left = count
    while left > 0 {
      let size = min(left, 1 + generator.below(40))
      batches.append(generator.batch(size))
      left -= size
    }
    return batches
  }

  /// Timestamps without a grammar: texts of all lengths, prefixes of each other, zero bytes.
  private static func opaque(seed: UInt64, count: Int) -> [[ChangeRecord]] {
    let alphabet = ["a", "b", "\u{0}", "\u{7F}", "é", "0123456789abcdef", "-"]
    var random = SeededGenerator(seed: seed)
    return (0..<count / 10).map { _ in
      (0..<10).map { _ in
        let length = 1 + Int(random.next() % 6)
        let text = (0..<length).map { _ in alphabet[Int(random.next() % 7)] }.joined()
        return ChangeRecord(
          id: "\(random.next() % 200)", collection: "c", type: .update,
          payload: Data(random.bytes(20)), hlcTimestamp: text)
      }
    }
  }

  /// Payloads of megabytes, which shrink and which do not, between small ones; long texts.
  private static func large(seed: UInt64) -> [[ChangeRecord]] {
    var random = SeededGenerator(seed: seed)
    let noise = Data(random.bytes(2 << 20))
    let text = Data(String(repeating: "a line of a log file\n", count: 150_000).utf8)
    let payloads = [Data("small".utf8), noise, Data(), text, noise + text, Data("end".utf8)]
    let records = payloads.enumerated().map { index, payload in
      ChangeRecord(
        id: String(repeating: "i", count: index * 10_000), collection: "large", type: .insert,
        payload: payload, hlcTimestamp: "170000000000\(index)-0-node",
        signature: Data(random.bytes(index * 10_000)))
    }
    return [
      records, [records[3]],
      records.map { record in
        var record = record
        record.hlcTimestamp = "1" + record.hlcTimestamp
        record.payload = Data(record.payload.reversed())
        return record
      },
    ]
  }
}

extension Configuration {
  /// Segments of some hundred records, so that there are many of them.
  static var small: Configuration {
    var configuration = Configuration()
    configuration.segmentRecords = 200
    configuration.blockBytes = 1024
    configuration.replayBytes = 4096
    return configuration
  }

  /// Segments that are full after a batch or two.
  fileprivate static var tiny: Configuration {
    var configuration = small
    configuration.segmentRecords = 30
    configuration.cleaning = .off
    return configuration
  }

  /// Compacted when it is asked for alone.
  fileprivate var onDemand: Configuration {
    var configuration = self
    configuration.cleaning = .off
    return configuration
  }

  fileprivate static var processCrash: Configuration {
    var configuration = small
    configuration.durability = .processCrash
    return configuration
  }

  fileprivate static var opaque: Configuration {
    var configuration = small
    configuration.timestampFormat = .utf8Order
    return configuration
  }

  fileprivate static var deletions: Configuration {
    var configuration = small
    configuration.deletionValues = [-1, 0, 7]
    return configuration
  }
}
