#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The records of one collection as values of a type.
///
/// ```swift
/// struct Note: Codable {
///   var title: String
///   var isDone = false
/// }
/// let notes = store.collection("notes", of: Note.self)
/// try await notes.put(Note(title: "Buy milk"), forId: "1")
/// try await notes.update("1") { note in note?.isDone = true }
/// let note = try notes.value(forId: "1")
/// ```
///
/// A view on the store that keeps nothing itself; any number of them may be made of one collection. It
/// keeps the store. Deletions are not shown.
public struct RecordCollection<Value: Sendable>: Sendable {
  /// The store that has the records.
  public let store: ChangeStore
  /// The name of the collection, as ``RecordKey/collection`` has it.
  public let name: String
  private let coding: PayloadCoding<Value>

  fileprivate init(_ store: ChangeStore, _ name: String, _ coding: PayloadCoding<Value>) {
    self.store = store
    self.name = name
    self.coding = coding
  }

  /// A value of the collection and its id.
  public struct Entry: Sendable, Identifiable {
    /// The id of the record.
    public let id: String
    /// What its payload says.
    public let value: Value
  }
}

extension RecordCollection.Entry: Equatable where Value: Equatable {}
extension RecordCollection.Entry: Hashable where Value: Hashable {}

extension ChangeStore {
  /// The records of a collection as values of a type, coded as ``PayloadCoding/json``. No I/O.
  public func collection<Value: Codable & Sendable>(
    _ name: String, of type: Value.Type = Value.self
  ) -> RecordCollection<Value> {
    collection(name, coding: .json)
  }

  /// The records of a collection as values of a type, in a coding of the app. No I/O.
  public func collection<Value: Sendable>(
    _ name: String, coding: PayloadCoding<Value>
  ) -> RecordCollection<Value> {
    RecordCollection(self, name, coding)
  }
}

// MARK: - Reading

extension RecordCollection {
  /// The value of a record; nil if there is none or it has been deleted.
  ///
  /// - Throws: ``LogStoreError`` with `decodingFailed` if the payload is none of a value, and as
  ///   ``ChangeStore/record(forKey:)`` does.
  public func value(forId id: String) throws(LogStoreError) -> Value? {
    guard let record = try store.record(forKey: key(id)), !store.isDeletion(record.type) else {
      return nil
    }
    return try decode(record.payload, id)
  }

  /// The values of the records, ascending by the bytes of their ids: at most `limit` of those whose ids
  /// start with `idPrefix` and are greater than `after`.
  ///
  /// - Throws: ``LogStoreError`` with `decodingFailed` if a payload is none of a value.
  /// - Complexity: See ``ChangeStore/records(in:idPrefix:after:limit:)``.
  public func entries(
    idPrefix: String = "", after: String? = nil, limit: Int = .max
  ) throws(LogStoreError) -> [Entry] {
    var entries: [Entry] = []
    for record in try store.undeletedRecords(
      in: name, idPrefix: idPrefix, after: after, limit: limit)
    {
      entries.append(try entry(record))
    }
    return entries
  }

  /// The present values of the collection, again and again as they change, by local changes and those
  /// of peers. See ``LiveCollection``.
  ///
  /// A payload that is none of a value ends it with `decodingFailed`. Where peers may send such, use
  /// a coding that can say so, or ``ChangeStore/liveRecords(in:idPrefix:)``.
  ///
  /// - Parameter idPrefix: Only records whose ids start so.
  public func liveEntries(idPrefix: String = "") -> LiveCollection<Entry> {
    LiveCollection(store, name, idPrefix: idPrefix) { (record) throws(LogStoreError) in
      try entry(record)
    }
  }

  private func key(_ id: String) -> RecordKey { RecordKey(collection: name, id: id) }

  private func entry(_ record: ChangeRecord) throws(LogStoreError) -> Entry {
    Entry(id: record.id, value: try decode(record.payload, record.id))
  }

