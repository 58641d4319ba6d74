import AirDbLogStore
import Foundation
import HlcText
import TestSupport

/// What the pieces work on: records as the benchmarks of whole stores have them, of one segment.
struct Samples {
  let records: [ChangeRecord]
  let secret = KeyHashSecret(first: 0x0123_4567_89AB_CDEF, second: 0xFEDC_BA98_7654_3210)
  let hashes: [KeyHash]
  /// 8 KiB of payloads, and the same compressed.
  let text: [UInt8]
  let compressed: [UInt8]
  private(set) var blocks: [[UInt8]] = []
  private(set) var stored: [StoredBlock] = []
  private(set) var log: RowLog
  private(set) var index: SealedIndex

  private static let file: UInt64 = 7
  private static let count = 20_000

  init() throws {
    var random = SeededGenerator(seed: 1)
    let secret = secret
    records = (0..<Self.count).map { Self.record($0, &random) }
    hashes = records.map { Self.hash($0, secret) }
    text = Array(records.lazy.flatMap(\.payload).prefix(8 << 10))
    var target = [UInt8](repeating: 0, count: 16 << 10)
    let size = text.withUnsafeBytes { source in
      target.withUnsafeMutableBytes { Lz4.compress(source, into: $0) ?? 0 }
    }
    compressed = Array(target.prefix(size))
    log = RowLog(fileId: Self.file, base: 0)
    index = try SealedIndex(
      PageSource(
        fileId: Self.file,
        .memory(Self.build(Self.fill(RowLog(fileId: Self.file, base: 0), records, hashes))),
        cache: BlockCache(capacity: 64 << 20))
    ) { _ in true }
    log = fillLog()
    var frame = ByteBuffer()
    let starts = encode(into: &frame) + [frame.count]
    let bytes = frame.bytes
    blocks = zip(starts, starts.dropFirst()).map { Array(bytes[$0..<$1]) }
    stored = try blocks.map { try $0.withUnsafeBytes { try StoredBlock($0) } }
  }

  private static let words = [
    "agree", "amber", "basin", "bright", "candle", "carry", "delta", "distant", "ember", "engine",
    "fable", "forest", "garden", "gentle", "harbor", "hollow", "island", "kernel", "ladder",
    "lantern", "meadow", "mirror", "needle", "ocean", "orchard", "paper", "pebble", "quiet",
    "ribbon", "river", "saddle", "silver", "temple", "timber", "umbrella", "valley", "velvet",
    "window", "winter", "yellow",
  ]

  private static func record(_ number: Int, _ random: inout SeededGenerator) -> ChangeRecord {
    func text(_ count: Int) -> String {
      (0..<count).map { _ in words[Int.random(in: 0..<words.count, using: &random)] }
        .joined(separator: " ")
    }
    let id = UUID(
      uuid: withUnsafeBytes(of: (random.next(), random.next())) { $0.load(as: uuid_t.self) })
    let counter = String(number % 4 + 0x10000, radix: 16).dropFirst()
    let isSigned = number % 10 < 3
    return ChangeRecord(
      id: id.uuidString.lowercased(), collection: "collection \(number % 20)", type: .insert,
      payload: Data(#"{"title":"\#(text(3))","body":"\#(text(26))","done":false}"#.utf8),
      hlcTimestamp: "\(1_700_000_000_000 + number / 4)-\(counter)-5eed000\(number % 8)",
      authorPublicKey: isSigned ? Data(repeating: UInt8(number % 50), count: 32) : nil,
      signature: isSigned ? Data(random.bytes(64)) : nil)
  }

  static func hash(_ record: ChangeRecord, _ secret: KeyHashSecret) -> KeyHash {
    withBytes(of: record) { secret.hash(collection: $0.collection, id: $0.id) }
  }

  /// Encodes all records; where each block begins.
  func encode(into frame: inout ByteBuffer) -> [Int] {
    var encoder = BlockEncoder(target: Configuration().blockBytes)
    var offsets: [UInt64] = []
    for record in records {
      withBytes(of: record) { bytes in
        guard
          let parts = parseHlc(bytes.hlc.assumingMemoryBound(to: UInt8.self), format: .hybrid)
        else { return }
        _ = encoder.add(
          bytes, parts: parts, contentChecksum: bytes.contentChecksum, to: &frame, frameStart: 0,
          file: Self.file, frameOffset: 0, offsets: &offsets)
      }
    }
    _ = encoder.finishFrame(
      into: &frame, frameStart: 0, file: Self.file, frameOffset: 0, offsets: &offsets)
    return offsets.map { Int($0) }
  }

  func fillLog() -> RowLog { Self.fill(RowLog(fileId: Self.file, base: 0), records, hashes) }

  private static func fill(
    _ log: RowLog, _ records: [ChangeRecord], _ hashes: [KeyHash]
  ) -> RowLog {
    for (number, record) in records.enumerated() {
      withBytes(of: record) { bytes in
        guard
          let parts = parseHlc(bytes.hlc.assumingMemoryBound(to: UInt8.self), format: .hybrid)
        else { return }
        _ = log.append(
          RowLog.NewRow(
            hash: hashes[number], physical: parts.physical, counter: parts.counter,
            node: UnsafeRawBufferPointer(rebasing: bytes.hlc[parts.nodeStart...]),
            collection: bytes.collection, block: UInt64(number / 30) * 3_000,
            slot: UInt8(number % 30), contentChecksum: 0, isDeletion: false))
      }
    }
    return log
  }

  func buildIndex() -> [UInt8] { Self.build(log) }

  private static func build(_ log: RowLog) -> [UInt8] {
    let result = IndexBuilder.build(
      log.snapshot(),
      IndexBuilder.Segment(
        storeId: StoreId(first: 1, second: 2), fileId: file, length: 1 << 24, firstSequence: 1,
        lastSequence: 2, lastChecksum: 3))
    return Array(result.bytes.bytes)
  }
}
