/// The 128-bit keyed hash of a record's key (Format 7): SipHash-2-4 with 16 bytes of output, by
/// Aumasson and Bernstein.
///
/// Two keys with equal hashes count as equal. With a secret that only the store knows, nobody can
/// construct such a pair, and by chance one is to be expected among 2^64 keys.
package struct KeyHash: Hashable, Sendable {
  /// The first and last eight bytes, as little-endian numbers.
  package let first: UInt64
  package let second: UInt64

  @inline(__always)
  package init(first: UInt64, second: UInt64) {
    self.first = first
    self.second = second
  }

  /// The order of the index: by the sixteen bytes.
  @inline(__always)
  package static func < (a: KeyHash, b: KeyHash) -> Bool {
    a.first == b.first
      ? a.second.byteSwapped < b.second.byteSwapped : a.first.byteSwapped < b.first.byteSwapped
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(first) }
}

/// The secret of a store, for ``KeyHash``.
package struct KeyHashSecret: Sendable, Equatable {
  package let first: UInt64
  package let second: UInt64

  package init(first: UInt64, second: UInt64) {
    self.first = first
    self.second = second
  }

  package func hash(
    collection: UnsafeRawBufferPointer, id: UnsafeRawBufferPointer
  ) -> KeyHash {
    var state = SipState(key: self)
    state.update(UInt32(truncatingIfNeeded: collection.count))
    state.update(collection)
    state.update(id)
    return state.finish()
  }
}

private struct SipState {
  private var v0: UInt64
  private var v1: UInt64
  private var v2: UInt64
  private var v3: UInt64
  /// Bytes that do not fill a word yet, the first lowest.
  private var tail: UInt64 = 0
  private var tailCount: UInt64 = 0
  private var length: UInt64 = 0

  init(key: KeyHashSecret) {
    v0 = key.first ^ 0x736f_6d65_7073_6575
    v1 = key.second ^ 0x646f_7261_6e64_6f6d ^ 0xee
    v2 = key.first ^ 0x6c79_6765_6e65_7261
    v3 = key.second ^ 0x7465_6462_7974_6573
  }

  @inline(__always)
  private mutating func round() {
    v0 &+= v1
    v1 = (v1 << 13) | (v1 >> 51)
    v1 ^= v0
    v0 = (v0 << 32) | (v0 >> 32)
    v2 &+= v3
    v3 = (v3 << 16) | (v3 >> 48)
    v3 ^= v2
    v0 &+= v3
    v3 = (v3 << 21) | (v3 >> 43)
    v3 ^= v0
    v2 &+= v1
    v1 = (v1 << 17) | (v1 >> 47)
    v1 ^= v2
    v2 = (v2 << 32) | (v2 >> 32)
  }

  @inline(__always)
  private mutating func compress(_ word: UInt64) {
    v3 ^= word
    round()
    round()
    v0 ^= word
  }

  mutating func update(_ value: UInt32) {
    append(UInt64(value), count: 4)
  }

  /// Takes the lowest `count` (1...8) bytes of `word`, the others being zero.
  @inline(__always)
  private mutating func append(_ word: UInt64, count: UInt64) {
    length &+= count
    tail |= word << (8 * tailCount)
    let filled = tailCount + count
    if filled < 8 {
      tailCount = filled
    } else {
      compress(tail)
      let used = 8 - tailCount
      tail = used == 8 ? 0 : word >> (8 * used)
      tailCount = filled - 8
    }
  }

  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    var index = 0
    while index + 8 <= bytes.count {
      append(bytes.load(UInt64.self, at: index), count: 8)
      index += 8
    }
    if index < bytes.count {
      let rest = bytes.count - index
      append(bytes.load(at: index, width: rest), count: UInt64(rest))
    }
  }

  mutating func finish() -> KeyHash {
    compress(tail | (length << 56))
    v2 ^= 0xee
    round()
    round()
    round()
    round()
    let first = v0 ^ v1 ^ v2 ^ v3
    v1 ^= 0xdd
    round()
    round()
    round()
    round()
    return KeyHash(first: first, second: v0 ^ v1 ^ v2 ^ v3)
  }
}
