import AirDbLogStore
import Foundation

/// What a store holds, in two numbers by which engines are compared.
struct Digest: Codable, Equatable {
  var count = 0
  /// Of all fields of all records, whatever their order.
  var content: UInt64 = 0
  /// Of the timestamps in the order in which they came.
  var order: UInt64 = 0

  mutating func add(_ record: ChangeRecord) {
    count += 1
    var hash = Fnv()
    hash.add(record.collection)
    hash.add(record.id)
    hash.add(UInt64(bitPattern: Int64(record.type.rawValue)))
    hash.add(record.payload)
    hash.add(record.hlcTimestamp)
    hash.add(record.authorPublicKey)
    hash.add(record.signature)
    content &+= hash.finish()
    var text = Fnv()
    text.add(record.hlcTimestamp)
    order = (order ^ text.finish()) &* 0x9E37_79B9_7F4A_7C15
  }
}

/// FNV-1a over words, with a good last mixing: not against enemies, but against mistakes.
struct Fnv {
  private var state: UInt64 = 0xCBF2_9CE4_8422_2325

  mutating func add(_ value: UInt64) {
    state = (state ^ value) &* 0x0000_0100_0000_01B3
    state ^= state >> 29
  }

  mutating func add(_ bytes: UnsafeRawBufferPointer) {
    add(UInt64(bytes.count))
    var offset = 0
    while offset + 8 <= bytes.count {
      add(bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      offset += 8
    }
    var rest: UInt64 = 0
    while offset < bytes.count {
      rest = rest << 8 | UInt64(bytes[offset])
      offset += 1
    }
    add(rest)
  }

  mutating func add(_ text: String) {
    var text = text
    text.withUTF8 { add(UnsafeRawBufferPointer($0)) }
  }

  mutating func add(_ data: Data?) {
    guard let data else { return add(UInt64.max) }
    data.withUnsafeBytes { add($0) }
  }

  func finish() -> UInt64 {
    var z = state
    z = (z ^ (z >> 32)) &* 0xD6E8_FEB8_6659_FD93
    return z ^ (z >> 32)
  }
}
