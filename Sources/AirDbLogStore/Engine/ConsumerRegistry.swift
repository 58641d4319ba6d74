/// Keeps the consumers of a store: in memory, and durably in the consumer file (Format 13).
///
/// Progress of a consumer writes one of the file's two slots, any other change a new file; so a slot
/// that rots takes back progress, which is made again, and never a consumer. The file is read on
/// first use.
///
/// After a sync or a rename that failed, or a write that failed for another reason than want, it is
/// unknown what a crash would leave: the registry takes no more changes, and compactions may not
/// rely on it, until the store is reopened.
///
/// Usable from any thread. `@unchecked Sendable`: `changeHook` is set before the first use, `openFile`
/// is only touched inside `changes`, and the rest has locks of its own.
package final class ConsumerRegistry: @unchecked Sendable {
  private let directory: StoreDirectory
  private let storeId: StoreId
  private let isReadOnly: Bool
  /// Held for the length of a change, with its I/O. Changes of `state` are made inside of it.
  private let changes = Monitor()
  /// What is known; held for a moment only, so that a look at consumers never waits for a sync.
  private let state = Locked(State())
  private var openFile: OpenFile?

  /// Told when something has changed, so that less may have to be kept. Set before the first use.
  package var changeHook: (@Sendable () -> Void)?

  private struct State: Sendable {
    /// What is on disk; nil: no file.
    var file: ConsumerFile?
    var isLoaded = false
    /// Whether what is on disk is what `file` says, durably.
    var isSettled = false
    /// Why nothing can be changed any more.
    var refusal: LogStoreError?
  }

  /// Raised by every change that may ask for more to be kept, before that is made. Compactions hold
  /// the monitor while they take effect.
  private let revision = Locked<UInt64>(0)
  private let effect = Monitor()

  package init(_ directory: StoreDirectory, storeId: StoreId, isReadOnly: Bool) {
    self.directory = directory
    self.storeId = storeId
    self.isReadOnly = isReadOnly
  }

  /// The consumers now.
  package var consumers: [ConsumerTable.Entry] {
    get throws(LogStoreError) {
      if let refusal = state.withLock({ $0.refusal }), refusal.code == .closed { throw refusal }
      return try loaded()?.consumers ?? []
    }
  }

  /// The consumer with a number that is no other's.
  package func consumer(_ number: UInt64, _ name: [UInt8]) throws(LogStoreError)
    -> ConsumerTable.Entry
  {
    guard let found = try consumers.first(where: { $0.number == number && $0.name == name }) else {
      throw Self.notFound(name)
    }
    return found
  }

  /// Ends all use of the file. Called before the writer's lock is given back; waits for a change
  /// under way.
  package func close() {
    changes.withLock {
      state.withLock { $0.refusal = LogStoreError(.closed, "The store has been closed.") }
      openFile = nil
    }
  }

  private static func notFound(_ name: [UInt8]) -> LogStoreError {
    LogStoreError(
      .consumerNotFound,
      "There is no consumer \"\(String(decoding: name, as: UTF8.self))\", or not this one any more."
    )
  }
}

// MARK: - Changes

extension ConsumerRegistry {
  /// Registers a consumer, or answers the one with this name, whose retention is changed if it is
  /// another one. `place` is asked for where a new one begins, when nothing is cleaned away any more
  /// that it might ask for.
  package func register(
    _ name: [UInt8], _ retention: ConsumerTable.Retention, date: Int64,
    at place: () throws(LogStoreError) -> ConsumerTable.Place
  ) throws(LogStoreError) -> ConsumerTable.Entry {
    if let known = try consumers.first(where: { $0.name == name }), known.retention == retention {
      return known
    }
    try change { (table) throws(LogStoreError) in
      if let index = table.index(named: name) {
        table.consumers[index].retention = retention
        return
      }
      guard table.consumers.count < Limits.consumers else {
        throw LogStoreError(
          .limitExceeded, "The store has \(Limits.consumers) consumers, which is the most.")
      }
      var entry = ConsumerTable.Entry(
        number: table.nextNumber, name: name, registeredDate: date)
      entry.retention = retention
      entry.place = try place()
      table.nextNumber += 1
      table.insert(entry)
    }
    guard let entry = try consumers.first(where: { $0.name == name }) else {
      throw Self.notFound(name)
    }
    return entry
  }

  /// Moves a consumer forward. Does nothing for a place that it has reached, nor after a reset if
  /// `resets` says how often it had been reset when the progress was made. The commit must be
  /// durable.
  package func advance(
    _ consumer: ConsumerTable.Entry, to place: ConsumerTable.Place, resets: UInt64? = nil
  ) throws(LogStoreError) {
    let hasAdvanced = try changes.withLock { () throws(LogStoreError) in
      try checkWritable()
      try load()
      let (file, isSettled) = state.withLock { ($0.file, $0.isSettled) }
      guard let file, var table = file.current,
        let index = table.index(named: consumer.name),
        table.consumers[index].number == consumer.number
      else { throw Self.notFound(consumer.name) }
      let entry = table.consumers[index]
      guard entry.place.sequence < place.sequence, resets == nil || resets == entry.resets
      else { return false }
      table.consumers[index].place = place
      if isSettled { try write(table, into: file) } else { try replace(with: table) }
      return true
    }
    if hasAdvanced { changeHook?() }
  }

