#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// An embedded store of change records: an append-only log with an index in HLC order.
///
/// A store is a directory that one process at a time writes; others may read it meanwhile (see
/// ``Configuration/isReadOnly``). It keeps for each pair of collection and id the version with the
/// greatest timestamp: last writer wins. `ChangeStore` is itself the adapter that AirDB asks for.
///
/// ```swift
/// let store = try ChangeStore(at: directory)
/// try await store.apply([
///   ChangeRecord(
///     id: "1", collection: "notes", type: .insert, payload: Data("Hello".utf8),
///     hlcTimestamp: "1700000000000-0000-a")
/// ])
/// let note = try store.record(forKey: RecordKey(collection: "notes", id: "1"))
/// try store.close()
/// ```
///
/// All methods may be called from any thread and any task. Methods that are not `async` do file I/O on
/// the caller's thread; reads take microseconds to milliseconds, writes wait for the storage device.
/// Dropping the last reference without ``close()`` is safe: the next open recovers, as after a crash.
/// But a thread that still ends a commit or works in the background may hold the lock for a moment
/// longer, so that whoever opens it again at once closes it first.
public final class ChangeStore: Sendable {
  private let directory: StoreDirectory
  private let options: EngineOptions
  private let scheduler: any Scheduler
  /// Where the cleaner works by itself; nil if it does not.
  private let cleanerScheduler: (any Scheduler)?
  private let state: Locked<State>
  /// Told of what is committed, refreshed, and taken up again.
  package let signal = CommitSignal()
  let deliveries = Deliveries()
  /// The types that are deletions, as the store has recorded them for good.
  private let deletionValues: Set<Int64>
  /// Held while the store is reopened, suspended or closed.
  private let transition = Monitor()

  private enum State {
    case open(Opening.Opened)
    case suspended
    case closed

    var isSuspended: Bool { if case .suspended = self { true } else { false } }
  }

  /// Opens the store in a directory, or creates it.
  ///
  /// - Parameters:
  ///   - path: The directory of the store. Its parent must exist.
  ///   - configuration: See ``Configuration``. What is recorded in the store must match.
  /// - Throws: ``LogStoreError`` with `storeInUse` if it is open for writing elsewhere; `corrupt` if
  ///   durable bytes are damaged; `unsupportedFormat`, `configurationMismatch`, `storeNotFound`;
  ///   `directoryNotFound` if the parent does not exist; `protectedDataUnavailable`; `limitExceeded`
  ///   for a configuration beyond its limits; `noSpace`, `tooManyOpenFiles`, `inputOutput`. A store
  ///   that is refused is not changed.
  /// - Complexity: After a clean close independent of the size of the store; otherwise in
  ///   proportion to the bytes that were not sealed, at most a few segments.
  public convenience init(
    at path: String, configuration: Configuration = Configuration()
  ) throws(LogStoreError) {
    try self.init(path: path, configuration, platform: SystemPlatform())
  }

  /// Opens the store in a directory, or creates it. See ``init(at:configuration:)-(String,_)``.
  public convenience init(
    at url: URL, configuration: Configuration = Configuration()
  ) throws(LogStoreError) {
    try self.init(at: url.path, configuration: configuration)
  }

  /// A store in memory, with the same code on a file system that is none. It is gone when the last
  /// reference to it is.
  public static func inMemory(
    configuration: Configuration = Configuration()
  ) throws(LogStoreError) -> ChangeStore {
    try ChangeStore(path: "/store", configuration, platform: MemoryPlatform())
  }

  /// Removes a store: its files, and its directory if nothing else is in it. A damaged one, too.
  ///
  /// Cut short by a crash, it leaves what is no store any more, and can be called again.
  ///
  /// - Throws: ``LogStoreError`` with `storeInUse` if it is open for writing; `storeNotFound`;
  ///   `protectedDataUnavailable` or `inputOutput` if something cannot be removed.
  public static func destroy(at path: String) throws(LogStoreError) {
    try destroy(at: path, on: SystemPlatform())
  }

