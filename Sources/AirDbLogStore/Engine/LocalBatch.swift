#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// What a caller has for a commit.
package enum CommitWork: Sendable {
  /// Changes with timestamps of their own.
  case batch(PreparedBatch)
  /// Changes that the store's clock is to stamp when they are committed.
  case local(LocalBatch)
}

/// Changes without timestamps. Only the writer knows all stamps before theirs, so that they become
/// records no earlier than at their commit.
package struct LocalBatch: Sendable {
  package enum Action: Sendable {
    case put(Data)
    case delete
  }

  package struct Item: Sendable {
    package var collection: String
    package var id: String
    package var action: Action

    package init(collection: String, id: String, _ action: Action) {
      self.collection = collection
      self.id = id
      self.action = action
    }
  }

  /// What must be so for a batch of one change to be committed.
  package enum Condition: Sendable {
    case none
    /// There is no version of the record, not even a deletion.
    case absent
    /// This is the newest version of the record: a batch of one.
    case newest(PreparedBatch)
  }

  /// Not two of one key.
  package let items: [Item]
  /// Of their keys.
  package let hashes: [KeyHash]
  package let condition: Condition
  package let label: [UInt8]

  package init(
    _ items: [Item], if condition: Condition = .none, label: [UInt8], secret: KeyHashSecret
  ) {
    self.items = items
    hashes = items.map { item in
      withUTF8(item.collection) { collection in
        withUTF8(item.id) { secret.hash(collection: collection, id: $0) }
      }
    }
    self.condition = condition
    self.label = label
  }
}
