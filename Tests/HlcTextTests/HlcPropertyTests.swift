import HlcText
import Testing

@Suite("Properties of timestamps")
struct HlcPropertyTests {
  @Test("every text made by the grammar is read", arguments: 1...4)
  func totality(seed: UInt64) {
    var generator = HlcTextGenerator(seed: seed)
    for _ in 0..<5_000 {
      let text = generator.hybrid()
      #expect(parse(text, .hybrid) != nil, "\(String(decoding: text, as: UTF8.self))")
    }
  }

  /// A relation is a total preorder on a set exactly when some ranking explains it, so it is
  /// enough to rank a set by sorting and to look at all pairs.
  @Test("the order is total, antisymmetric and transitive", arguments: 1...3)
  func totalPreorder(seed: UInt64) throws {
    var generator = HlcTextGenerator(seed: seed)
    var texts = (0..<200).map { _ in generator.hybrid() }
    // Neighbours and equals: the same parts in another spelling, or with one part exchanged.
    for text in texts {
      let parts = try #require(parse(text, .hybrid))
      let counterEnd = parts.physicalLength + 1 + parts.counterLength
      texts.append(Array(text[..<counterEnd]) + generator.separator() + generator.node())
      var other = text
      other[parts.physicalLength] = UInt8(ascii: "_")
      for position in (parts.physicalLength + 1)..<counterEnd where other[position] >= 0x41 {
        other[position] ^= 0x20
      }
      #expect(compare(text, other, .hybrid) == 0)
      texts.append(other)
    }
    try expectTotalPreorder(texts.shuffled(using: &generator.random), .hybrid)
  }

  private func expectTotalPreorder(_ texts: [[UInt8]], _ format: HlcFormat) throws {
    let sorted = try texts.sorted { try #require(compare($0, $1, format)) < 0 }
    var rank = 0
    var ranks = [0]
    for (lower, upper) in zip(sorted, sorted.dropFirst()) {
      if compare(lower, upper, format) != 0 { rank += 1 }
      ranks.append(rank)
    }
    for (index, lhs) in sorted.enumerated() {
      for (otherIndex, rhs) in sorted.enumerated() {
        let expected = (ranks[index] - ranks[otherIndex]).signum()
        if compare(lhs, rhs, format) != expected {
          Issue.record("\(lhs) and \(rhs) are not in order")
        }
      }
    }
  }

  @Test("counters are ordered by length without leading zeros, then bytes, ignoring case")
  func counterOrder() throws {
    var generator = HlcTextGenerator(seed: 1)
    let physical = Array("1700000000000-".utf8)
    let counters = (0..<600).map { _ in generator.counter() }
    for lhs in counters {
      for rhs in counters {
        let left = lhs.drop { $0 == 0x30 }.map { $0 >= 0x61 ? $0 - 0x20 : $0 }
        let right = rhs.drop { $0 == 0x30 }.map { $0 >= 0x61 ? $0 - 0x20 : $0 }
        let expected =
          left.count != right.count
          ? (left.count - right.count).signum()
          : left.lexicographicallyPrecedes(right) ? -1 : left == right ? 0 : 1
        if compare(physical + lhs, physical + rhs, .hybrid) != expected {
          Issue.record("\(lhs) and \(rhs) are not in order")
        }
      }
    }
  }

  @Test("the order of utf8Order is that of the bytes", arguments: 1...4)
  func utf8Order(seed: UInt64) {
    var generator = HlcTextGenerator(seed: seed)
    var texts: [[UInt8]] = []
    for _ in 0..<150 {
      let count = generator.pick([1, 2, 7, 8, 9, 15, 16, 17, 18, 24, 40])
      texts.append(generator.bytes(count, of: [0, 0, 0, 1]))
      texts.append(generator.anyBytes(count))
      texts.append(generator.bytes(count - 1, of: [0x61]) + generator.bytes(1, of: [0, 0x61]))
    }
    for lhs in texts {
      for rhs in texts {
        let expected = lhs.lexicographicallyPrecedes(rhs) ? -1 : lhs == rhs ? 0 : 1
        if compare(lhs, rhs, .utf8Order) != expected {
          Issue.record("\(lhs) and \(rhs) are not in order")
        }
      }
    }
  }

  @Test("rendering gives back every text that has a shape", arguments: 1...4)
  func rendering(seed: UInt64) {
    var generator = HlcTextGenerator(seed: seed)
    var shapeCount = 0
    for _ in 0..<10_000 {
      let text = generator.hybrid()
      guard shapeOf(text) != nil else { continue }
      shapeCount += 1
      if rendered(text) != text { Issue.record("\(text) is not rendered back") }
    }
    #expect(shapeCount > 5_000)
  }

  @Test("only counters of mixed case have no shape")
  func shapeless() throws {
    var generator = HlcTextGenerator(seed: 7)
    for _ in 0..<10_000 {
      let text = generator.hybrid()
      let parts = try #require(parse(text, .hybrid))
      let counter = text[(parts.physicalLength + 1)...].prefix(parts.counterLength)
      let isMixed =
        counter.contains { 0x41...0x5A ~= $0 } && counter.contains { 0x61...0x7A ~= $0 }
      #expect((shapeOf(text) == nil) == isMixed)
    }
  }

  @Test("every day of the calendar is a day after the one before it, and is rendered back")
  func calendar() throws {
    let dayLength: UInt64 = 86_400_000_000_000
    let node: [UInt8] = []
    let shape = HlcShape(
      kind: HlcPhysicalKind.iso8601.rawValue, physicalDigits: HlcShape.noFraction,
      separator1: 0x2D, counterDigits: 1, counterIsUpper: 0, separator2: 0)
    let twoDigits = (0...31).map { $0 < 10 ? "0\($0)" : "\($0)" }
    var dayCount: UInt64 = 0
    for year in 1970...2553 {
      for month in 1...12 {
        for day in 1...31 {
          let text = Array("\(year)-\(twoDigits[month])-\(twoDigits[day])T00:00:00Z-0".utf8)
          guard let parts = parse(text, .hybrid) else {
            #expect(day > 28)
            continue
          }
          let backAgain = render(
            shape, physical: parts.physical, counter: 0, node: node, capacity: text.count)
          if parts.physical != dayCount * dayLength || backAgain != text {
            Issue.record("\(year)-\(month)-\(day) is not where it should be")
          }
          dayCount += 1
        }
      }
    }
    // 584 years, and the leap days from 1972 to 2552 but for 2100, 2200, 2300 and 2500.
    #expect(dayCount == 584 * 365 + 146 - 4)
  }

  @Test("a byte order is lexicographic at every length and difference")
  func byteOrder() {
    for count in 0...20 {
      let bytes = [UInt8](repeating: 0x7F, count: count)
      for position in 0..<count {
        for byte: UInt8 in [0x00, 0x7E, 0x80, 0xFF] {
          var other = bytes
          other[position] = byte
          expectOrder(bytes, other, byte > 0x7F ? -1 : 1)
        }
        expectOrder(Array(bytes[..<position]), bytes, -1)
      }
      expectOrder(bytes, bytes, 0)
    }
  }

  private func expectOrder(_ lhs: [UInt8], _ rhs: [UInt8], _ expected: Int) {
    lhs.withUnsafeBufferPointer { left in
      rhs.withUnsafeBufferPointer { right in
        #expect(compareBytes(left, right) == expected)
        #expect(compareBytes(right, left) == -expected)
      }
    }
  }
}
