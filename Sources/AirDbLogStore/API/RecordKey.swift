/// What identifies a record: its collection and its id, compared by their UTF-8 bytes.
public struct RecordKey: Sendable, Hashable, Codable {
  /// The collection that the record belongs to.
  public var collection: String
  /// The id of the record in its collection.
  public var id: String

  /// Creates a key from its parts, neither of which is looked at.
  public init(collection: String, id: String) {
    self.collection = collection
    self.id = id
  }

  public static func == (a: RecordKey, b: RecordKey) -> Bool {
    a.collection.utf8.elementsEqual(b.collection.utf8) && a.id.utf8.elementsEqual(b.id.utf8)
  }

  public func hash(into hasher: inout Hasher) {
    for text in [collection, id] {
      for byte in text.utf8 { hasher.combine(byte) }
      hasher.combine(UInt8(0xFF))
    }
  }
}