  /// Removes a store. See ``destroy(at:)-(String)``.
  public static func destroy(at url: URL) throws(LogStoreError) {
    try destroy(at: url.path)
  }

  package static func destroy(
    at path: String, on platform: any Platform
  ) throws(LogStoreError) {
    try Opening.destroy(StoreDirectory(path: path, platform: platform))
  }

  /// Makes a copy of a store one of its own: gives it another identity, so that positions of the store
  /// that it was copied from are errors here, and the other way round.
  ///
  /// For a copy that is to be written beside the original, such as one of a backup or of another
  /// device: both would give out the same sequences. Named consumers keep their places.
  ///
  /// - Returns: The new identity, as positions have it.
  /// - Throws: ``LogStoreError`` with `storeNotFound`; `storeInUse` if it is open for writing. If it
  ///   throws, the store may have either identity, and this can be called again.
  @discardableResult
  public static func adopt(at path: String) throws(LogStoreError) -> String {
    try adopt(at: path, platform: SystemPlatform())
  }

  /// Makes a copy of a store one of its own. See ``adopt(at:)-(String)``.
  @discardableResult
  public static func adopt(at url: URL) throws(LogStoreError) -> String {
    try adopt(at: url.path)
  }

  package static func adopt(
    at path: String, platform: any Platform
  ) throws(LogStoreError) -> String {
    try Adoption.run(StoreDirectory(path: path, platform: platform)).description
  }

  package init(
    path: String, _ configuration: Configuration, platform: any Platform,
    scheduler: (any Scheduler)? = nil, cleanerScheduler: (any Scheduler)? = nil
  ) throws(LogStoreError) {
    directory = StoreDirectory(path: path, platform: platform)
    options = try EngineOptions(configuration)
    self.scheduler = scheduler ?? QueueScheduler(label: "airdb.log.background")
    // Not beside a given scheduler: such a run is to be the same each time.
    let ownScheduler = scheduler == nil ? QueueScheduler(label: "airdb.log.cleaner") : nil
    self.cleanerScheduler =
      configuration.cleaning.isAutomatic ? cleanerScheduler ?? ownScheduler : nil
    let opened = try Opening.open(
      directory, options, scheduler: self.scheduler, cleanerScheduler: self.cleanerScheduler)
    state = Locked(.open(opened))
    deletionValues = Set(opened.engine.options.deletionValues)
    observe(opened)
  }

  deinit { signal.finish() }

  /// Has observers told of what a writer publishes.
  private func observe(_ opened: Opening.Opened) {
    opened.writer?.publishHook = { [signal] in signal.notify() }
  }

  /// Goes over to another engine, and has observers look at what it shows.
  private func take(_ opened: Opening.Opened) {
    observe(opened)
    state.withLock { $0 = .open(opened) }
    signal.notify()
  }

  /// Whether a record or a change of this type is a deletion, by the ``Configuration/deletionValues``
  /// that the store was created with. No I/O; also when the store is suspended or closed.
  public func isDeletion(_ type: MutationType) -> Bool {
    deletionValues.contains(Int64(type.rawValue))
  }

  // MARK: State

  /// The engine, for reading.
  package var engine: Engine {
    get throws(LogStoreError) { try opened.engine }
  }

  /// Runs a read.
  ///
  /// A store that is open read-only looks at a writer's files, which go when that compacts them. It then
  /// moves on to what the writer has now, and the read begins again. So does a read that a reopening
  /// overtakes: the files that it still looked at may be gone.
  func reading<Result>(
    _ body: (Engine) throws(LogStoreError) -> Result
  ) throws(LogStoreError) -> Result {
    var attempts = Self.readAttempts
    while true {
      let engine = try engine
      do throws(LogStoreError) {
        return try body(engine)
      } catch {
        attempts -= 1
        guard attempts > 0 else { throw error }
        if error.code == .staleReader {
          try refresh(ifStill: engine)
        } else {
          guard error.code == .inputOutput || error.code == .corrupt, try !isCurrent(engine)
          else { throw error }
        }
      }
    }
  }

