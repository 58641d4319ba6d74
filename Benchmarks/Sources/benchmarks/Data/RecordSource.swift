import AirDbLogStore
import Foundation

/// In which order timestamps arrive.
enum HlcOrder: String, Codable, CaseIterable {
  case ascending
  /// Any order: what arrives next lies anywhere between what is there.
  case random
  /// Eight devices, each ascending, whose clocks are up to ten minutes apart.
  case overlapping
}

/// Made-up records: the same from the same seed for every engine, each independent of the others.
///
/// 36-character random ids, 20 collections, timestamps of 13 digits, 4 and 8 hexadecimal ones, JSON
/// payloads that LZ4 shrinks about 2.9 times in blocks of 64 KiB; 30% signed, by 50 authors.
struct RecordSource {
  let seed: UInt64
  let payloadBytes: Int
  private let collections: [String]
  private let authors: [Data]
  private let words: [[UInt8]]

  static let standardPayload = 240
  /// Milliseconds of the first timestamp.
  private static let start = 1_700_000_000_000

  init(seed: UInt64, payloadBytes: Int = standardPayload) {
    self.seed = seed
    self.payloadBytes = payloadBytes
    var random = SeededGenerator(seed)
    collections = [
      "accounts", "albums", "attachments", "bookmarks", "calendars", "comments", "contacts",
      "documents", "events", "files", "folders", "lists", "messages", "notes", "projects",
      "reminders", "settings", "tags", "tasks", "users",
    ]
    authors = (0..<50).map { _ in Self.bytes(32, &random) }
    words = (0..<250).map { _ in
      let syllables = 1 + random.number(below: 4)
      return (0..<max(syllables, 1)).flatMap { _ in
        [
          Array("bcdfghklmnprstvw".utf8)[random.number(below: 16)],
          Array("aeiou".utf8)[random.number(below: 5)],
        ]
      }
    }
  }

  /// A record.
  ///
  /// - Parameters:
  ///   - key: Which collection and id.
  ///   - version: Which content.
  ///   - position: Which timestamp; the order of positions is that of timestamps.
  ///   - node: The device.
  func record(key: Int, version: Int, position: Int, node: Int? = nil) -> ChangeRecord {
    record(
      key: key, version: version,
      hlc: Self.hlc(milliseconds: position / 4, counter: position % 4, node: node ?? position % 8))
  }

  func record(key: Int, version: Int, hlc: String) -> ChangeRecord {
    var random = SeededGenerator(seed &+ UInt64(version) &* 0x1_0000_0001, item: key)
    let (collection, id) = self.key(key)
    let payload = payload(&random)
    let isSigned = random.number(below: 10) < 3
    return ChangeRecord(
      id: id, collection: collection, type: version == 0 ? .insert : .update, payload: payload,
      hlcTimestamp: hlc,
      authorPublicKey: isSigned ? authors[random.number(below: authors.count)] : nil,
      signature: isSigned ? Self.bytes(64, &random) : nil)
  }

  /// The collection and the id of a key.
  func key(_ number: Int) -> (collection: String, id: String) {
    var random = SeededGenerator(seed ^ 0x1D, item: number)
    let collection = collections[random.number(below: collections.count)]
    let id = UUID(
      uuid: withUnsafeBytes(of: (random.next(), random.next())) { $0.load(as: uuid_t.self) })
    return (collection, id.uuidString.lowercased())
  }

  /// `13 digits-4 hexadecimal-8 hexadecimal`.
  static func hlc(milliseconds: Int, counter: Int, node: Int) -> String {
    String(unsafeUninitializedCapacity: 27) { bytes in
      var number = start + milliseconds
      for place in (0..<13).reversed() {
        bytes[place] = UInt8(ascii: "0") + UInt8(number % 10)
        number /= 10
      }
      func hexadecimal(_ value: Int, _ range: Range<Int>) {
        var value = value
        for place in range.reversed() {
          let digit = UInt8(value & 15)
          bytes[place] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
          value >>= 4
        }
        bytes[range.lowerBound - 1] = UInt8(ascii: "-")
      }
      hexadecimal(counter, 14..<18)
      hexadecimal(0x5EED_0000 + node * 0x0101, 19..<27)
      return 27
    }
  }

  private func payload(_ random: inout SeededGenerator) -> Data {
    guard payloadBytes > 0 else { return Data() }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(payloadBytes + 64)
    func text(_ text: StaticString) {
      bytes.append(
        contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }
    func words(_ count: Int) {
      for index in 0..<count {
        if index > 0 { bytes.append(0x20) }
        bytes.append(contentsOf: self.words[random.number(below: self.words.count)])
      }
    }
    text(#"{"title":""#)
    words(3)
    text(#"","body":""#)
    // 13 words make about the standard size.
    words(13)
    while bytes.count < payloadBytes - 140 {
      bytes.append(0x20)
      words(8)
    }
    text(#"","done":"#)
    if random.number(below: 2) == 0 { text("true") } else { text("false") }
    text(#","priority":"#)
    bytes.append(UInt8(ascii: "0") + UInt8(random.number(below: 5)))
    text(#","updatedAt":"#)
    bytes.append(contentsOf: String(Self.start + random.number(below: 1_000_000_000)).utf8)
    text(#","owner":"user-"#)
    bytes.append(contentsOf: String(random.number(below: 50)).utf8)
    text(#"","tags":[""#)
    words(1)
    text(#"",""#)
    words(1)
    text(#""],"archived":false,"version":1}"#)
    return Data(bytes)
  }

  private static func bytes(_ count: Int, _ random: inout SeededGenerator) -> Data {
    var data = Data(capacity: count)
    for _ in 0..<(count / 8) { withUnsafeBytes(of: random.next()) { data.append(contentsOf: $0) } }
    return data
  }
}

extension RecordSource {
  /// The timestamps of new records in the order of their arrival, as positions.
  static func positions(count: Int, order: HlcOrder, seed: UInt64) -> [Int] {
    switch order {
    case .ascending:
      return Array(0..<count)
    case .random:
      var random = SeededGenerator(seed ^ 0x5F)
      var positions = Array(0..<count)
      for last in stride(from: count - 1, to: 0, by: -1) {
        positions.swapAt(last, random.number(below: last + 1))
      }
      return positions
    case .overlapping:
      // Positions are quarters of milliseconds. A record every 10 ms, by each device in turn, whose
      // distance from the next is an eighth of ten minutes. No position occurs twice.
      let distance = 10 * 60 * 1_000 * 4 / 8
      return (0..<count).map { number in number * 40 + number % 8 * (distance + 1) }
    }
  }
}
