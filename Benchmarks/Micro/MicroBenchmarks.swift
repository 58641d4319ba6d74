import AirDbLogStore
import Foundation
import HlcText
import TestSupport

/// Times the pieces of the engine one by one, so that a change of the whole can be traced to its
/// part. Nanoseconds an item, the least of several runs: what disturbs a run only adds to it.
@main
enum MicroBenchmarks {
  static func main() throws {
    let samples = try Samples()
    let results = texts(samples) + bytes(samples) + blocks(samples) + indexes(samples)
    for result in results {
      print("| \(result.name) | \((result.nanoseconds * 10).rounded() / 10) |")
    }
  }

  struct Result {
    var name: String
    var nanoseconds: Double
  }

  private static let runs = 15
  /// What a body computes goes here, so that it is not left out.
  nonisolated(unsafe) private static var sink: UInt64 = 0

  /// The time of an item of a body that does `items` of them.
  private static func measure(
    _ name: String, items: Int, _ body: () throws -> UInt64
  ) rethrows -> Result {
    var best = Double.infinity
    for _ in 0..<runs {
      let start = ContinuousClock.now
      sink ^= try body()
      let time = (ContinuousClock.now - start).components
      best = min(best, Double(time.seconds) * 1e9 + Double(time.attoseconds) / 1e9)
    }
    return Result(name: name, nanoseconds: best / Double(items))
  }

  // MARK: Pieces

  private static func texts(_ samples: Samples) -> [Result] {
    let records = samples.records
    return [
      measure("HLC: parse", items: records.count) {
        records.reduce(0) { sum, record in
          withUTF8(record.hlcTimestamp) {
            sum
              &+ (parseHlc($0.assumingMemoryBound(to: UInt8.self), format: .hybrid)?.physical ?? 0)
          }
        }
      },
      measure("HLC: compare two texts", items: records.count - 1) {
        zip(records, records.dropFirst()).reduce(0) { sum, pair in
          let order = HlcComparator.compare(pair.0.hlcTimestamp, pair.1.hlcTimestamp)
          return sum &+ UInt64(bitPattern: Int64(order))
        }
      },
      measure("UUID: pack", items: records.count) {
        records.reduce(0) { sum, record in
          var packed: (UInt64, UInt64) = (0, 0)
          let form = withUTF8(record.id) { PackedUuid.pack($0, into: &packed) }
          return sum &+ packed.0 &+ UInt64(form.rawValue)
        }
      },
    ]
  }

  private static func bytes(_ samples: Samples) -> [Result] {
    let records = samples.records
    let block = samples.text
    let packed = samples.compressed
    return [
      measure("key hash", items: records.count) {
        records.reduce(0) { $0 &+ Samples.hash($1, samples.secret).first }
      },
      measure("content checksum of a record", items: records.count) {
        records.reduce(0) { sum, record in
          withBytes(of: record) { sum &+ UInt64($0.contentChecksum) }
        }
      },
      measure("CRC-32C of 8 KiB", items: 1_000) {
        block.withUnsafeBytes { bytes in
          (0..<1_000).reduce(UInt64(0)) { sum, _ in sum &+ UInt64(Checksum.crc(bytes)) }
        }
      },
      measure("LZ4: compress 8 KiB", items: 100) {
        withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: 8) { target in
          block.withUnsafeBytes { bytes in
            (0..<100).reduce(UInt64(0)) { sum, _ in
              sum &+ UInt64(Lz4.compress(bytes, into: target) ?? 0)
            }
          }
        }
      },
      measure("LZ4: decompress 8 KiB", items: 100) {
        withUnsafeTemporaryAllocation(byteCount: block.count + Lz4.slack, alignment: 8) { target in
          packed.withUnsafeBytes { bytes in
            (0..<100).reduce(UInt64(0)) { sum, _ in
              sum &+ (Lz4.decompress(bytes, into: target) ? 1 : 0)
            }
          }
        }
      },
    ]
  }

  private static func blocks(_ samples: Samples) -> [Result] {
    let records = samples.records
    return [
      measure("blocks: encode a record", items: records.count) {
        var frame = ByteBuffer()
        return UInt64(samples.encode(into: &frame).count)
      },
      measure("blocks: decode, a record", items: records.count) {
        samples.blocks.reduce(0) { sum, block in
          block.withUnsafeBytes {
            sum &+ UInt64((try? DecodedBlock($0))?.rows.count ?? 0)
          }
        }
      },
      measure("blocks: read a record, all of a block", items: records.count) {
        samples.stored.reduce(0) { sum, block in
          read(0..<Int(block.header.recordCount), of: block, sum)
        }
      },
      measure("blocks: read one record of a block", items: samples.stored.count) {
        samples.stored.reduce(0) { sum, block in
          read([Int(block.header.recordCount) / 2], of: block, sum)
        }
      },
    ]
  }

  private static func read(
    _ slots: some Sequence<Int>, of block: StoredBlock, _ sum: UInt64
  ) -> UInt64 {
    guard let reader = try? BlockReader(block) else { return sum }
    var shared = SharedFields()
    return slots.reduce(sum) {
      $0 &+ UInt64((try? reader.record($1, sharing: &shared))?.payload.count ?? 0)
    }
  }

  private static func indexes(_ samples: Samples) -> [Result] {
    let hashes = samples.hashes
    let index = samples.index
    let collections = samples.records.map { Array($0.collection.utf8) }
    let absent = hashes.map { KeyHash(first: ~$0.first, second: ~$0.second) }
    return [
      measure("active segment: append a row", items: hashes.count) { samples.fillLog().end },
      measure("active segment: find a row", items: hashes.count) {
        hashes.reduce(0) { $0 &+ (samples.log.newest($1, below: .max)?.number ?? 0) }
      },
      measure("sealed index: build, a record", items: hashes.count) {
        UInt64(samples.buildIndex().count)
      },
      measure("filter: absent key", items: absent.count) {
        absent.reduce(0) { $0 &+ (index.mayContain($1) ? 1 : 0) }
      },
      measure("sealed index: find a key, cached pages", items: hashes.count) {
        zip(hashes, collections).reduce(0) { sum, item in
          item.1.withUnsafeBytes { collection in
            sum &+ ((try? index.find(item.0, in: collection))??.rank ?? 0)
          }
        }
      },
      measure("sealed index: an HLC entry by rank", items: hashes.count) {
        (0..<UInt64(hashes.count)).reduce(0) {
          $0 &+ ((try? index.hlcEntry($1))?.block ?? 0)
        }
      },
    ]
  }
}
