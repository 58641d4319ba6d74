/// A blocked Bloom filter over key hashes (Format 8; Putze, Sanders and Singler, "Cache-, Hash- and
/// Space-Efficient Bloom Filters", 2007): 64-byte blocks, 16 bits a key, 7 probes, about 1 in 700
/// absent keys let through.
package enum KeyFilter {
  @inline(__always)
  static func block(_ hash: KeyHash, count: UInt32) -> Int {
    Int(truncatingIfNeeded: ((hash.first >> 32) &* UInt64(count)) >> 32)
  }

  package static func insert(
    _ hash: KeyHash, into bits: UnsafeMutableRawBufferPointer, count: UInt32
  ) {
    let start = block(hash, count: count) * IndexHeader.filterBlockSize
    for probe in 0..<7 {
      let bit = Int((hash.second >> UInt64(9 * probe)) & 511)
      bits[start + bit >> 3] |= 1 << UInt8(bit & 7)
    }
  }

  /// False if the key is certainly absent.
  @inline(__always)
  package static func mayContain(
    _ hash: KeyHash, in bits: UnsafeRawBufferPointer, count: UInt32
  ) -> Bool {
    let start = block(hash, count: count) * IndexHeader.filterBlockSize
    for probe in 0..<7 {
      let bit = Int((hash.second >> UInt64(9 * probe)) & 511)
      if bits[start + bit >> 3] & (1 << UInt8(bit & 7)) == 0 { return false }
    }
    return true
  }
}
