/// The present records of a collection, again and again as they change: live values.
///
/// ```swift
/// for try await entries in notes.liveEntries() {
///   show(entries)
/// }
/// ```
///
/// Each element is the whole of it, ascending by the bytes of the ids, without deletions, as one
/// state of the store shows it. The first comes at once, though it may be empty. Then one comes whenever
/// something of it has changed, be it by a local change or by a peer's. Changes that come faster than
/// elements are taken are shown together: what is taken next is the newest. Commits never wait for it.
///
/// It ends when the store is closed or gone, or the task is cancelled. While the store is suspended nothing
/// comes. That of a read-only store moves on with ``ChangeStore/refresh()``. It does not keep the store.
///
/// Each iterator keeps what it has shown, and reads of the log what is new. So memory and the first
/// element are in proportion to the collection; what follows, to what has changed, but for a copy of the
/// list.
public struct LiveCollection<Item: Sendable>: AsyncSequence, Sendable {
  private weak var store: ChangeStore?
  private let signal: CommitSignal
  private let name: String
  private let idPrefix: String
  private let item: @Sendable (ChangeRecord) throws(LogStoreError) -> Item

  init(
    _ store: ChangeStore, _ name: String, idPrefix: String,
    _ item: @escaping @Sendable (ChangeRecord) throws(LogStoreError) -> Item
  ) {
    self.store = store
    signal = store.signal
    self.name = name
    self.idPrefix = idPrefix
    self.item = item
  }

  public func makeAsyncIterator() -> Iterator {
    Iterator(store, signal, LiveTable(name, idPrefix: idPrefix, item))
  }

  /// One observer. Any number of them see all that one sees, each at its own pace.
  public struct Iterator: AsyncIteratorProtocol, Sendable {
    private weak var store: ChangeStore?
    private let signal: CommitSignal
    private var table: LiveTable<Item>

    fileprivate init(_ store: ChangeStore?, _ signal: CommitSignal, _ table: LiveTable<Item>) {
      self.store = store
      self.signal = signal
      self.table = table
    }

    /// The present records, once they are others than those before.
    ///
    /// - Throws: ``LogStoreError`` if they cannot be read or, of ``RecordCollection/liveEntries(idPrefix:)``,
    ///   decoded. The next call tries again.
    @concurrent
    public mutating func next() async throws -> [Item]? {
      while !Task.isCancelled, !signal.isFinished {
        // Before the look, so that nothing falls between that and the wait.
        let count = signal.count
        if let store, try table.catchUp(with: store) { return table.items }
        await signal.wait(past: count)
      }
      return nil
    }
  }
}

extension ChangeStore {
  /// The present records of a collection, deletions left out, again and again as they change. See
  /// ``LiveCollection``.
  ///
  /// - Parameters:
  ///   - collection: The collection.
  ///   - idPrefix: Only records whose ids start so, by their bytes.
  public func liveRecords(
    in collection: String, idPrefix: String = ""
  ) -> LiveCollection<ChangeRecord> {
    LiveCollection(self, collection, idPrefix: idPrefix) { $0 }
  }
}

/// The records of a collection as of a position of the log, and how they move on to its end.
///
/// Correct whatever hints there were: what has changed is read from the log behind the position, in its order,
/// in which each version of a record is newer than the one before. Where the log cannot be followed,
/// everything is read anew.
struct LiveTable<Item: Sendable>: Sendable {
  private let name: String
  private let idPrefix: String
  private let item: @Sendable (ChangeRecord) throws(LogStoreError) -> Item

  /// Ascending by their bytes.
  private var ids: [String] = []
  private var timestamps: [String] = []
  private(set) var items: [Item] = []
  private var position: Position?
  private var isLoaded = false
  /// Whether `items` are others than those that were shown last.
  private var isChanged = true

