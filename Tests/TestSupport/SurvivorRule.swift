/// Which of the units that were pending when power was lost have reached the medium. Units are
/// numbered in the order in which they were issued.
package enum SurvivorRule: Sendable, Hashable {
  case none
  case all
  case prefix(Int)
  case allButFirst
  case allButLast
  /// The units whose bits are set, for at most 64 of them.
  case exactly(UInt64)
  /// Each unit by chance; the seed also decides how likely.
  case subset(seed: UInt64)

  /// Up to this many units, every subset is tried.
  package static let exhaustiveLimit = 12

  /// The rules to try for a number of pending units: every subset where that is affordable,
  /// otherwise none, all, every prefix, all but the first, all but the last and seeded subsets.
  package static func rules(
    pendingCount count: Int, exhaustiveLimit: Int = exhaustiveLimit, seededSubsets: Int = 200,
    seed: UInt64 = 0
  ) -> [SurvivorRule] {
    if count <= exhaustiveLimit {
      return (0..<UInt64(1) << UInt64(count)).map { .exactly($0) }
    }
    var rules: [SurvivorRule] = [.none, .all, .allButFirst, .allButLast]
    rules += (0..<count).dropFirst().dropLast().map { .prefix($0) }
    rules += (0..<UInt64(seededSubsets)).map { .subset(seed: seed &+ $0) }
    return rules
  }

  /// For each of `count` units, whether it survived.
  package func survivors(of count: Int) -> [Bool] {
    switch self {
    case .none:
      return [Bool](repeating: false, count: count)
    case .all:
      return [Bool](repeating: true, count: count)
    case .prefix(let length):
      return (0..<count).map { $0 < length }
    case .allButFirst:
      return (0..<count).map { $0 > 0 }
    case .allButLast:
      return (0..<count).map { $0 < count - 1 }
    case .exactly(let bits):
      return (0..<count).map { $0 < 64 && bits >> UInt64($0) & 1 == 1 }
    case .subset(let seed):
      var generator = SeededGenerator(seed: seed)
      let chances: [UInt64] = [16, 128, 240]
      let chance = chances[Int(generator.next() % 3)]
      return (0..<count).map { _ in generator.next() & 0xFF < chance }
    }
  }
}

/// What a crash can tear.
package enum Granularity: Sendable, Hashable {
  /// A write survives as a whole or not at all.
  case operation
  /// Each sector of a write survives by itself.
  case sector
  /// Each byte of a write of at most `limit` bytes survives by itself, of a longer one each sector.
  case byte(limit: Int)

  package static let sectorSize: UInt64 = 512
}

/// What is found where a write was lost: in the bytes that it covered, not in their neighbours in
/// the same sector. An append-only log without padding to sectors has to assume that much of a
/// device, as others do (SQLite calls it "powersafe overwrite").
package enum LostContent: Sendable, Hashable {
  case old
  case zeros
  case garbage(seed: UInt64)
  /// For each unit one of the others, by chance.
  case mixed(seed: UInt64)
}
