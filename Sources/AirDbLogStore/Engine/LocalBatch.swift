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

  package struct Change: Sendable {
    package var key: RecordKey
    package var hash: KeyHash
    package var action: Action
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
  package var changes: [Change]
  package var condition: Condition
  package var label: [UInt8]

  package init(
    _ changes: [(key: RecordKey, action: Action)], if condition: Condition = .none,
    label: [UInt8], secret: KeyHashSecret
  ) {
    self.changes = changes.map { key, action in
      let hash = withUTF8(key.collection) { collection in
        withUTF8(key.id) { secret.hash(collection: collection, id: $0) }
      }
      return Change(key: key, hash: hash, action: action)
    }
    self.condition = condition
    self.label = label
  }
}