  private static let readAttempts = 16

  /// Whether an engine is still this store's; waits for a reopening that is under way.
  func isCurrent(_ engine: Engine) throws(LogStoreError) -> Bool {
    try transition.withLock { () throws(LogStoreError) in try self.engine === engine }
  }

  private var opened: Opening.Opened {
    get throws(LogStoreError) {
      switch state.withLock({ $0 }) {
      case .open(let opened): return opened
      case .suspended: throw LogStoreError(.suspended, "The store is suspended.")
      case .closed: throw LogStoreError(.closed, "The store has been closed.")
      }
    }
  }

  /// The writer, unless the store is open read-only.
  package var writerIfAny: Writer? {
    get throws(LogStoreError) { try opened.writer }
  }

  /// The writer, if this store may write here and now.
  package var writer: Writer {
    get throws(LogStoreError) {
      guard let writer = try opened.writer else {
        throw LogStoreError(.readOnly, "The store is open read-only.")
      }
      try checkProcess(writer.engine)
      return writer
    }
  }

  /// The cleaner, if this store may write here and now.
  package var cleaner: Cleaner {
    get throws(LogStoreError) {
      _ = try writer
      guard let cleaner = try opened.cleaner else {
        throw LogStoreError(.readOnly, "The store is open read-only.")
      }
      return cleaner
    }
  }

  /// A forked child has the parent's lock and files, and must use neither.
  private func checkProcess(_ engine: Engine) throws(LogStoreError) {
    guard engine.writerLock?.isOwnProcess != false else {
      throw LogStoreError(.forkedProcess, "The store was opened by the parent of this process.")
    }
  }
}

// MARK: - Applying

extension ChangeStore {
  /// Applies a batch: all of it or nothing; last writer wins for each key.
  ///
  /// A change whose timestamp is not greater than that of the version that is there is skipped. A key
  /// that occurs twice behaves as if the changes were applied one after the other. When this
  /// returns, the batch has reached the store's ``Configuration/durability``, and so has what made any
  /// of it stale.
  ///
  /// - Parameters:
  ///   - changes: At most 1 GiB over all fields.
  ///   - author: The label of the commit; the configuration's by default.
  /// - Throws: ``LogStoreError``. With `outcomeUnknown` the batch may or may not survive, and the
  ///   store takes no more writes until ``reopen()``; with any other code nothing of it was applied:
  ///   `invalidTimestamp`, `mixedTimestamps` or `limitExceeded` for a record, which
  ///   ``LogStoreError/recordIndex`` names; `noSpace`, `tooManyOpenFiles` or `protectedDataUnavailable`,
  ///   after which it can be tried again; `readOnly`, `suspended`, `closed`. `CancellationError` if the
  ///   task was cancelled before, and then nothing was applied: a batch that has been handed on is not
  ///   recalled.
  /// - Complexity: O(n log n) in the batch, and a filter probe a sealed segment for each record.
  @concurrent
  @discardableResult
  public func apply(
    _ changes: [ChangeRecord], author: String? = nil
  ) async throws -> ApplyResult {
    try Task.checkCancellation()
    let writer = try writer
    let batch = try prepare(changes, author, writer)
    return try result(await writer.queue.commit(.batch(batch)), writer)
  }

  /// Applies a batch as ``apply(_:author:)`` does, on the caller's thread, which waits.
  ///
  /// Faster than the asynchronous one by the thread changes that it saves. Not for the main thread,
  /// nor for the threads of the cooperative pool: it waits for the storage device. It does not look
  /// whether a task was cancelled.
  ///
  /// - Parameters:
  ///   - changes: At most 1 GiB over all fields.
  ///   - author: The label of the commit; the configuration's by default.
  /// - Throws: As ``apply(_:author:)`` does, but for `CancellationError`.
  @discardableResult
  public func applyAndWait(
    _ changes: [ChangeRecord], author: String? = nil
  ) throws(LogStoreError) -> ApplyResult {
    let writer = try writer
    let batch = try prepare(changes, author, writer)
    return try result(writer.queue.commit(.batch(batch)), writer)
  }

