import AirDbLogStore
import TestSupport
import Testing

/// Fault model F3: bytes that were durable change, go, or are replaced. The answer is right, or the
/// damage is named; never silently wrong or less.
@Suite("Rot")
struct RotTests {
  /// The stores, each built once.
  private static let stores = Result {
    try [RotStore(.tinyClosed), RotStore(.tinyUnclosed), RotStore(.tinyFresh)]
  }

  private func examine(_ what: String, _ damages: (RotStore) -> [Damage]) throws -> [Damage] {
    var unnoticed: [Damage] = []
    for store in try Self.stores.get() {
      let damages = damages(store)
      let outcomes = Locked<[RotOutcome: Int]>([:])
      let silent = Locked<[Damage]>([])
      record(
        forEachInThreads(damages) { damage in
          let outcome = try store.examine(damage)
          outcomes.withLock { $0[outcome, default: 0] += 1 }
          if outcome == .unnoticed { silent.withLock { $0.append(damage) } }
        })
      unnoticed += silent.withLock { $0 }
      let counts = outcomes.withLock { $0 }
      let text = RotOutcome.allCases.compactMap { outcome in
        counts[outcome].map { "\($0) \(outcome)" }
      }
      print("Rot, \(what), \(store.name): \(damages.count): \(text.joined(separator: ", "))")
    }
    return unnoticed
  }

  @Test("Every flipped bit of a segment, the manifest or the liveness comes to light")
  func bits() throws {
    let unnoticed = try examine("flipped bits") { store in
      store.names.filter { !$0.hasSuffix(".index") }.flatMap { name in
        (0..<store.meaningfulSize(name)).flatMap { byte in
          (0..<8).map { Damage(name, .flipBit(byte: byte, bit: $0)) }
        }
      }
    }
    #expect(unnoticed.map(\.description) == [])
  }
}
