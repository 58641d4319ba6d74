/// A ``HashIndex`` in many parts, each of which grows by itself: so no insertion has to move more than
/// a small part of the rows. Not thread-safe.
package struct PartitionedHashIndex: Sendable {
  private static let partBits: UInt64 = 8

  /// None until there is a row.
  private var parts: ContiguousArray<HashIndex> = []

  package init() {}

  /// By other bits of the hash than those by which a part places it.
  @inline(__always)
  private static func part(of key: KeyHash) -> Int {
    Int(truncatingIfNeeded: key.first >> (64 - partBits))
  }

  /// The row of a key. `hash(row)` gives the hash of a row that is in the index.
  @inline(__always)
  package func find(_ key: KeyHash, hash: (UInt32) -> KeyHash) -> UInt32? {
    if parts.isEmpty { return nil }
    return parts[Self.part(of: key)].find(key, hash: hash)
  }

  /// Makes `row` the row of a key. Answers the one that had it.
  @inline(__always)
  @discardableResult
  package mutating func set(
    _ key: KeyHash, _ row: UInt32, hash: (UInt32) -> KeyHash
  ) -> UInt32? {
    if parts.isEmpty {
      parts = ContiguousArray(repeating: HashIndex(), count: 1 << Int(Self.partBits))
    }
    return parts[Self.part(of: key)].set(key, row, hash: hash)
  }
}
