/// SplitMix64: the same numbers for the same seed, on every platform.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) {
    state = seed
  }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var word = state
    word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
    return word ^ (word >> 31)
  }
}

/// Makes texts, mostly near the edges of the grammar and near each other.
struct HlcTextGenerator {
  var random: SeededGenerator

  init(seed: UInt64) {
    random = SeededGenerator(seed: seed)
  }

  mutating func int(_ range: ClosedRange<Int>) -> Int {
    Int.random(in: range, using: &random)
  }

  /// A number whose length in bits is uniform.
  mutating func number() -> UInt64 {
    random.next() >> UInt64(int(0...63))
  }

  mutating func pick<Element>(_ elements: [Element]) -> Element {
    elements[int(0...(elements.count - 1))]
  }

  mutating func bytes(_ count: Int, of alphabet: [UInt8]) -> [UInt8] {
    (0..<count).map { _ in pick(alphabet) }
  }

  mutating func anyBytes(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
  }

  /// A well-formed timestamp of the format `hybrid`.
  mutating func hybrid() -> [UInt8] {
    var text = int(0...1) == 0 ? decimal() : iso8601()
    text += separator() + counter()
    if int(0...3) > 0 { text += separator() + node() }
    return text
  }

  mutating func decimal() -> [UInt8] {
    let digits = int(10...19)
    let significant = int(0...digits)
    return bytes(digits - significant, of: [0x30]) + bytes(significant, of: pick(Self.digitSets))
  }

  mutating func iso8601() -> [UInt8] {
    let year = pick([1970, 1972, 1999, 2000, 2023, 2024, 2100, 2400, 2553])
    let parts = [
      (year, 4), (int(1...12), 2), (int(1...28), 2), (int(0...23), 2), (int(0...59), 2),
      (int(0...59), 2),
    ].map { value, digits in
      let text = String(value)
      return String(repeating: "0", count: digits - text.count) + text
    }
    let instant =
      "\(parts[0])-\(parts[1])-\(parts[2])T\(parts[3]):\(parts[4]):\(parts[5])"
    var text = Array(instant.utf8)
    if int(0...2) > 0 {
      text += [UInt8(ascii: ".")] + bytes(int(1...9), of: pick(Self.digitSets))
    }
    return text + [UInt8(ascii: "Z")]
  }

  /// 1 to 16 letters and digits, at most 12 after leading zeros.
  mutating func counter() -> [UInt8] {
    let count = int(1...16)
    let significant = int(0...min(count, 12))
    let alphabet = pick(Self.digitSets + Self.letterSets)
    return bytes(count - significant, of: [0x30]) + bytes(significant, of: alphabet)
  }

  mutating func node() -> [UInt8] {
    let count = pick([1, 1, 2, 7, 8, 9, 16, 36])
    return int(0...1) == 0 ? bytes(count, of: Array("ab-".utf8)) : anyBytes(count)
  }

  mutating func separator() -> [UInt8] {
    [pick(Array("-:_".utf8))]
  }

  /// Any text: a timestamp, one with a few bytes changed, inserted, removed or cut, or noise.
  mutating func arbitrary() -> [UInt8] {
    switch int(0...5) {
    case 0: return hybrid()
    case 1: return anyBytes(int(0...40))
    case 2: return bytes(int(0...40), of: Array("0129-:_.TZtzaA\0 ".utf8))
    default:
      var text = hybrid()
      for _ in 0..<int(1...3) { mutate(&text) }
      return text
    }
  }

  private mutating func mutate(_ text: inout [UInt8]) {
    guard !text.isEmpty else { return }
    let position = int(0...(text.count - 1))
    let byte = int(0...1) == 0 ? pick(Array("0129-:_.TZtzaA\0 ".utf8)) : anyBytes(1)[0]
    switch int(0...3) {
    case 0: text[position] = byte
    case 1: text.insert(byte, at: position)
    case 2: text.remove(at: position)
    default: text.removeSubrange(position...)
    }
  }

  private static let digitSets: [[UInt8]] = ["0", "01", "9", "0123456789"].map { Array($0.utf8) }
  private static let letterSets: [[UInt8]] = [
    "0aA", "zZ", "0123456789abcdef", "0123456789ABCDEF", "09azAZ",
  ].map { Array($0.utf8) }
}
