import HlcText
import Testing

/// In a debug build, reading past the end of a buffer traps; so these tests look at bounds too.
@Suite("Hostile timestamps")
struct HlcFuzzTests {
  @Test("no text traps, and what is read is rendered back or has no shape", arguments: 1...4)
  func texts(seed: UInt64) {
    var generator = HlcTextGenerator(seed: seed)
    var wellFormedCount = 0
    var malformedCount = 0
    for _ in 0..<15_000 {
      let text = generator.arbitrary()
      if parse(text, .hybrid) != nil {
        wellFormedCount += 1
        if shapeOf(text) != nil, rendered(text) != text {
          Issue.record("\(text) is not rendered back")
        }
      } else {
        malformedCount += 1
      }
      if (parse(text, .utf8Order) == nil) != text.isEmpty {
        Issue.record("\(text) is not read as utf8Order")
      }
    }
    #expect(wellFormedCount > 2_000 && malformedCount > 2_000)
  }

  @Test("every prefix of a timestamp is read or malformed, and never trapped on")
  func prefixes() {
    for text in [
      "1700000000000-00ab-node", "2023-11-14T22:13:20.123456789Z-0000-node",
      "2023-11-14T22:13:20Z:zzzz_node",
    ] {
      let bytes = Array(text.utf8)
      for count in 0...bytes.count {
        let prefix = Array(bytes[..<count])
        #expect(rendered(prefix) == (parse(prefix, .hybrid) == nil ? nil : prefix))
      }
    }
  }

  @Test("no shape traps, and what is rendered has that shape and those parts", arguments: 1...4)
  func shapes(seed: UInt64) throws {
    var generator = HlcTextGenerator(seed: seed)
    var renderedCount = 0
    for _ in 0..<40_000 {
      let isWild = generator.int(0...3) == 0
      let bytes =
        isWild
        ? generator.anyBytes(6)
        : [
          generator.pick([1, 2]), generator.pick([1, 3, 9, 10, 13, 19, 20, 255]),
          generator.pick([45, 58, 95, 0]), UInt8(generator.int(0...17)),
          UInt8(generator.int(0...1)), generator.pick([0, 45, 58, 95]),
        ]
      let shape = try #require(HlcShape(bytes: bytes))
      let physical = generator.number()
      let counter = generator.number()
      let node = generator.anyBytes(generator.pick([0, 0, 1, 8]))
      let capacity = generator.pick([0, 1, 20, 40, 64])
      guard
        let text = render(
          shape, physical: physical, counter: counter, node: node, capacity: capacity)
      else { continue }
      renderedCount += 1
      let parts = try #require(parse(text, .hybrid), "\(text)")
      #expect(shapeOf(text) == shape)
      #expect(parts.physical == physical && parts.counter == counter)
      #expect(text[parts.nodeStart...].elementsEqual(node))
      #expect(shape.textLength(nodeLength: node.count) == text.count)
    }
    #expect(renderedCount > 300)
  }

  @Test("a text is rendered into a buffer of its length, and not into a shorter one")
  func capacity() throws {
    let text = Array("2023-11-14T22:13:20.544Z-00FF-node".utf8)
    let shape = try #require(shapeOf(text))
    let parts = try #require(parse(text, .hybrid))
    let node = Array("node".utf8)
    for capacity in 0...(text.count + 1) {
      let found = render(
        shape, physical: parts.physical, counter: parts.counter, node: node, capacity: capacity)
      #expect(found == (capacity < text.count ? nil : text))
    }
  }

  @Test("the length of a text of a shape does not overflow")
  func lengthOverflow() throws {
    let shape = try #require(shapeOf(Array("1700000000000-0-n".utf8)))
    #expect(shape.textLength(nodeLength: .max) == nil)
    #expect(shape.textLength(nodeLength: .max - 16) == .max)
    #expect(shape.textLength(nodeLength: -1) == nil)
    #expect(shape.textLength(nodeLength: 0) == nil)
  }
}
