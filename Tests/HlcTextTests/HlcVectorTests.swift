import HlcText
import Testing

@Suite("The vectors of Spec/vectors/hlc.json")
struct HlcVectorTests {
  let vectors: HlcVectors

  init() throws {
    vectors = try HlcVectors.load()
  }

  @Test("the file has every family")
  func families() {
    #expect(
      Set(vectors.hybrid.map(\.family)) == [
        "in use", "decimal", "iso8601", "fraction", "counter", "case", "separators", "node",
        "length", "empty", "physical", "uuid-like",
      ])
    #expect(vectors.hybrid.count { $0.malformed == true } >= 80)
    #expect(Set(vectors.orders.map(\.order)) == ["hybrid", "utf8Order", "comparator"])
  }

  @Test("hybrid texts have the parts and shapes of the vectors, or are malformed")
  func hybridTexts() throws {
    for vector in vectors.hybrid { try expectParts(vector, .hybrid) }
  }

  @Test("utf8Order texts have the parts of the vectors, or are malformed")
  func utf8OrderTexts() throws {
    for vector in vectors.utf8Order { try expectParts(vector, .utf8Order) }
  }

  private func expectParts(_ vector: HlcVectors.Text, _ format: HlcFormat) throws {
    let text = Array(vector.text.utf8)
    let parts = parse(text, format)
    if vector.malformed == true {
      #expect(parts == nil, "\(vector)")
      return
    }
    let found = try #require(parts, "\(vector)")
    let kind: HlcPhysicalKind? =
      switch vector.kind {
      case "decimal": .decimal
      case "iso8601": .iso8601
      default: nil
      }
    #expect(found.kind == kind, "\(vector)")
    #expect(String(found.physical) == vector.physical, "\(vector)")
    #expect(String(found.counter) == vector.counter, "\(vector)")
    #expect(found.nodeStart == vector.nodeStart, "\(vector)")
    #expect(text[found.nodeStart...].elementsEqual((vector.node ?? "").utf8), "\(vector)")
    if format == .hybrid {
      #expect(shapeOf(text)?.bytes == vector.shape, "\(vector)")
      #expect(rendered(text) == (vector.shape == nil ? nil : text), "\(vector)")
    } else {
      #expect(text.withUnsafeBufferPointer { hlcShape(of: $0, parts: found) } == nil)
    }
  }

  @Test("lists ascend from group to group, and are equal within a group")
  func orders() {
    for list in vectors.orders where list.order != "comparator" {
      let format: HlcFormat = list.order == "hybrid" ? .hybrid : .utf8Order
      let ranked = list.groups.enumerated().flatMap { rank, group in
        group.map { (rank: rank, text: Array($0.utf8)) }
      }
      for lhs in ranked {
        for rhs in ranked {
          let expected = (lhs.rank - rhs.rank).signum()
          #expect(compare(lhs.text, rhs.text, format) == expected, "\(list.name): \(lhs) \(rhs)")
        }
      }
    }
  }

  @Test("invalid shapes and values are not rendered")
  func unrenderable() throws {
    for vector in vectors.unrenderable {
      let shape = try #require(HlcShape(bytes: vector.shape))
      let physical = try #require(UInt64(vector.physical))
      let counter = try #require(UInt64(vector.counter))
      let text = render(
        shape, physical: physical, counter: counter, node: Array(vector.node.utf8))
      #expect(text == nil, "\(vector.why)")
    }
  }
}
