/// A place in a store's log: behind one commit.
public struct Position: Sendable, Hashable, Codable {
  /// The store, as 32 hexadecimal digits.
  public let storeId: String
  /// The commit. Sequences grow and never return; they are not dense.
  public let sequence: UInt64
  /// The checksum of the commit, which tells it from another one with its sequence in a copy of
  /// the store that went another way.
  public let checksum: UInt32

  package init(storeId: StoreId, sequence: UInt64, checksum: UInt32) {
    self.storeId = storeId.description
    self.sequence = sequence
    self.checksum = checksum
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
