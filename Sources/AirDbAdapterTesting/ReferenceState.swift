#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What an adapter must answer, in the plainest form: a dictionary of the newest versions.
struct ReferenceState: Sendable {
  /// What identifies a record: two texts, by their bytes.
  struct Key: Hashable, Comparable {
    let collection: [UInt8]
    let id: [UInt8]

    init(_ record: ChangeRecord) {
      collection = Array(record.collection.utf8)
      id = Array(record.id.utf8)
    }

    static func < (lhs: Key, rhs: Key) -> Bool {
      lhs.collection == rhs.collection
        ? lhs.id.lexicographicallyPrecedes(rhs.id)
        : lhs.collection.lexicographicallyPrecedes(rhs.collection)
    }
  }

  private(set) var versions: [Key: ChangeRecord] = [:]

  /// A timestamp than which no other that was ever stored is greater.
  private(set) var latest: String?

  mutating func apply(_ changes: [ChangeRecord]) {
    for change in changes {
      let key = Key(change)
      if let stored = versions[key],
        HlcComparator.compare(change.hlcTimestamp, stored.hlcTimestamp) <= 0
      {
        continue
      }
      versions[key] = change
      if latest.map({ HlcComparator.compare(change.hlcTimestamp, $0) > 0 }) ?? true {
        latest = change.hlcTimestamp
      }
    }
  }

  /// All newest versions, ascending; those of equal timestamps by their keys.
  var feed: [ChangeRecord] { Self.sorted(Array(versions.values)) }

  /// The shortest page that has `limit` changes and does not end within a run of equal timestamps.
  func page(after cursor: String?, limit: Int) -> [ChangeRecord] {
    guard limit > 0 else { return [] }
    let rest = feed.filter { change in
      cursor.map { HlcComparator.compare(change.hlcTimestamp, $0) > 0 } ?? true
    }
    var end = min(limit, rest.count)
    while end < rest.count, end > 0,
      HlcComparator.compare(rest[end].hlcTimestamp, rest[end - 1].hlcTimestamp) == 0
    {
      end += 1
    }
    return Array(rest[..<end])
  }

  /// Orders changes by their timestamps, and equal timestamps by the keys, whose order no contract
  /// rules. Those of one key and timestamp stay in their order.
  static func sorted(_ changes: [ChangeRecord]) -> [ChangeRecord] {
    let keyed = changes.enumerated().map { (key: Key($0.element), place: $0.offset) }
    return keyed.sorted { lhs, rhs in
      let order = HlcComparator.compare(
        changes[lhs.place].hlcTimestamp, changes[rhs.place].hlcTimestamp)
      if order != 0 { return order < 0 }
      return lhs.key == rhs.key ? lhs.place < rhs.place : lhs.key < rhs.key
    }.map { changes[$0.place] }
  }
}

extension ChangeRecord {
  /// Whether every part is the same, byte for byte. AirDB's own record has no such comparison.
  func isIdentical(to other: ChangeRecord) -> Bool {
    ReferenceState.Key(self) == ReferenceState.Key(other)
      && type.rawValue == other.type.rawValue && payload == other.payload
      && hlcTimestamp.utf8.elementsEqual(other.hlcTimestamp.utf8)
      && authorPublicKey == other.authorPublicKey && signature == other.signature
  }
}
