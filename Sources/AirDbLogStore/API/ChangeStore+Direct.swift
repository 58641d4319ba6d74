#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A change without a timestamp, which the store is to stamp.
public enum LocalChange: Sendable, Hashable {
  /// A new payload for a record, whether there is one or not.
  case put(Data, forKey: RecordKey)
  /// The deletion of a record.
  case delete(RecordKey)
}

// For apps that use a store without AirDB: changes that the store stamps with a clock of its own, a
// `HybridLogicalClock` with the node of the configuration.
extension ChangeStore {
  /// Stores a payload as the newest version of a record: an insertion if there is none or it has been
  /// deleted, else an update.
  ///
  /// Of two concurrent puts of one record the later one wins. What a put is to build upon belongs into
  /// ``update(_:author:_:)``.
  ///
  /// - Parameters:
  ///   - payload: The new content of the record.
  ///   - key: The record.
  ///   - author: The label of the commit; the configuration's by default.
  /// - Returns: The record as it was stored, with its timestamp.
  /// - Throws: As ``write(_:author:)`` does.
  @concurrent
  @discardableResult
  public func put(
    _ payload: Data, forKey key: RecordKey, author: String? = nil
  ) async throws -> ChangeRecord {
    let stamped = try await write([.put(payload, forKey: key)], author: author)
    // A put is always stamped.
    return stamped[0]
  }

  /// Deletes a record, so that its deletion reaches peers, too.
  ///
  /// - Parameters:
  ///   - key: The record.
  ///   - author: The label of the commit; the configuration's by default.
  /// - Returns: The deletion as it was stored; nil if there was nothing to delete, which writes nothing.
  /// - Throws: As ``write(_:author:)`` does.
  @concurrent
  @discardableResult
  public func delete(
    _ key: RecordKey, author: String? = nil
  ) async throws -> ChangeRecord? {
    try await write([.delete(key)], author: author).first
  }

  /// Stamps changes and applies them: all of them or none.
  ///
  /// Each stamp is greater than all that the store's clock gave before, in this and in earlier openings
  /// of the store, and than the timestamp of the version that it replaces, wherever that came from. When
  /// this returns, the changes have reached the store's ``Configuration/durability``.
  ///
  /// A timestamp in the log that is more than a minute ahead of this device's time does not drag the
  /// clock along, which others bring no further ahead than that minute. But a change of *that* record is
  /// refused with `clockDrift`, since it would be older and lose.
  ///
  /// - Parameters:
  ///   - changes: Of several changes of one record the last counts. A deletion of what is not there
  ///     counts for nothing.
  ///   - author: The label of the commit; the configuration's by default.
  /// - Returns: The records as they were stored, in the order of the changes.
  /// - Throws: ``LogStoreError``. With `outcomeUnknown` the changes may or may not survive, and the store
  ///   takes no more writes until ``reopen()``; with any other code none of them was applied: among them
  ///   `clockDrift`; `clockUnavailable` in a store of ``TimestampFormat/utf8Order``;
  ///   `configurationMismatch` if the store's ``Configuration/deletionValues`` leave no type for such a
  ///   change; `cancelled`; `readOnly`, `suspended`, `closed`.
  @concurrent
  @discardableResult
  public func write(
    _ changes: [LocalChange], author: String? = nil
  ) async throws -> [ChangeRecord] {
    let writer = try await clockWriter()
    var latest: [RecordKey: Int] = [:]
    for (index, change) in changes.enumerated() { latest[change.key] = index }
    let items = changes.indices.filter { latest[changes[$0].key] == $0 }.map { changes[$0].item }
    return try await commit(items, if: .none, author, writer).stamped
  }

  /// Changes a record by what it is: reads its payload, has it changed, and stores the result, unless the
  /// record has been changed meanwhile, by this process or by a peer through
  /// ``applyChanges(_:)``. Then it begins again with what is there now.
  ///
  /// So nothing that arrives in between is lost or overwritten by what had not seen it. Each time that
  /// it begins again, another change of this very record has been committed.
  ///
  /// - Parameters:
  ///   - key: The record.
  ///   - author: The label of the commit; the configuration's by default.
  ///   - transform: Changes the payload; nil is a record that is not there. Called without any lock of
  ///     the store held, so that it may read the store and may take its time; perhaps more than
  ///     once. What it throws ends the update, with nothing stored.
  /// - Returns: The payload that the record has now. If it is the one that it had, nothing is written.
  /// - Throws: As ``write(_:author:)`` does, and what `transform` throws.
  @concurrent
  @discardableResult
  public func update(
    _ key: RecordKey, author: String? = nil,
    _ transform: @Sendable (inout Data?) throws -> Void
  ) async throws -> Data? {
    try await update(key, author: author) { (before: Data?) in
      var payload = before
      try transform(&payload)
      return (payload, isChanged: payload != before, result: payload)
    }
  }

  /// The same for a caller that wants something back, and who says itself whether anything is changed.
  @concurrent
  func update<Result: Sendable>(
    _ key: RecordKey, author: String?,
    by transform: @Sendable (Data?) throws -> (Data?, isChanged: Bool, result: Result)
  ) async throws -> Result {
    while true {
      let writer = try await clockWriter()
      let engine = writer.engine
      let version = try record(forKey: key)
      let current = version.flatMap { engine.options.isDeletion($0.type) ? nil : $0.payload }
      let (payload, isChanged, result) = try transform(current)
      guard isChanged else { return result }
      var condition = LocalBatch.Condition.absent
      if let version {
        condition = .newest(
          try PreparedBatch(
            [version], label: [], format: engine.options.format,
            secret: engine.manifest.value.hashSecret))
      }
      let change = payload.map { LocalChange.put($0, forKey: key) } ?? .delete(key)
      let outcome = try await commit([change.item], if: condition, author, writer)
      if !outcome.isOvertaken { return result }
    }
  }

  /// The writer, if it can stamp changes.
  private func clockWriter() async throws -> Writer {
    if Task.isCancelled {
      throw LogStoreError(.cancelled, "The task was cancelled before the change was handed on.")
    }
    let writer = try writer
    if let refusal = writer.refusal { throw refusal }
    guard writer.engine.options.format == .hybrid else {
      throw LogStoreError(
        .clockUnavailable,
        "The timestamps of the store are opaque (utf8Order): its clock cannot make one.")
    }
    return writer
  }

  private func commit(
    _ items: [LocalBatch.Item], if condition: LocalBatch.Condition,
    _ author: String?, _ writer: Writer
  ) async throws -> CommitOutcome {
    let options = writer.engine.options
    for item in items {
      guard options.hasType(for: item.action) else {
        throw LogStoreError(
          .configurationMismatch,
          "The deletion values of the store, \(options.deletionValues), leave no type for the change."
        )
      }
    }
    let batch = LocalBatch(
      items, if: condition, label: author.map { Array($0.utf8) } ?? options.authorLabel,
      secret: writer.engine.manifest.value.hashSecret)
    return try await writer.queue.commit(.local(batch)).get()
  }
}

extension LocalChange {
  fileprivate var key: RecordKey {
    switch self {
    case .put(_, let key), .delete(let key): key
    }
  }

  fileprivate var item: LocalBatch.Item {
    switch self {
    case .put(let payload, let key):
      LocalBatch.Item(collection: key.collection, id: key.id, .put(payload))
    case .delete(let key):
      LocalBatch.Item(collection: key.collection, id: key.id, .delete)
    }
  }
}
