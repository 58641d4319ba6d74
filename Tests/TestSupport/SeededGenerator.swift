/// SplitMix64: the same numbers from the same seed, on every platform and in every process.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  package init(seed: UInt64) {
    state = seed
  }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  package mutating func fill(_ buffer: UnsafeMutableRawBufferPointer) {
    var done = 0
    while done + 8 <= buffer.count {
      buffer.storeBytes(of: next().littleEndian, toByteOffset: done, as: UInt64.self)
      done += 8
    }
    for index in done..<buffer.count { buffer[index] = UInt8(truncatingIfNeeded: next()) }
  }

  package mutating func bytes(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    bytes.withUnsafeMutableBytes { fill($0) }
    return bytes
  }
}
