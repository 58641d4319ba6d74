package import AirDbLogStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What a writer that is going to be killed writes: batches that its observer can make too, from a
/// seed and a number.
///
/// Each batch sets five markers to its number, so that a part of a batch shows at once; and changes
/// other records at random, so that the state says whether it is exactly that of a prefix.
package struct CrashScript: Sendable {
  package let seed: UInt64
  /// Writers beside each other use collections of their own.
  package let writer: Int

  package init(seed: UInt64, writer: Int) {
    self.seed = seed
    self.writer = writer
  }

  package static let markers = 5

  /// The key of a marker.
  package func markerKey(_ marker: Int) -> RecordKey {
    RecordKey(collection: "markers \(writer)", id: "\(marker)")
  }

  /// The batch of a number from 1 on.
  package func batch(_ number: Int) -> [ChangeRecord] {
    var options = RecordGenerator.Options()
    options.keys = 120
    options.collections = ["a \(writer)", "b \(writer)"]
    options.usesIso8601 = false
    options.payload = 0...400
    options.largePayload = 100
    var generator = RecordGenerator(
      seed: seed &* 1_000_003 &+ UInt64(number) &* 31 &+ UInt64(writer), options: options)
    var batch = generator.batch(1 + generator.below(12))
    for index in batch.indices {
      // Clocks move on with the batches, a little out of order.
      let time = 1_700_000_000_000 + number * 10 - generator.below(100)
      batch[index].hlcTimestamp = "\(time)-\(index)-w\(writer)"
    }
    for marker in 0..<Self.markers {
      let key = markerKey(marker)
      batch.insert(
        ChangeRecord(
          id: key.id, collection: key.collection, type: .update, payload: Data("\(number)".utf8),
          hlcTimestamp: "\(1_700_000_000_000 + number * 10)-z\(marker)-w\(writer)"),
        at: generator.below(batch.count + 1))
    }
    return batch
  }

  /// Small segments, so that a writer rolls over and seals all the time.
  package static func configuration(_ durability: Durability) -> Configuration {
    var configuration = Configuration()
    configuration.durability = durability
    configuration.segmentRecords = 60
    configuration.segmentBytes = 24 << 10
    configuration.blockBytes = 1_024
    configuration.replayBytes = 8 << 10
    configuration.cacheBytes = 256 << 10
    return configuration
  }
}