  /// Moves a consumer to any place. The commit must be durable.
  package func reset(
    _ consumer: ConsumerTable.Entry, to place: () throws(LogStoreError) -> ConsumerTable.Place
  ) throws(LogStoreError) {
    try change { (table) throws(LogStoreError) in
      let index = try Self.index(of: consumer, in: table)
      table.consumers[index].place = try place()
      table.consumers[index].resets += 1
    }
  }

  /// Removes a consumer.
  package func retire(_ consumer: ConsumerTable.Entry) throws(LogStoreError) {
    try change { (table) throws(LogStoreError) in
      table.consumers.remove(at: try Self.index(of: consumer, in: table))
    }
  }

  /// Removes all consumers, even if the file is damaged.
  package func retireAll() throws(LogStoreError) {
    try changes.withLock { () throws(LogStoreError) in
      try checkWritable()
      var known: ConsumerTable?
      do throws(LogStoreError) {
        try load()
        guard let file = state.withLock({ $0.file }) else { return }
        known = file.current
      } catch {
        guard error.code == .corrupt else { throw error }
      }
      var table = known ?? ConsumerTable()
      table.consumers = []
      try replace(with: table)
    }
    changeHook?()
  }

  private static func index(
    of consumer: ConsumerTable.Entry, in table: ConsumerTable
  ) throws(LogStoreError) -> Int {
    guard let index = table.index(named: consumer.name),
      table.consumers[index].number == consumer.number
    else { throw notFound(consumer.name) }
    return index
  }

  /// Makes a change that is more than progress.
  private func change(
    _ body: (inout ConsumerTable) throws(LogStoreError) -> Void
  ) throws(LogStoreError) {
    try changes.withLock { () throws(LogStoreError) in
      try checkWritable()
      try load()
      // No compaction that began before this takes effect any more; one that begins now waits.
      effect.withLock { revision.withLock { $0 += 1 } }
      var table = current ?? ConsumerTable()
      try body(&table)
      try replace(with: table)
    }
    changeHook?()
  }
}

// MARK: - What compactions may rely on

extension ConsumerRegistry {
  /// The consumers as a compaction found them, durably.
  package struct Reading: Sendable {
    package var consumers: [ConsumerTable.Entry]
    /// Nil: nothing may be cleaned away on the word of this.
    fileprivate var revision: UInt64?
  }

  /// The consumers, after they have been made durable if need be: what is cleaned away on the word of
  /// a position must not be asked for again after a crash.
  package func settled() throws(LogStoreError) -> Reading {
    try changes.withLock { () throws(LogStoreError) in
      try checkWritable()
      try load()
      let (table, isSettled) = state.withLock { ($0.file?.current, $0.isSettled) }
      // A process that died, or one whose sync failed, may have left it in the cache of the system,
      // where another sync need not write it.
      if let table, !isSettled { try replace(with: table) }
      return Reading(consumers: table?.consumers ?? [], revision: revision.withLock { $0 })
    }
  }

  /// The consumers as they are, for estimates: no compaction takes effect on the word of this.
  func glimpse() throws(LogStoreError) -> Reading {
    Reading(consumers: try loaded()?.consumers ?? [], revision: nil)
  }

  /// The consumers as a copy of the store has them, as the bytes of a file; nil if there never was
  /// one. None is beyond the end of the copy. A damaged file is copied as it is.
  package func copy(until end: () -> LogEnd) throws(LogStoreError) -> [UInt8]? {
    let known: ConsumerTable?
    do throws(LogStoreError) {
      known = try loaded()
    } catch {
      guard error.code == .corrupt else { throw error }
      return try directory.contents(of: directory.consumers, limit: ConsumerFile.greatestLength)
    }
    guard var table = known else { return nil }
    let end = end()
    for index in table.consumers.indices
    where table.consumers[index].place.sequence > end.sequence {
      table.consumers[index].place.sequence = end.sequence
      table.consumers[index].place.checksum = end.checksum
    }
    return ConsumerFile.make(table, storeId: storeId).bytes
  }

  /// Reads the file anew. Throws `corrupt` if it cannot be used.
  package func check() throws(LogStoreError) {
    try changes.withLock { () throws(LogStoreError) in _ = try read() }
  }

  /// Runs `body`, by which a compaction takes effect, unless a consumer may ask for more since the
  /// reading that it relies on; nil then. Changes that would ask for more wait meanwhile.
  package func takingEffect<Result>(
    _ reading: Reading, _ body: () throws(LogStoreError) -> Result
  ) throws(LogStoreError) -> Result? {
    try effect.withLock { () throws(LogStoreError) in
      guard revision.withLock({ $0 }) == reading.revision else { return nil }
      return try body()
    }
  }
}

