#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// One change of one record, as peers exchange it and an ``AirDbAdapter`` stores it.
///
/// A record is identified by the pair of ``collection`` and ``id``. The newest change of a record,
/// by ``hlcTimestamp``, is its state.
///
/// Texts are compared and hashed by their UTF-8 bytes. `String` would call two spellings of "é"
/// equal; for peers, which sign and exchange bytes, they are two ids.
public struct ChangeRecord: Sendable {
  /// The id of the record in its collection.
  public var id: String

  /// The collection that the record belongs to.
  public var collection: String

  /// What the change does to the record.
  public var type: MutationType

  /// The content of the record after the change; opaque to an adapter.
  public var payload: Data

  /// When the change was made: a text of a hybrid logical clock, ordered by ``HlcComparator``.
  public var hlcTimestamp: String

  /// The public key of the author, if the change is signed. Nil and empty are not the same.
  public var authorPublicKey: Data?

  /// The author's signature of the change, if it is signed. Nil and empty are not the same.
  public var signature: Data?

  /// Creates a change from its parts, none of which is looked at.
  public init(
    id: String,
    collection: String,
    type: MutationType,
    payload: Data,
    hlcTimestamp: String,
    authorPublicKey: Data? = nil,
    signature: Data? = nil
  ) {
    self.id = id
    self.collection = collection
    self.type = type
    self.payload = payload
    self.hlcTimestamp = hlcTimestamp
    self.authorPublicKey = authorPublicKey
    self.signature = signature
  }
}

extension ChangeRecord: Hashable {
  /// Whether all parts are equal, texts by their UTF-8 bytes.
  public static func == (lhs: ChangeRecord, rhs: ChangeRecord) -> Bool {
    lhs.id.utf8.elementsEqual(rhs.id.utf8)
      && lhs.collection.utf8.elementsEqual(rhs.collection.utf8)
      && lhs.type == rhs.type
      && lhs.hlcTimestamp.utf8.elementsEqual(rhs.hlcTimestamp.utf8)
      && lhs.payload == rhs.payload
      && lhs.authorPublicKey == rhs.authorPublicKey
      && lhs.signature == rhs.signature
  }

  /// Hashes what identifies the change: the record and the timestamp, by their UTF-8 bytes.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(utf8Of: id)
    hasher.combine(utf8Of: collection)
    hasher.combine(utf8Of: hlcTimestamp)
  }
}

extension Hasher {
  /// Hashes the UTF-8 bytes of a text, and their number, so that no two sequences of texts feed
  /// the same bytes.
  fileprivate mutating func combine(utf8Of text: String) {
    var text = text
    text.withUTF8 { utf8 in
      combine(utf8.count)
      combine(bytes: UnsafeRawBufferPointer(utf8))
    }
  }
}
