/// Stamps a history that is replayed: the commit's time, a counter, and a hash of its author.
///
/// Commit times go back now and then, since people's clocks differ. Along a replay the stamps
/// increase strictly all the same, as a hybrid logical clock does: where time does not go on, the
/// counter does. So the last change of each file wins.
struct ReplayClock {
  private var milliseconds: UInt64 = 0
  private var counter: UInt64 = 0
  private var hasBegun = false

  /// The greatest time of 13 digits, in the year 2286; what claims to be later is taken for it.
  private static let latest: UInt64 = 9_999_999_999_999

  mutating func stamp(seconds: UInt64, author: [UInt8]) -> String {
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000)
    advance(to: overflow ? Self.latest : min(product, Self.latest))
    return Self.text(milliseconds, counter, node: Self.hash(author))
  }

  private mutating func advance(to now: UInt64) {
    if !hasBegun || now > milliseconds {
      hasBegun = true
      milliseconds = now
      counter = 0
    } else if counter < 0xFFFF {
      counter += 1
    } else {
      milliseconds += 1
      counter = 0
    }
  }

  /// 13 decimal digits, 4 and 16 hexadecimal ones.
  static func text(_ milliseconds: UInt64, _ counter: UInt64, node: UInt64) -> String {
    let digits: [(value: UInt64, radix: UInt64, count: Int)] = [
      (milliseconds, 10, 13), (counter, 16, 4), (node, 16, 16),
    ]
    var text: [UInt8] = []
    for (value, radix, count) in digits {
      if !text.isEmpty { text.append(UInt8(ascii: "-")) }
      let number = Array(String(value, radix: Int(radix)).utf8)
      text.append(contentsOf: repeatElement(UInt8(ascii: "0"), count: max(0, count - number.count)))
      text.append(contentsOf: number)
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// The 64-bit FNV-1a hash: a node only has to tell people apart.
  private static func hash(_ author: [UInt8]) -> UInt64 {
    author.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
  }
}