  private func prepare(
    _ changes: [ChangeRecord], _ author: String?, _ writer: Writer
  ) throws(LogStoreError) -> PreparedBatch {
    if let refusal = writer.refusal { throw refusal }
    return try PreparedBatch(
      changes, label: author.map { Array($0.utf8) } ?? options.authorLabel,
      format: writer.engine.options.format, secret: writer.engine.manifest.value.hashSecret)
  }

  private func result(
    _ outcome: Result<CommitOutcome, LogStoreError>, _ writer: Writer
  ) throws(LogStoreError) -> ApplyResult {
    let outcome = try outcome.get()
    return ApplyResult(
      accepted: outcome.accepted, superseded: outcome.superseded,
      conflictingTies: outcome.conflictingTies,
      possibleResurrections: outcome.possibleResurrections,
      position: outcome.end.map { writer.engine.position(at: $0) })
  }

  /// What ``apply(_:author:)`` would refuse about the records of a batch: an error for each, with
  /// its ``LogStoreError/recordIndex``; empty if nothing. Changes nothing.
  ///
  /// The size of the batch as a whole is not looked at.
  ///
  /// - Throws: ``LogStoreError`` with `suspended` or `closed`.
  /// - Complexity: O(n) in the batch, without I/O.
  public func validate(_ changes: [ChangeRecord]) throws(LogStoreError) -> [LogStoreError] {
    let engine = try engine
    var kind = engine.snapshot.physicalKind
    var problems: [LogStoreError] = []
    for (index, record) in changes.enumerated() {
      do throws(PreparedBatch.Refusal) {
        let parts = try PreparedBatch.check(record, format: engine.options.format)
        if let kind, parts.kind != kind { throw .mixed(record.hlcTimestamp) }
        kind = parts.kind
      } catch {
        problems.append(error.error(at: index))
      }
    }
    return problems
  }
}

/// What became of a batch.
public struct ApplyResult: Sendable, Hashable {
  /// Changes that are now in the log.
  public let accepted: Int
  /// Changes that an equal or newer version of their key made stale, in the store or in the batch.
  public let superseded: Int
  /// Those among the superseded whose timestamp equals that of the stored version while their content
  /// differs: a sign that two writers share a node.
  public let conflictingTies: Int
  /// Changes of absent records that are not newer than some deletion that has been purged: they may
  /// bring back what was deleted. Applied, and among the accepted, or skipped, and among the superseded,
  /// as ``Configuration/resurrections`` says.
  public let possibleResurrections: Int
  /// The commit; nil if the whole batch was stale, which writes nothing.
  public let position: Position?
}

// MARK: - Ending and beginning again

extension ChangeStore {
  /// Makes everything that has been applied survive `durability`, whatever the configuration says.
  ///
  /// ``Durability/powerLoss`` waits for the storage device, on this thread, which should not be one of
  /// the cooperative pool; for ``Durability/processCrash`` nothing is to be done.
  ///
  /// - Throws: ``LogStoreError`` with `outcomeUnknown` if a sync fails: what was applied may or may not
  ///   survive, and the store takes no more writes until ``reopen()``; `readOnly`, `suspended`, `closed`.
  public func flush(to durability: Durability) throws(LogStoreError) {
    let writer = try writer
    if let refusal = writer.refusal { throw refusal }
    if durability == .powerLoss { try writer.synchronize() }
  }

  /// Closes the store: makes everything durable and gives the lock back. A second call does nothing.
  ///
  /// Calls that are under way finish; later ones throw `closed`.
  /// - Throws: ``LogStoreError`` if the end could not be made durable; the store is closed all the
  ///   same, and the next open recovers.
  public func close() throws(LogStoreError) {
    try transition.withLock { () throws(LogStoreError) in
      defer { signal.finish() }
      try leave(for: .closed)
    }
  }

