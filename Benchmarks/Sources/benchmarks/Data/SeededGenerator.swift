/// SplitMix64: the same numbers from the same seed, in every process.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed }

  /// Numbers that belong to one item of many, independent of those of the others.
  init(_ seed: UInt64, item: Int) {
    var mixer = SeededGenerator(seed ^ UInt64(bitPattern: Int64(item)) &* 0xD6E8_FEB8_6659_FD93)
    state = mixer.next()
  }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  /// A number below `bound`, which is small: the bias does not matter here.
  mutating func number(below bound: Int) -> Int {
    Int(truncatingIfNeeded: next().multipliedFullWidth(by: UInt64(bound)).high)
  }
}
