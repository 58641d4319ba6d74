package import AirDbLogStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Makes records and batches as a fleet of devices would, from a seed: repeated keys, clocks that
/// disagree, redeliveries, equal timestamps with different content, every form of id and clock
/// text.
package struct RecordGenerator: Sendable {
  package var random: SeededGenerator
  package var options: Options

  package struct Options: Sendable {
    /// How many different keys there are.
    package var keys = 200
    package var collections = ["notes", "tasks", "", "a:b", "caf\u{E9}", "cafe\u{301}"]
    package var nodes = 8
    /// How far a device's clock may be from the others', in milliseconds.
    package var skew: UInt64 = 5_000
    package var usesIso8601 = false
    /// Of how many records one is an exact redelivery of an earlier one.
    package var redelivery = 6
    /// Of how many records one has the key and timestamp of an earlier one and other content.
    package var conflict = 25
    package var payload = 0...300
    /// Of how many payloads one is larger than a block.
    package var largePayload = 200
    /// Whether timestamps have all the spellings of the grammar, or one.
    package var spellsFreely = true

    package init() {}
  }

  private var clock: UInt64 = 1_700_000_000_000
  /// Some of what was made, for redelivery.
  private var past: [ChangeRecord] = []

  package init(seed: UInt64, options: Options = Options()) {
    random = SeededGenerator(seed: seed)
    self.options = options
  }

  /// A number below `bound`.
  package mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

  private mutating func isOneIn(_ count: Int) -> Bool { count > 0 && below(count) == 0 }

  package mutating func batch(_ count: Int) -> [ChangeRecord] {
    (0..<count).map { _ in record() }
  }

  package mutating func record() -> ChangeRecord {
    if !past.isEmpty, isOneIn(options.redelivery) { return past[below(past.count)] }
    var record: ChangeRecord
    if !past.isEmpty, isOneIn(options.conflict) {
      record = past[below(past.count)]
      record.payload = payload()
    } else {
      let (collection, id) = key(below(options.keys))
      record = ChangeRecord(
        id: id, collection: collection, type: type(), payload: payload(),
        hlcTimestamp: timestamp())
    }
    if isOneIn(3) { record.authorPublicKey = data(32, below(5)) }
    if isOneIn(4) { record.signature = Data(random.bytes(isOneIn(5) ? 0 : 64)) }
    if record.type == .delete { record.payload = Data() }
    if past.count < 256 { past.append(record) } else { past[below(256)] = record }
    return record
  }

  // MARK: Parts

  /// The key of a number: always the same one.
  package func key(_ number: Int) -> (collection: String, id: String) {
    let collection = options.collections[number % options.collections.count]
    var numbers = SeededGenerator(seed: UInt64(number))
    let hex = (0..<4).map { _ in
      let digits = String(UInt32(truncatingIfNeeded: numbers.next()), radix: 16)
      return String(repeating: "0", count: 8 - digits.count) + digits
    }.joined()
    let part = { (from: Int, to: Int) in
      String(
        hex[hex.index(hex.startIndex, offsetBy: from)..<hex.index(hex.startIndex, offsetBy: to)])
    }
    let uuid = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)]
      .joined(separator: "-")
    let id =
      switch number % 7 {
      case 0, 1: uuid
      case 2: uuid.uppercased()
      case 3: "folder/\(number % 10)/page-\(number).md"
      case 4: "\u{0}\(number)\u{0}"
      case 5: number % 2 == 0 ? "\u{E9}\(number / 14)" : "e\u{301}\(number / 14)"
      default: number == 6 ? "" : "id:\(number)"
      }
    return (collection, id)
  }

  private mutating func type() -> MutationType {
    switch below(20) {
    case 0..<6: .insert
    case 6..<14: .update
    case 14..<18: .delete
    case 18: MutationType(rawValue: 3 + below(1_000))!
    default: MutationType(rawValue: [-1, Int.min, Int.max, 1 << 40][below(4)])!
    }
  }

  private mutating func payload() -> Data {
    let isLarge = isOneIn(options.largePayload)
    let count =
      isLarge
      ? Int.random(in: 8_000...40_000, using: &random)
      : Int.random(in: options.payload, using: &random)
    // Half of them shrink, half of them do not.
    if below(2) == 0 { return Data(random.bytes(count)) }
    let words = "the quick brown fox jumps over the lazy dog ".utf8
    let start = below(20)
    return Data((0..<count).map { Array(words)[($0 + start) % words.count] })
  }

  private func data(_ count: Int, _ number: Int) -> Data {
    var numbers = SeededGenerator(seed: UInt64(number) &+ 1_000)
    return Data(numbers.bytes(count))
  }

  /// A timestamp of one of the nodes, near the common clock, which this moves on.
  package mutating func timestamp() -> String {
    clock += UInt64(below(3))
    let node = below(options.nodes)
    let skew = options.skew == 0 ? 0 : UInt64(node) &* 977 % (options.skew + 1)
    let time = clock - skew
    let counter = below(4)
    let name = "n\(node)"
    let physical =
      options.usesIso8601 ? iso8601(time) : String(repeating: "0", count: padding(3)) + String(time)
    guard options.spellsFreely else { return "\(physical)-000\(counter)-\(name)" }
    let separators = ["-", ":", "_"]
    let digits = ["", "0", "00", "0a", "0A", "aB"][below(6)] + String(counter)
    let text = physical + separators[below(3)] + digits
    return isOneIn(10) ? text : text + separators[below(3)] + name
  }

  private mutating func padding(_ most: Int) -> Int {
    options.spellsFreely && isOneIn(3) ? below(most) : 0
  }

  private mutating func iso8601(_ milliseconds: UInt64) -> String {
    // All within the hour that begins at 2023-11-14T22:00:00Z.
    let inHour = milliseconds % 3_600_000
    func two(_ value: UInt64) -> String { value < 10 ? "0\(value)" : "\(value)" }
    let milli = String(inHour % 1_000)
    let fraction = String(repeating: "0", count: 3 - milli.count) + milli
    let seconds = "2023-11-14T22:\(two(inHour / 60_000)):\(two(inHour / 1_000 % 60))"
    if options.spellsFreely, isOneIn(4) { return seconds + ".\(fraction)000Z" }
    return seconds + ".\(fraction)Z"
  }
}
