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
  ///   change; `readOnly`, `suspended`, `closed`. `CancellationError` if the task was cancelled before, and
  ///   then none of them was applied.
  @concurrent
  @discardableResult
  public func write(
    _ changes: [LocalChange], author: String? = nil
  ) async throws -> [ChangeRecord] {
    try Task.checkCancellation()
    let writer = try clockWriter
    let batch = try batch(of: changes, author, writer)
    return try await writer.queue.commit(.local(batch)).get().stamped
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
    try await update(key, author: author) { try LocalUpdate(of: $0, by: transform) }
  }

  /// The same for a caller that wants something back, and who says itself whether anything is changed.
  @concurrent
  func update<Result: Sendable>(
    _ key: RecordKey, author: String?, by transform: @Sendable (Data?) throws -> LocalUpdate<Result>
  ) async throws -> Result {
    while true {
      try Task.checkCancellation()
      let writer = try clockWriter
      let (batch, result) = try attempt(key, author, writer, transform)
      guard let batch else { return result }
      if try await !writer.queue.commit(.local(batch)).get().isOvertaken { return result }
    }
  }
}

// For callers with a thread of their own.
extension ChangeStore {
  /// Stores a payload as ``put(_:forKey:author:)`` does, on the caller's thread, which waits. See
  /// ``writeAndWait(_:author:)``.
  @discardableResult
  public func putAndWait(
    _ payload: Data, forKey key: RecordKey, author: String? = nil
  ) throws(LogStoreError) -> ChangeRecord {
    try writeAndWait([.put(payload, forKey: key)], author: author)[0]
  }

  /// Deletes a record as ``delete(_:author:)`` does, on the caller's thread, which waits. See
  /// ``writeAndWait(_:author:)``.
  @discardableResult
  public func deleteAndWait(
    _ key: RecordKey, author: String? = nil
  ) throws(LogStoreError) -> ChangeRecord? {
    try writeAndWait([.delete(key)], author: author).first
  }

  /// Stamps changes and applies them as ``write(_:author:)`` does, on the caller's thread, which waits.
  ///
  /// Faster than the asynchronous one by the thread changes that it saves. Not for the main thread,
  /// nor for the threads of the cooperative pool: it waits for the storage device. It does not look
  /// whether a task was cancelled.
  ///
  /// - Throws: As ``write(_:author:)`` does, but for `CancellationError`.
  @discardableResult
  public func writeAndWait(
    _ changes: [LocalChange], author: String? = nil
  ) throws(LogStoreError) -> [ChangeRecord] {
    let writer = try clockWriter
    let batch = try batch(of: changes, author, writer)
    return try writer.queue.commit(.local(batch)).get().stamped
  }

  /// Changes a record as ``update(_:author:_:)`` does, on the caller's thread, which waits. See
  /// ``writeAndWait(_:author:)``.
  ///
  /// - Throws: As ``writeAndWait(_:author:)`` does, and what `transform` throws.
  @discardableResult
  public func updateAndWait(
    _ key: RecordKey, author: String? = nil, _ transform: (inout Data?) throws -> Void
  ) throws -> Data? {
    try updateAndWait(key, author: author) { try LocalUpdate(of: $0, by: transform) }
  }

  func updateAndWait<Result>(
    _ key: RecordKey, author: String?, by transform: (Data?) throws -> LocalUpdate<Result>
  ) throws -> Result {
    while true {
      let writer = try clockWriter
      let (batch, result) = try attempt(key, author, writer, transform)
      guard let batch else { return result }
      if try !writer.queue.commit(.local(batch)).get().isOvertaken { return result }
    }
  }
}

/// What a closure makes of the payload of a record, and what its caller gets for it.
struct LocalUpdate<Result> {
  var payload: Data?
  var isChanged: Bool
  var result: Result
}

extension LocalUpdate where Result == Data? {
  fileprivate init(of before: Data?, by transform: (inout Data?) throws -> Void) throws {
    var payload = before
    try transform(&payload)
    self.init(payload: payload, isChanged: payload != before, result: payload)
  }
}

extension LocalUpdate: Sendable where Result: Sendable {}

// What the calls that wait have in common with those that do not.
extension ChangeStore {
  /// The writer, if it can stamp changes.
  private var clockWriter: Writer {
    get throws(LogStoreError) {
      let writer = try writer
      if let refusal = writer.refusal { throw refusal }
      guard writer.engine.options.format == .hybrid else {
        throw LogStoreError(
          .clockUnavailable,
          "The timestamps of the store are opaque (utf8Order): its clock cannot make one.")
      }
      return writer
    }
  }

  private func batch(
    of changes: [LocalChange], _ author: String?, _ writer: Writer
  ) throws(LogStoreError) -> LocalBatch {
    var latest: [RecordKey: Int] = [:]
    for (index, change) in changes.enumerated() { latest[change.key] = index }
    let items = changes.indices.filter { latest[changes[$0].key] == $0 }.map { changes[$0].item }
    return try batch(of: items, if: .none, author, writer)
  }

  /// Calls the closure of an update with what is there, and answers what is to be committed if that is
  /// still there then; no batch if nothing is changed.
  private func attempt<Result>(
    _ key: RecordKey, _ author: String?, _ writer: Writer,
    _ transform: (Data?) throws -> LocalUpdate<Result>
  ) throws -> (batch: LocalBatch?, result: Result) {
    let engine = writer.engine
    let version = try record(forKey: key)
    let current = version.flatMap { isDeletion($0.type) ? nil : $0.payload }
    let update = try transform(current)
    guard update.isChanged else { return (nil, update.result) }
    var condition = LocalBatch.Condition.absent
    if let version {
      condition = .newest(
        try PreparedBatch(
          [version], label: [], format: engine.options.format,
          secret: engine.manifest.value.hashSecret))
    }
    let change = update.payload.map { LocalChange.put($0, forKey: key) } ?? .delete(key)
    return (try batch(of: [change.item], if: condition, author, writer), update.result)
  }

  private func batch(
    of items: [LocalBatch.Item], if condition: LocalBatch.Condition, _ author: String?,
    _ writer: Writer
  ) throws(LogStoreError) -> LocalBatch {
    let options = writer.engine.options
    for item in items {
      guard options.hasType(for: item.action) else {
        throw LogStoreError(
          .configurationMismatch,
          "The deletion values of the store, \(options.deletionValues), leave no type for the change."
        )
      }
    }
    return LocalBatch(
      items, if: condition, label: author.map { Array($0.utf8) } ?? options.authorLabel,
      secret: writer.engine.manifest.value.hashSecret)
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
