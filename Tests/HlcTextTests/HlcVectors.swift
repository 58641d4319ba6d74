import Foundation
import HlcText

/// The content of `Spec/vectors/hlc.json`, whose fields `Spec/HLC.md` describes.
struct HlcVectors: Decodable {
  struct Text: Decodable, CustomStringConvertible {
    var family: String
    var text: String
    var malformed: Bool?
    var kind: String?
    var physical: String?
    var counter: String?
    var node: String?
    var nodeStart: Int?
    var shape: [UInt8]?

    var description: String { "\(family): \(text.prefix(80).debugDescription)" }
  }

  struct Order: Decodable {
    var name: String
    var order: String
    var groups: [[String]]
  }

  struct Unrenderable: Decodable {
    var why: String
    var shape: [UInt8]
    var physical: String
    var counter: String
    var node: String
  }

  var hybrid: [Text]
  var utf8Order: [Text]
  var orders: [Order]
  var unrenderable: [Unrenderable]

  static func load() throws -> HlcVectors {
    let file = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("Spec/vectors/hlc.json")
    return try JSONDecoder().decode(HlcVectors.self, from: Data(contentsOf: file))
  }
}

// MARK: - The functions under test, over arrays

func parse(_ text: [UInt8], _ format: HlcFormat) -> HlcParts? {
  text.withUnsafeBufferPointer { parseHlc($0, format: format) }
}

func compare(_ lhs: [UInt8], _ rhs: [UInt8], _ format: HlcFormat) -> Int? {
  lhs.withUnsafeBufferPointer { left in
    rhs.withUnsafeBufferPointer { right in
      guard let leftParts = parseHlc(left, format: format),
        let rightParts = parseHlc(right, format: format)
      else { return nil }
      return compareHlc(left, leftParts, right, rightParts)
    }
  }
}

func shapeOf(_ text: [UInt8]) -> HlcShape? {
  text.withUnsafeBufferPointer { text in
    parseHlc(text, format: .hybrid).flatMap { hlcShape(of: text, parts: $0) }
  }
}

func render(
  _ shape: HlcShape, physical: UInt64, counter: UInt64, node: [UInt8], capacity: Int = 2_048
) -> [UInt8]? {
  node.withUnsafeBufferPointer { node in
    let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: capacity)
    defer { buffer.deallocate() }
    buffer.initialize(repeating: 0)
    return renderHlc(shape: shape, physical: physical, counter: counter, node: node, into: buffer)
      .map { Array(buffer[..<$0]) }
  }
}

/// What rendering the shape and the parts of a text gives; nil when it has no shape.
func rendered(_ text: [UInt8]) -> [UInt8]? {
  guard let shape = shapeOf(text), let parts = parse(text, .hybrid) else { return nil }
  return render(
    shape, physical: parts.physical, counter: parts.counter,
    node: Array(text[parts.nodeStart...]), capacity: text.count)
}

extension HlcShape {
  /// The shape of six bytes in the order of the file format.
  init?(bytes: [UInt8]) {
    guard bytes.count == 6 else { return nil }
    self.init(
      kind: bytes[0], physicalDigits: bytes[1], separator1: bytes[2], counterDigits: bytes[3],
      counterIsUpper: bytes[4], separator2: bytes[5])
  }

  var bytes: [UInt8] {
    [kind, physicalDigits, separator1, counterDigits, counterIsUpper, separator2]
  }
}
