internal import Dispatch

/// Which consumers are being delivered to. A store has one, which outlives its engines.
final class Deliveries: Sendable {
  private let numbers = Locked<Set<UInt64>>([])
  /// Where progress is made durable, since that blocks.
  private let queue = DispatchQueue(label: "airdb.log.consumers", qos: .utility)

  /// Takes the right to deliver to a consumer; false if somebody has it.
  func begin(_ number: UInt64) -> Bool { numbers.withLock { $0.insert(number).inserted } }

  func end(_ number: UInt64) { _ = numbers.withLock { $0.remove(number) } }

  /// Runs blocking work off the cooperative pool.
  func perform(_ body: @escaping @Sendable () throws(LogStoreError) -> Void) async throws {
    try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Void, any Error>) in
      queue.async {
        do throws(LogStoreError) {
          try body()
          continuation.resume()
        } catch {
          continuation.resume(throwing: error)
        }
      }
    }
  }
}

// MARK: - Delivering

extension Consumer {
  /// Hands everything behind its position to a handler, page by page in the order of the log, and saves
  /// the position after each page that the handler has dealt with.
  ///
  /// *At least once*: the position is saved when the handler has returned, never before. If the process
  /// is killed, or power lost, between the two, the page comes again; nothing is ever left out. So what
  /// the handler does should bear repetition. A position is not saved before its commits are durable
  /// themselves; what a handler has seen of a store whose durability is `processCrash`, power loss can
  /// still take from that store until then.
  ///
  /// What a filter leaves out counts as dealt with. A handler is not called with an empty page. If the
  /// consumer is moved meanwhile, delivery goes on from there after the page under way.
  ///
  /// - Parameters:
  ///   - filter: Which commits are shown.
  ///   - following: Whether it waits at the end for more, until the store is closed; otherwise it returns
  ///     at the end.
  ///   - limit: The most commits of a page, at least 1.
  ///   - byteLimit: See ``ChangeStore/commits(after:matching:limit:byteLimit:)``.
  ///   - handler: Called with one page after the other. What it throws ends the delivery, with the page
  ///     not dealt with.
  /// - Throws: ``LogStoreError`` with `consumerBusy` if another call of this process is delivering to the
  ///   consumer; `historyPurged` if deletions that it has not seen have been purged: then
  ///   ``rebuild(limit:byteLimit:to:)`` is the way back; `readOnly`; `suspended`. `CancellationError`,
  ///   between two pages, if the task was cancelled: what was dealt with by then is saved.
  @concurrent
  public func deliver(
    matching filter: CommitFilter = .all, following: Bool = false, limit: Int = 256,
    byteLimit: Int = 1 << 20, to handler: @Sendable (CommitPage) async throws -> Void
  ) async throws {
    try begin()
    defer { store.deliveries.end(number) }
    while true {
      try Task.checkCancellation()
      if following, store.signal.isFinished { return }
      // Before the look, so that nothing falls between that and the wait.
      let count = store.signal.count
      let engine = try store.engine
      let entry = try engine.consumers.consumer(number, Array(name.utf8))
      let page = try store.commits(
        after: entry.place.position(in: engine.storeId), matching: filter, limit: max(limit, 1),
        byteLimit: byteLimit)
      if let next = page.next, next.sequence > entry.place.sequence {
        if !page.commits.isEmpty { try await handler(page) }
        try await save(next, resets: entry.resets)
      }
      if page.isLast {
        if !following { return }
        await store.signal.wait(past: count)
      }
    }
  }

  /// Applies everything behind its position to another adapter, page by page in the order of the log,
  /// each page as one batch of whole commits.
  ///
  /// As safe as ``deliver(matching:following:limit:byteLimit:to:)``, of which it is a use. A page that comes
  /// again changes nothing, since the last writer wins there, too.
  ///
  /// - Throws: What the adapter throws, and what a delivery does.
  @concurrent
  public func merge(
    into adapter: any AirDbAdapter & Sendable, matching filter: CommitFilter = .all,
    following: Bool = false, limit: Int = 256, byteLimit: Int = 1 << 20
  ) async throws {
    try await deliver(
      matching: filter, following: following, limit: limit, byteLimit: byteLimit
    ) { page in
      var batch: [ChangeRecord] = []
      for commit in page.commits {
        for change in commit.changes { batch.append(try change.record()) }
      }
      try await adapter.applyChanges(batch)
    }
  }

  private func begin() throws(LogStoreError) {
    _ = try store.writer
    guard store.deliveries.begin(number) else {
      throw LogStoreError(
        .consumerBusy, "Another call is delivering to the consumer \"\(name)\".")
    }
  }

  private func save(_ position: Position, resets: UInt64) async throws {
    try await store.deliveries.perform { () throws(LogStoreError) in
      let writer = try store.writer
      let registry = writer.engine.consumers
      let entry = try registry.consumer(number, Array(name.utf8))
      try writer.makeDurable(upTo: position.sequence)
      try registry.advance(entry, to: ConsumerTable.Place(position), resets: resets)
    }
  }
}

// MARK: - Rebuilding

/// A page of the present state of a store, for a receiver that is built anew.
public struct RebuildPage: Sendable {
  /// Newest versions, deletions among them: to be applied as they come.
  public let records: [ChangeRecord]
  /// Whether this is the last page.
  public let isLast: Bool
  /// Whether deletions have been purged from the store. Then what the receiver holds of it, and what
  /// is in none of the pages of this rebuild, was deleted.
  public let showsAllKeys: Bool
}

extension Consumer {
  /// Hands the newest versions of everything to a handler, page by page, and then moves the consumer to
  /// where the log ended when this began: the way back after `historyPurged`.
  ///
  /// Nothing is missed between: what is committed meanwhile comes with the next delivery, perhaps a second
  /// time. Killed or cancelled on the way, the consumer is where it was, and the rebuild begins anew.
  ///
  /// Where deletions have been purged, the receiver compares keys: see ``RebuildPage/showsAllKeys``.
  ///
  /// - Throws: As ``deliver(matching:following:limit:byteLimit:to:)`` does.
  /// - Complexity: Reads everything that is live.
  @concurrent
  public func rebuild(
    limit: Int = 256, byteLimit: Int = 1 << 20,
    to handler: @Sendable (RebuildPage) async throws -> Void
  ) async throws {
    try begin()
    defer { store.deliveries.end(number) }
    let end = try store.engine.placeOfEnd
    var cursor: ChangeCursor?
    while true {
      try Task.checkCancellation()
      let page = try store.changes(after: cursor, limit: max(limit, 1), byteLimit: byteLimit)
      let hasPurged = try store.engine.manifest.value.retentionHorizon > 0
      try await handler(
        RebuildPage(records: page.records, isLast: page.isLast, showsAllKeys: hasPurged))
      cursor = page.next
      if page.isLast { break }
    }
    try await store.deliveries.perform { () throws(LogStoreError) in
      let writer = try store.writer
      let registry = writer.engine.consumers
      let entry = try registry.consumer(number, Array(name.utf8))
      try registry.reset(entry) { () throws(LogStoreError) in
        try writer.makeDurable(upTo: end.sequence)
        return end
      }
    }
  }
}