// MARK: - The file

extension ConsumerRegistry {
  /// How often a reader looks again at a file that the writer is changing.
  private static let attempts = 16

  /// The table in force, nil if there is no file. Waits for a change that is under way only if the file
  /// has not been read yet.
  private func loaded() throws(LogStoreError) -> ConsumerTable? {
    let (isLoaded, table) = state.withLock { ($0.isLoaded, $0.file?.current) }
    if isLoaded { return table }
    return try changes.withLock { () throws(LogStoreError) in
      try load()
      return current
    }
  }

  private var current: ConsumerTable? { state.withLock { $0.file?.current } }

  /// Reads the file on first use. Only inside `changes`, as is all that follows.
  private func load() throws(LogStoreError) {
    if state.withLock({ $0.isLoaded }) { return }
    let found = try read()
    state.withLock { state in
      state.file = found
      state.isLoaded = true
      state.isSettled = found == nil
    }
  }

  private func read() throws(LogStoreError) -> ConsumerFile? {
    let path = directory.consumers
    var failure: FormatError?
    for _ in 0..<(isReadOnly ? Self.attempts : 1) {
      guard
        let bytes = try directory.contents(of: path, limit: ConsumerFile.greatestLength)
      else { return nil }
      do throws(ConsumerFile.Failure) {
        return try withBytes(of: bytes) { (bytes) throws(ConsumerFile.Failure) in
          try ConsumerFile.decode(bytes, storeId: storeId)
        }
      } catch {
        switch error {
        case .unsupported(let what):
          throw LogStoreError(.unsupportedFormat, "The consumer file needs \(what).", file: path)
        case .damaged(let reason): failure = reason
        }
      }
    }
    throw .corrupt(failure ?? FormatError("it cannot be read"), file: path)
  }

  private func checkWritable() throws(LogStoreError) {
    if let refusal = state.withLock({ $0.refusal }) { throw refusal }
    if isReadOnly { throw LogStoreError(.readOnly, "The store is open read-only.") }
  }

  private func existingFile() throws(LogStoreError) -> OpenFile {
    if let openFile { return openFile }
    do throws(SystemError) {
      let opened = try directory.open(directory.consumers, .readWrite)
      openFile = opened
      return opened
    } catch {
      throw LogStoreError(error, "open the consumer file", file: directory.consumers)
    }
  }

  /// Puts a table into the slot that does not hold the current one.
  private func write(
    _ changed: ConsumerTable, into current: ConsumerFile
  ) throws(LogStoreError) {
    let opened = try existingFile()
    let slot = current.nextSlot
    var table = changed
    table.generation += 1
    do throws(SystemError) {
      try withBytes(of: current.encode(table, in: slot, storeId: storeId)) {
        (bytes) throws(SystemError) in
        try opened.writeAll(bytes, at: current.offset(of: slot))
      }
    } catch {
      throw outcome(error, "save the position of a consumer")
    }
    do throws(SystemError) {
      try opened.synchronize()
    } catch {
      throw unknown(error, "save the position of a consumer")
    }
    state.withLock { $0.file?.slots[slot] = table }
  }

  /// Puts a new file with the table in the place of the one before.
  private func replace(with changed: ConsumerTable) throws(LogStoreError) {
    var table = changed
    table.generation = (current?.generation ?? 0) + 1
    let (next, bytes) = ConsumerFile.make(table, storeId: storeId)
    do throws(SystemError) {
      try withBytes(of: bytes) { (bytes) throws(SystemError) in
        try directory.writeSynced(bytes, to: directory.newConsumers)
      }
    } catch {
      // The one before is in force; what there is of the new one takes space.
      try? directory.remove(directory.newConsumers)
      throw LogStoreError(error, "write the consumer file", file: directory.newConsumers)
    }
    openFile = nil
    state.withLock { $0.isSettled = false }
    do throws(SystemError) {
      try directory.rename(directory.newConsumers, to: directory.consumers)
      try directory.synchronizeDirectory()
    } catch {
      throw outcome(error, "replace the consumer file")
    }
    state.withLock { state in
      state.file = next
      state.isLoaded = true
      state.isSettled = true
    }
  }

  /// For want of space, descriptors or permission nothing has happened that another attempt would
  /// not put right.
  private func outcome(_ error: SystemError, _ action: String) -> LogStoreError {
    if error.isRefusal {
      return LogStoreError(error, action, file: directory.consumers)
    }
    return unknown(error, action)
  }

  private func unknown(_ error: SystemError, _ action: String) -> LogStoreError {
    let unknown = LogStoreError(
      .outcomeUnknown,
      "Could not \(action): \(error.description). Whether that was changed is unknown; no consumer can be changed until the store is reopened.",
      file: directory.consumers, errno: error.errno)
    state.withLock { $0.refusal = unknown }
    return unknown
  }
}
