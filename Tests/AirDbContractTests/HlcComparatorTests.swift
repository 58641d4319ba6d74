import AirDbContract
import Foundation
import Testing

/// The parts of `Spec/vectors/hlc.json` that are about order; `Spec/HLC.md` describes the fields.
private struct OrderVectors: Decodable {
  struct Text: Decodable {
    var text: String
  }

  struct Order: Decodable {
    var name: String
    var order: String
    var groups: [[String]]
  }

  var hybrid: [Text]
  var utf8Order: [Text]
  var orders: [Order]

  static func load() throws -> OrderVectors {
    let file = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("Spec/vectors/hlc.json")
    return try JSONDecoder().decode(OrderVectors.self, from: Data(contentsOf: file))
  }
}

@Suite("HlcComparator")
struct HlcComparatorTests {
  @Test("lists of the vectors ascend from group to group, and are equal within a group")
  func vectors() throws {
    let lists = try OrderVectors.load().orders.filter { $0.order != "utf8Order" }
    #expect(lists.count >= 7)
    for list in lists {
      let ranked = list.groups.enumerated().flatMap { rank, group in group.map { (rank, $0) } }
      for (leftRank, lhs) in ranked {
        for (rightRank, rhs) in ranked {
          let expected = (leftRank - rightRank).signum()
          #expect(HlcComparator.compare(lhs, rhs) == expected, "\(list.name): \(lhs) \(rhs)")
        }
      }
    }
  }

  /// A relation is a total preorder on a set exactly when some ranking explains it, so it is
  /// enough to rank a set by sorting and to look at all pairs.
  @Test("the order is total, antisymmetric and transitive over texts of every kind")
  func totalPreorder() throws {
    let vectors = try OrderVectors.load()
    let texts = vectors.hybrid.map(\.text) + vectors.utf8Order.map(\.text)
    let sorted = texts.sorted { HlcComparator.compare($0, $1) < 0 }
    var ranks = [0]
    for (lower, upper) in zip(sorted, sorted.dropFirst()) {
      let isEqual = HlcComparator.compare(lower, upper) == 0
      ranks.append(ranks[ranks.count - 1] + (isEqual ? 0 : 1))
    }
    for (index, lhs) in sorted.enumerated() {
      for (otherIndex, rhs) in sorted.enumerated() {
        let expected = (ranks[index] - ranks[otherIndex]).signum()
        #expect(HlcComparator.compare(lhs, rhs) == expected)
      }
    }
  }

  @Test("a later counter is greater where its text is less")
  func notTheOrderOfTexts() {
    let earlier = "1700000000000-9-a"
    let later = "1700000000000-10-a"
    #expect(later < earlier)
    #expect(HlcComparator.compare(earlier, later) < 0)
  }

  @Test("canonically equivalent nodes are different")
  func canonicalEquivalence() {
    let composed = "1700000000000-0-\u{E9}"
    let decomposed = "1700000000000-0-e\u{301}"
    #expect(composed == decomposed)
    #expect(HlcComparator.compare(composed, decomposed) == 1)
    #expect(HlcComparator.compare("\u{E9}", "e\u{301}") == 1)
  }
}
