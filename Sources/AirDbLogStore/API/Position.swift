/// A place in a store's log: behind one commit.
///
/// Keep one to go on reading from there later, as with ``ChangeStore/commits(after:matching:limit:byteLimit:)``.
/// A position that does not fit the store any more is an error there, never a wrong answer; but a commit
/// that has been cleaned away entirely cannot be compared, and its position is taken on trust.
public struct Position: Sendable, Hashable, Codable {
  /// The store, as 32 hexadecimal digits.
  public let storeId: String
  /// The commit. Sequences grow and never return; they are not dense.
  public let sequence: UInt64
  /// The checksum of the commit, which tells it from another one with its sequence in a copy of
  /// the store that went another way.
  public let checksum: UInt32
  /// The commit up to which deletions may have been purged when the reading that came here began:
  /// whoever begins later has not missed those. 0: none.
  public let horizon: UInt64

  package init(storeId: String, sequence: UInt64, checksum: UInt32, horizon: UInt64) {
    self.storeId = storeId
    self.sequence = sequence
    self.checksum = checksum
    self.horizon = horizon
  }
}

extension StoreId: CustomStringConvertible {
  /// The sixteen bytes, in the order of the file.
  package var description: String {
    [first, second].map { word in
      let digits = String(word.byteSwapped, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }
}