  init(
    _ name: String, idPrefix: String,
    _ item: @escaping @Sendable (ChangeRecord) throws(LogStoreError) -> Item
  ) {
    self.name = name
    self.idPrefix = idPrefix
    self.item = item
  }

  /// The most pages of the log that are looked at for what has changed. A reader that is further behind
  /// is served better by the collection itself, and a fast writer cannot keep it from the end.
  private static var maximumPages: Int { 32 }

  /// Moves on to the end of the log: whether anything has changed since this last said so. Nothing has
  /// while the store is suspended, or when it has been closed.
  mutating func catchUp(with store: ChangeStore) throws(LogStoreError) -> Bool {
    do throws(LogStoreError) {
      var isAtEnd = false
      if isLoaded { isAtEnd = try follow(store) }
      if !isAtEnd { try load(store) }
    } catch {
      if error.code == .suspended || error.code == .closed { return false }
      guard isLoaded else { throw error }
      // The log cannot be followed from here any more, or the change that could not be read may have
      // been superseded.
      isLoaded = false
      return try catchUp(with: store)
    }
    defer { isChanged = false }
    return isChanged
  }

  private mutating func load(_ store: ChangeStore) throws(LogStoreError) {
    // Before the records: what they show beyond it comes once more, and changes nothing.
    let end = try store.position
    let records = try store.undeletedRecords(in: name, idPrefix: idPrefix)
    var fresh = LiveTable(name, idPrefix: idPrefix, item)
    for record in records {
      fresh.ids.append(record.id)
      fresh.timestamps.append(record.hlcTimestamp)
      fresh.items.append(try item(record))
    }
    let isSame = Self.isEqual(ids, fresh.ids) && Self.isEqual(timestamps, fresh.timestamps)
    fresh.isChanged = isChanged || !isSame
    fresh.isLoaded = true
    fresh.position = end
    self = fresh
  }

  /// False if it is too far behind.
  private mutating func follow(_ store: ChangeStore) throws(LogStoreError) -> Bool {
    let filter = CommitFilter(collections: [name])
    for _ in 0..<Self.maximumPages {
      let page = try store.commits(after: position, matching: filter, limit: 256)
      // Of several versions the last is read only.
      var newest: [RecordKey: Change] = [:]
      for commit in page.commits {
        for change in commit.changes where isWanted(change.key.id) { newest[change.key] = change }
      }
      for change in newest.values { try take(change, store) }
      position = page.next ?? position
      if page.isLast { return true }
    }
    return false
  }

  private func isWanted(_ id: String) -> Bool { id.utf8.starts(with: idPrefix.utf8) }

  private mutating func take(_ change: Change, _ store: ChangeStore) throws(LogStoreError) {
    let (place, isThere) = find(change.key.id)
    if isThere, timestamps[place].utf8.elementsEqual(change.hlcTimestamp.utf8) { return }
    if store.isDeletion(change.type) {
      guard isThere else { return }
      ids.remove(at: place)
      timestamps.remove(at: place)
      items.remove(at: place)
    } else {
      let fresh = try item(try change.record())
      if isThere {
        timestamps[place] = change.hlcTimestamp
        items[place] = fresh
      } else {
        ids.insert(change.key.id, at: place)
        timestamps.insert(change.hlcTimestamp, at: place)
        items.insert(fresh, at: place)
      }
    }
    isChanged = true
  }

  /// Where an id is, or belongs.
  private func find(_ id: String) -> (place: Int, isThere: Bool) {
    var lower = 0
    var upper = ids.count
    while lower < upper {
      let middle = (lower + upper) / 2
      if ids[middle].utf8.lexicographicallyPrecedes(id.utf8) {
        lower = middle + 1
      } else {
        upper = middle
      }
    }
    return (lower, lower < ids.count && ids[lower].utf8.elementsEqual(id.utf8))
  }

  private static func isEqual(_ some: [String], _ others: [String]) -> Bool {
    some.elementsEqual(others) { $0.utf8.elementsEqual($1.utf8) }
  }
}
