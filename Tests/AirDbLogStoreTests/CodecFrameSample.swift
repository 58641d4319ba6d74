import AirDbLogStore
import Foundation
import HlcText
import TestSupport
import Testing

/// The blocks of one frame, encoded as the writer does.
struct FrameSample {
  static let file: UInt64 = 7
  static let frameOffset: UInt64 = 4_096
  /// Something that precedes the first block in the frame.
  static let head = 72

  let records: [ChangeRecord]
  let bytes: [UInt8]
  /// Where each block is, as an offset into `bytes`.
  let blocks: [Range<Int>]
  let places: [(block: Int, slot: Int)]

  init(_ records: [ChangeRecord], target: Int, format: HlcFormat = .hybrid) {
    var encoder = BlockEncoder(target: target)
    var frame = ByteBuffer()
    frame.appendZeros(Self.head)
    var offsets: [UInt64] = []
    var places: [(Int, Int)] = []
    for record in records {
      withBytes(of: record) { bytes in
        let parts = parseHlc(bytes.hlc.assumingMemoryBound(to: UInt8.self), format: format)!
        let place = encoder.add(
          bytes, parts: parts, contentChecksum: bytes.contentChecksum, to: &frame, frameStart: 0,
          file: Self.file, frameOffset: Self.frameOffset, offsets: &offsets)
        places.append((Int(place.block), Int(place.slot)))
      }
    }
    let count = encoder.finishFrame(
      into: &frame, frameStart: 0, file: Self.file, frameOffset: Self.frameOffset,
      offsets: &offsets)
    #expect(Int(count) == offsets.count)
    let starts = offsets.map { Int($0 - Self.frameOffset) } + [frame.count]
    self.records = records
    self.places = places
    bytes = Array(frame.bytes)
    blocks = zip(starts, starts.dropFirst()).map { $0..<$1 }
  }

  /// The bytes of a block.
  func block(_ number: Int) -> [UInt8] { Array(bytes[blocks[number]]) }

  /// The record at a place, read alone.
  func record(at place: (block: Int, slot: Int)) throws -> ChangeRecord {
    let stored = try block(place.block).withUnsafeBytes { try StoredBlock($0) }
    var shared = SharedFields()
    return try BlockReader(stored).record(place.slot, sharing: &shared)
  }

  /// Whether the checksum of a block holds at its place.
  func isIntact(_ block: [UInt8], _ number: Int) -> Bool {
    block.withUnsafeBytes {
      BlockHeader.verify(
        $0, file: Self.file, offset: Self.frameOffset + UInt64(blocks[number].lowerBound))
    }
  }
}

/// Everything that can be asked of a block, so that hostile bytes show what they can do: of all of it,
/// and of single records. What both give must be the same, whatever was read before.
func exercise(_ bytes: [UInt8], _ format: HlcFormat = .hybrid) {
  let decoded = try? bytes.withUnsafeBytes { try DecodedBlock($0) }
  if let decoded {
    for slot in decoded.rows.indices {
      _ = try? decoded.withFields(slot) { $0.contentChecksum }
      _ = try? decoded.withHlcKey(slot, format: format) { $1 &+ $2 &+ UInt64($3.count) }
      _ = decoded.withId(slot) { $0.count }
      _ = decoded.collection(slot)
      _ = try? decoded.id(slot)
    }
  }
  guard let stored = try? bytes.withUnsafeBytes({ try StoredBlock($0) }),
    let reader = try? BlockReader(stored)
  else {
    #expect(decoded == nil)
    return
  }
  var shared = SharedFields()
  var seen: [Int: ChangeRecord] = [:]
  for slot in [0, Int(stored.header.recordCount) - 1] + Array(0..<Int(stored.header.recordCount)) {
    let record = try? reader.record(slot, sharing: &shared)
    if let record {
      #expect(seen[slot, default: record] == record)
      seen[slot] = record
    }
    guard let decoded else { continue }
    let fields = try? decoded.withFields(slot) { fields in
      [fields.collection, fields.id, fields.hlc, fields.payload].map { Array($0) }
    }
    if let record, let fields {
      let texts = [record.collection, record.id, record.hlcTimestamp].map { Array($0.utf8) }
      #expect(texts + [Array(record.payload)] == fields)
    }
  }
}