  /// Closes as far as a call on a store in this state can, and goes over to the next.
  private func leave(for next: State) throws(LogStoreError) {
    let current = state.withLock { state in
      defer { if case .closed = state {} else { state = next } }
      return state
    }
    guard case .open(let opened) = current else { return }
    opened.engine.end(
      next.isSuspended
        ? LogStoreError(.expired, "The store has been suspended since this was fetched.")
        : LogStoreError(.closed, "The store has been closed."))
    defer { opened.engine.files.removeAll() }
    guard let writer = opened.writer, let lock = opened.engine.writerLock else { return }
    // In a forked child the files are the parent's to close.
    guard lock.isOwnProcess else { return }
    defer {
      opened.engine.consumers.close()
      lock.release()
    }
    opened.cleaner?.stop()
    try writer.close()
  }

  /// Finishes the running commit and gives the lock back, until ``resume()``. Reads and writes throw
  /// `suspended` meanwhile.
  ///
  /// An app is killed if the system suspends it while it holds a lock in a shared container: call this
  /// from a background task before that. On a store that is suspended or closed it does nothing.
  ///
  /// - Throws: ``LogStoreError`` if the end could not be made durable; the store is suspended all the
  ///   same, and ``resume()`` recovers.
  public func suspend() throws(LogStoreError) {
    try transition.withLock { () throws(LogStoreError) in
      try leave(for: .suspended)
    }
  }

  /// Takes the lock again and reads what other processes have written meanwhile. On a store that is
  /// not suspended it does nothing.
  ///
  /// - Throws: ``LogStoreError`` with `closed` after ``close()``; whatever an open throws, such as
  ///   `storeInUse`: the store stays suspended then.
  public func resume() throws(LogStoreError) {
    try transition.withLock { () throws(LogStoreError) in
      switch state.withLock({ $0 }) {
      case .open: return
      case .closed: throw LogStoreError(.closed, "The store has been closed.")
      case .suspended: break
      }
      let opened = try Opening.open(
        directory, options, scheduler: scheduler, cleanerScheduler: cleanerScheduler)
      take(opened)
    }
  }

  /// Recovers the store after `outcomeUnknown`, on the same object, as a new open would.
  ///
  /// Without such a failure it is a close and an open. If it throws, the store stays as it was, but takes
  /// no writes; call it again.
  public func reopen() throws(LogStoreError) {
    try transition.withLock { () throws(LogStoreError) in
      let current = try opened
      if let writer = current.writer {
        try checkProcess(current.engine)
        current.cleaner?.stop()
        try? writer.close()
        current.engine.consumers.close()
        current.engine.end(
          LogStoreError(.expired, "The store has been reopened since this was fetched."))
        current.engine.files.removeAll()
        current.engine.writerLock?.release()
      }
      let fresh = try Opening.open(
        directory, options, scheduler: scheduler, cleanerScheduler: cleanerScheduler)
      take(fresh)
    }
  }

  /// For a read-only store: shows what the writer has committed since it was opened or last
  /// refreshed. For others it does nothing.
  ///
  /// It also happens by itself when a read needs a file that the writer has replaced meanwhile.
  ///
  /// - Throws: What an open throws; the store shows then what it showed before.
  /// - Complexity: In proportion to the bytes of the log that are not sealed.
  public func refresh() throws(LogStoreError) {
    try refresh(ifStill: nil)
  }

  /// Refreshes, unless another call has done so since `engine` was looked at.
  private func refresh(ifStill engine: Engine?) throws(LogStoreError) {
    try transition.withLock { () throws(LogStoreError) in
      let current = try opened
      guard current.writer == nil, engine == nil || engine === current.engine else { return }
      let fresh = try Opening.openForReading(
        directory, options, scheduler, previous: current.engine)
      take(fresh)
    }
  }

  /// What commits of this store really survive: weaker than asked for where the platform or its
  /// file system cannot do better, which is known after the first sync of an open store. Of a store
  /// that is open read-only it is what the configuration says.
  public var effectiveDurability: Durability {
    get throws(LogStoreError) {
      guard let writer = try opened.writer else { return options.durability }
      return writer.isReduced ? .processCrash : options.durability
    }
  }
}