  private func decode(_ payload: Data, _ id: String) throws(LogStoreError) -> Value {
    do {
      return try coding.decode(payload)
    } catch {
      throw LogStoreError(
        .decodingFailed,
        "The record \"\(id)\" of \"\(name)\" does not decode as \(Value.self): \(error)")
    }
  }

  private func encode(_ value: Value, _ id: String) throws(LogStoreError) -> Data {
    do {
      return try coding.encode(value)
    } catch {
      throw LogStoreError(
        .encodingFailed,
        "The value of \"\(id)\" in \"\(name)\" cannot be encoded: \(error)")
    }
  }
}

// MARK: - Writing

extension RecordCollection {
  /// Stores a value. See ``ChangeStore/put(_:forKey:author:)``.
  ///
  /// - Throws: ``LogStoreError`` with `encodingFailed` if the value cannot be encoded, and as
  ///   ``ChangeStore/write(_:author:)`` does.
  @concurrent
  @discardableResult
  public func put(
    _ value: Value, forId id: String, author: String? = nil
  ) async throws -> ChangeRecord {
    try await store.put(try encode(value, id), forKey: key(id), author: author)
  }

  /// Stores a value as ``put(_:forId:author:)`` does, on the caller's thread, which waits. See
  /// ``ChangeStore/writeAndWait(_:author:)``.
  @discardableResult
  public func putAndWait(
    _ value: Value, forId id: String, author: String? = nil
  ) throws(LogStoreError) -> ChangeRecord {
    try store.putAndWait(try encode(value, id), forKey: key(id), author: author)
  }

  /// Deletes a record. See ``ChangeStore/delete(_:author:)``.
  @concurrent
  @discardableResult
  public func delete(_ id: String, author: String? = nil) async throws -> ChangeRecord? {
    try await store.delete(key(id), author: author)
  }

  /// Deletes a record as ``delete(_:author:)`` does, on the caller's thread, which waits. See
  /// ``ChangeStore/writeAndWait(_:author:)``.
  @discardableResult
  public func deleteAndWait(
    _ id: String, author: String? = nil
  ) throws(LogStoreError) -> ChangeRecord? {
    try store.deleteAndWait(key(id), author: author)
  }

  /// Changes a value by what it is: a read, a change and a write that nothing comes between. See
  /// ``ChangeStore/update(_:author:_:)``.
  ///
  /// - Parameters:
  ///   - id: The id of the record.
  ///   - author: The label of the commit; the configuration's by default.
  ///   - transform: Changes the value; nil is a record that is not there. Called without any lock of
  ///     the store held, perhaps more than once.
  /// - Returns: The value that the record has now. If it is encoded as before, nothing is written.
  /// - Throws: ``LogStoreError`` with `decodingFailed` if what is there is none of a value, in which case
  ///   `transform` is not called; otherwise as ``ChangeStore/update(_:author:_:)`` does.
  @concurrent
  @discardableResult
  public func update(
    _ id: String, author: String? = nil,
    _ transform: @Sendable (inout Value?) throws -> Void
  ) async throws -> Value? {
    try await store.update(key(id), author: author) { try apply(transform, to: $0, id) }
  }

  /// Changes a value as ``update(_:author:_:)`` does, on the caller's thread, which waits. See
  /// ``ChangeStore/writeAndWait(_:author:)``.
  @discardableResult
  public func updateAndWait(
    _ id: String, author: String? = nil, _ transform: (inout Value?) throws -> Void
  ) throws -> Value? {
    try store.updateAndWait(key(id), author: author) { try apply(transform, to: $0, id) }
  }

  private func apply(
    _ transform: (inout Value?) throws -> Void, to payload: Data?, _ id: String
  ) throws -> LocalUpdate<Value?> {
    var value = try payload.map { try decode($0, id) }
    // Not the payload: a peer may have written the same value in another way.
    let before = try value.map { try encode($0, id) }
    try transform(&value)
    let after = try value.map { try encode($0, id) }
    return LocalUpdate(payload: after, isChanged: after != before, result: value)
  }
}
