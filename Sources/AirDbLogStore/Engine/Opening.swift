internal import HlcText

/// Opens, creates and destroys stores (Recovery 2).
package enum Opening {
  package struct Opened: Sendable {
    package let engine: Engine
    /// Nil when open read-only.
    package let writer: Writer?
    package let cleaner: Cleaner?
  }

  /// Opens the store in a directory, creating it if the options say so.
  ///
  /// A refusal changes nothing, except that it may leave an empty `LOCK` in an existing store.
  package static func open(
    _ directory: StoreDirectory, _ options: EngineOptions, scheduler: any Scheduler,
    cleanerScheduler: (any Scheduler)?, lock: WriterLock? = nil
  ) throws(LogStoreError) -> Opened {
    if options.isReadOnly { return try openForReading(directory, options, scheduler) }
    // Looked at before the lock is taken, so that a store that this version must not touch is not
    // touched; and again under the lock.
    let found = try directory.readManifest()
    if let found {
      try check(found, options, directory)
    } else {
      try prepareCreation(directory, options)
    }
    let lock = if let lock { lock } else { try WriterLock(directory) }
    do throws(LogStoreError) {
      let manifest: Manifest
      if let current = try directory.readManifest() {
        try check(current, options, directory)
        manifest = current
      } else {
        manifest = try create(directory, options)
      }
      return try openForWriting(
        directory, options.resolved(for: manifest), scheduler, cleanerScheduler, lock, manifest)
    } catch {
      lock.release()
      throw error
    }
  }

  /// Whether the store is one that these options may open.
  private static func check(
    _ manifest: Manifest, _ options: EngineOptions, _ directory: StoreDirectory
  ) throws(LogStoreError) {
    if let format = options.requestedFormat, manifest.hlcFormat != format.rawValue {
      throw LogStoreError(
        .configurationMismatch, "The store was created with another timestamp format.",
        file: directory.manifest)
    }
    if let values = options.requestedDeletionValues, manifest.deletionValues != values {
      throw LogStoreError(
        .configurationMismatch,
        "The store was created with the deletion values \(manifest.deletionValues), not \(values).",
        file: directory.manifest)
    }
    guard options.isReadOnly || manifest.optionalFeatures == 0 else {
      throw LogStoreError(
        .unsupportedFormat,
        "The store has optional features that this version cannot keep up; it can be opened read-only.",
        file: directory.manifest)
    }
  }

  // MARK: Creating

  /// Makes the directory for a new store, or checks that there is room for one in it.
  private static func prepareCreation(
    _ directory: StoreDirectory, _ options: EngineOptions
  ) throws(LogStoreError) {
    var names: [StoreDirectory.Name] = []
    var isNew = false
    do throws(SystemError) {
      names = try directory.list()
    } catch {
      guard error.isNotFound else {
        throw LogStoreError(error, "look into the store's directory", file: directory.path)
      }
      guard options.createsIfMissing else { throw notFound(directory) }
      isNew = true
    }
    let isData = names.contains { name in
      switch name {
      case .segment, .index, .liveness, .consumers: true
      default: false
      }
    }
    if isData {
      throw .corrupt(
        "the manifest is missing beside the files of a store", file: directory.manifest)
    }
    guard options.createsIfMissing else { throw notFound(directory) }
    do throws(SystemError) {
      try makeDurable(directory, isNew: isNew)
    } catch {
      throw LogStoreError(error, creating: directory, of: "store")
    }
  }

  /// Makes the store's directory if it is new, and its entry durable in any case: whoever made it,
  /// an earlier attempt perhaps, may not have come so far.
  private static func makeDurable(
    _ directory: StoreDirectory, isNew: Bool
  ) throws(SystemError) {
    let platform = directory.platform
    if isNew {
      do throws(SystemError) {
        try uninterrupted { () throws(SystemError) in
          try platform.createDirectory(directory.path)
        }
      } catch {
        if !error.isAlreadyThere { throw error }
      }
    }
    do throws(SystemError) {
      try uninterrupted { () throws(SystemError) in
        try platform.synchronizeDirectory(directory.parent)
      }
    } catch {
      // An app may have been given a directory whose parent it must not even open.
      if error.isPermission, !isNew { return }
      // A failed sync is not repeated: the next attempt begins with another directory.
      if isNew { try? platform.removeDirectory(directory.path) }
      throw error
    }
  }

  private static func notFound(_ directory: StoreDirectory) -> LogStoreError {
    LogStoreError(.storeNotFound, "There is no store.", file: directory.path)
  }

  private static func create(
    _ directory: StoreDirectory, _ options: EngineOptions
  ) throws(LogStoreError) -> Manifest {
    do throws(SystemError) {
      var random: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
      var failure: SystemError?
      withUnsafeMutableBytes(of: &random) { buffer in
        do throws(SystemError) {
          try directory.platform.fillRandom(buffer)
        } catch {
          failure = error
        }
      }
      if let failure { throw failure }
      var manifest = Manifest(
        storeId: StoreId(first: random.0, second: random.1),
        hashSecret: KeyHashSecret(first: random.2, second: random.3),
        hlcFormat: options.format.rawValue, deletionValues: options.deletionValues)
      manifest.createdDate = directory.platform.wallClockMilliseconds()
      // Before there is any content, which inherits it.
      if let attributes = options.attributes {
        try directory.platform.setAttributes(directory.path, attributes)
      }
      try directory.replaceManifest(manifest)
      return manifest
    } catch {
      throw LogStoreError(error, "create the store", file: directory.manifest)
    }
  }

  // MARK: Writing

  private static func openForWriting(
    _ directory: StoreDirectory, _ options: EngineOptions, _ scheduler: any Scheduler,
    _ cleanerScheduler: (any Scheduler)?, _ lock: WriterLock, _ manifest: Manifest
  ) throws(LogStoreError) -> Opened {
    let recovered = try Recovery.run(directory, manifest, options)
    let active = try repair(directory, manifest, recovered)
    let engine = Engine(
      options: options, directory: directory, manifest: ManifestStore(manifest, in: directory),
      published: published(recovered), scheduler: scheduler, writerLock: lock)
    try markSuperseded(engine, recovered)
    let writer = Writer(engine, recovered)
    try writer.adopt(recovered, files: active)
    if recovered.isUnclosed {
      engine.report(
        .recovered(
          discardedBytes: recovered.discardedBytes, lastSequence: recovered.end.sequence,
          replayedRecords: recovered.replayedRecords))
    }
    let cleaner = Cleaner(writer, scheduler: cleanerScheduler)
    writer.cleanerHook = { [weak cleaner] isWorthALook in
      if isWorthALook { cleaner?.consider() } else { cleaner?.considerIdle() }
    }
    engine.consumers.changeHook = { [weak cleaner] in cleaner?.considerIdle() }
    cleaner.considerIdle()
    return Opened(engine: engine, writer: writer, cleaner: cleaner)
  }

  /// Steps 10 to 12: removes what belongs to no commit, and makes what is left durable. Answers the
  /// files of the tail.
  private static func repair(
    _ directory: StoreDirectory, _ manifest: Manifest, _ recovered: Recovered
  ) throws(LogStoreError) -> [OpenFile] {
    do throws(SystemError) {
      let orphans = try orphans(directory, manifest, recovered)
      // The manifest that makes them orphans may not be durable itself.
      if recovered.isUnclosed || !orphans.isEmpty { try directory.synchronizeDirectory() }
      for orphan in orphans { try directory.remove(orphan) }
      // What was discarded must not come back.
      if !orphans.isEmpty { try directory.synchronizeDirectory() }
      var files: [OpenFile] = []
      for tail in recovered.tail {
        let file = try directory.open(directory.segment(tail.fileId), .readWrite)
        // Space behind the end of a closed store may be another session's, which wrote nothing
        // that could be read.
        let isSettled = !recovered.isUnclosed && tail.size == tail.length
        files.append(isSettled ? file : try makeDurable(file, tail, directory))
      }
      return files
    } catch {
      throw LogStoreError(error, "repair the end of the log", file: directory.path)
    }
  }

  /// Makes the medium hold what was read of a segment of the tail, and nothing behind it. Answers
  /// the file to go on with.
  private static func makeDurable(
    _ file: OpenFile, _ tail: Recovered.Tail, _ directory: StoreDirectory
  ) throws(SystemError) -> OpenFile {
    if FailedSyncs.contains(try file.identity()) { return try replace(file, tail, directory) }
    // Also where only zeros were read: it may have been the sync of another process that failed.
    if tail.size > tail.length { try file.truncate(to: tail.length) }
    try file.synchronize()
    return file
  }

  /// Puts a copy in the place of a segment whose sync has failed. Its pages look clean, and another
  /// sync would not write them.
  private static func replace(
    _ file: OpenFile, _ tail: Recovered.Tail, _ directory: StoreDirectory
  ) throws(SystemError) -> OpenFile {
    let path = directory.newSegment(tail.fileId)
    let copy = try directory.open(path, .createNew)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
    defer { buffer.deallocate() }
    var position: UInt64 = 0
    while position < tail.length {
      let wanted = Int(min(UInt64(buffer.count), tail.length - position))
      let count = try file.readExactly(
        into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: position)
      if count == 0 { break }
      try copy.writeAll(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: position)
      position += UInt64(count)
    }
    try copy.synchronize()
    try directory.rename(path, to: directory.segment(tail.fileId))
    try directory.synchronizeDirectory()
    return try directory.open(directory.segment(tail.fileId), .readWrite)
  }

  /// The files that a crash left and that nothing names.
  private static func orphans(
    _ directory: StoreDirectory, _ manifest: Manifest, _ recovered: Recovered
  ) throws(SystemError) -> [String] {
    let sealed = Set(manifest.segments.map(\.fileId))
    let tail = Set(recovered.tail.map(\.fileId))
    return try directory.list().compactMap { name in
      switch name {
      case .newManifest:
        directory.newManifest
      case .newConsumers:
        directory.newConsumers
      case .newIndex(let id) where id < manifest.fileIdLimit:
        directory.newIndex(id)
      case .newSegment(let id) where id < manifest.fileIdLimit:
        directory.newSegment(id)
      case .index(let id) where id < manifest.fileIdLimit && !sealed.contains(id):
        directory.index(id)
      case .segment(let id)
      where id < manifest.fileIdLimit && !sealed.contains(id) && !tail.contains(id):
        directory.segment(id)
      case .liveness(let generation)
      where generation <= manifest.generation + 1 && generation != manifest.livenessGeneration:
        directory.liveness(generation)
      default: nil
      }
    }
  }

  package static func published(_ recovered: Recovered) -> Published {
    var state = Published()
    state.sealed = ContiguousArray(
      recovered.sealed.map {
        Published.Sealed(segment: $0, dead: DeadBits(entryCount: $0.info.entryCount))
      })
    state.hasLiveness = recovered.sealed.isEmpty
    state.tail = recovered.tail.map(\.log)
    state.visibleRows = recovered.tail.last?.log.end ?? 0
    state.end = recovered.end
    state.sealedEnd = recovered.manifest.sealedEnd
    state.durableEnd = recovered.end
    state.commitDate = recovered.commitDate
    state.greatestHlc = recovered.greatestHlc
    state.purgeHorizon = Published.Greatest(
      recovered.manifest.horizonHlc, HlcFormat(rawValue: recovered.manifest.hlcFormat) ?? .hybrid)
    state.physicalKind = recovered.physicalKind
    return state
  }

  /// Step 8: finds what the tail superseded in the segments before it.
  package static func markSuperseded(
    _ engine: Engine, _ recovered: Recovered
  ) throws(LogStoreError) {
    let end = recovered.tail.last?.log.end ?? 0
    // Rows that superseded a row of the tail: what that one superseded in turn is not theirs.
    var supersedesTail: Set<UInt64> = []
    for (position, tail) in recovered.tail.enumerated() {
      let rows = tail.log.snapshot()
      for (index, row) in rows.rows.enumerated() where !row.hasOlder {
        let number = rows.base + UInt64(index)
        let earlier = recovered.tail[..<position].reversed()
        if let (log, older) = earlier.lazy.compactMap({ tail in
          tail.log.newest(row.hash, below: number).map { (tail.log, $0) }
        }).first {
          log.supersede(older.number, by: number)
          supersedesTail.insert(number)
        }
      }
    }
    guard recovered.firstUnmarkedRow < end, !recovered.sealed.isEmpty else { return }
    try engine.loadLiveness()
    try engine.reading { () throws(ReadFailure) in
      var marks: [(log: RowLog, mark: RowLog.Mark)] = []
      for tail in recovered.tail {
        let rows = tail.log.snapshot()
        for (index, row) in rows.rows.enumerated() where !row.hasOlder {
          let number = rows.base + UInt64(index)
          guard number >= recovered.firstUnmarkedRow, !supersedesTail.contains(number)
          else { continue }
          if let mark = try mark(
            row, number, collection: rows.collections[Int(row.collection)], recovered, engine)
          {
            marks.append((tail.log, mark))
          }
        }
      }
      for (log, mark) in marks { log.add(mark) }
      engine.published.withLock { $0.insert(marks.map(\.mark)) }
    }
  }

  private static func mark(
    _ row: RowLog.Row, _ number: UInt64, collection: [UInt8], _ recovered: Recovered,
    _ engine: Engine
  ) throws(ReadFailure) -> RowLog.Mark? {
    for segment in recovered.sealed.reversed() {
      let index = try engine.index(of: segment)
      do throws(IndexError) {
        if let entry = try withBytes(
          of: collection,
          { (name) throws(IndexError) in
            try index.find(row.hash, in: name)
          })
        {
          return RowLog.Mark(row: number, segment: segment.info.fileId, rank: entry.rank)
        }
      } catch {
        throw ReadFailure(error, segment)
      }
    }
    return nil
  }

  // MARK: Reading

  /// How often a reader follows a writer that changes the files under it.
  private static let attempts = 16

  /// Opens for reading. What `previous` has loaded of sealed segments is kept.
  package static func openForReading(
    _ directory: StoreDirectory, _ options: EngineOptions, _ scheduler: any Scheduler,
    previous: Engine? = nil
  ) throws(LogStoreError) -> Opened {
    let known = Dictionary(
      uniqueKeysWithValues: (previous?.snapshot.sealed ?? []).map {
        ($0.segment.info.fileId, $0.segment)
      })
    var lastError: LogStoreError?
    var hasMovedOn = false
    for _ in 0..<attempts {
      guard let manifest = try directory.readManifest() else {
        // A manifest is replaced by a rename: it is absent only where there is no store.
        try prepareCreation(directory, options)
        throw notFound(directory)
      }
      try check(manifest, options, directory)
      let options = options.resolved(for: manifest)
      do throws(LogStoreError) {
        // After a recovery by another session the same place may hold another block.
        let isSameSession = previous?.manifest.value.epoch == manifest.epoch
        let recovered = try Recovery.run(
          directory, manifest, options, known: isSameSession ? known : [:])
        for tail in recovered.tail where tail.needsSync { try synchronize(tail, directory) }
        let engine = Engine(
          options: options, directory: directory, manifest: ManifestStore(manifest, in: directory),
          published: published(recovered), scheduler: scheduler, writerLock: nil,
          cache: isSameSession ? previous?.cache : nil)
        // Now, since a writer removes the liveness file when it seals another segment. If it has, this
        // begins again; if it has not, the file is damaged, and what it said is found out again.
        if try !engine.loadLivenessFile() {
          let current = try directory.readManifest()
          if current?.livenessGeneration != manifest.livenessGeneration {
            lastError = nil
            continue
          }
          try engine.loadLiveness()
        }
        try markSuperseded(engine, recovered)
        // Nor may a segment of the tail have been sealed, compacted and removed: the log would seem
        // to end before it.
        let current = try directory.readManifest()
        if current?.sealedEnd != manifest.sealedEnd
          || current?.segments.map(\.fileId) != manifest.segments.map(\.fileId)
        {
          lastError = nil
          continue
        }
        return Opened(engine: engine, writer: nil, cleaner: nil)
      } catch {
        // A writer that moves on meanwhile can make the files look damaged, or a file go. Real damage
        // is found again each time.
        let codes: [LogStoreError.Code] = [.corrupt, .inputOutput, .staleReader]
        guard codes.contains(error.code) else { throw error }
        if let lastError, lastError.code == .corrupt, lastError.file == error.file,
          lastError.offset == error.offset, lastError.message == error.message
        {
          throw error
        }
        lastError = error
        hasMovedOn = try directory.readManifest()?.generation != manifest.generation
      }
    }
    // Under another manifest files are missing that were replaced, and nothing is damaged.
    if let lastError, lastError.code == .corrupt, !hasMovedOn { throw lastError }
    throw LogStoreError(
      .staleReader,
      "The writer changed the files \(attempts) times while the store was being opened; the last time: \(lastError?.message ?? "").",
      file: directory.path)
  }

  private static func synchronize(
    _ tail: Recovered.Tail, _ directory: StoreDirectory
  ) throws(LogStoreError) {
    let path = directory.segment(tail.fileId)
    do throws(SystemError) {
      try directory.open(path, .read).synchronize()
    } catch {
      // Nobody writes to such a file system, so that nothing is pending there.
      if error.isReadOnlyFileSystem { return }
      throw LogStoreError(error, "make the end of the log durable", file: path)
    }
  }

  // MARK: Destroying

  /// Removes the files of a store and, if nothing foreign is left in it, its directory. What an
  /// earlier attempt left is removed as well.
  package static func destroy(_ directory: StoreDirectory) throws(LogStoreError) {
    let hasFiles: Bool
    do throws(SystemError) {
      hasFiles = try directory.list().contains { $0 != .lock }
    } catch {
      if error.isNotFound { throw notFound(directory) }
      throw LogStoreError(error, "look into the store's directory", file: directory.path)
    }
    guard hasFiles else { throw notFound(directory) }
    let lock = try WriterLock(directory)
    defer { lock.release() }
    // A damaged manifest does not keep a store from being removed.
    let manifest = try? directory.readManifest()
    do throws(SystemError) {
      // The manifest first: what a crash leaves is no store, and is never taken for one.
      let names = try directory.list()
      if names.contains(.manifest) {
        try directory.remove(directory.manifest)
        try directory.synchronizeDirectory()
      }
      for name in names where name != .manifest && name != .lock {
        if let manifest, isForeign(name, manifest) { continue }
        try directory.remove(directory.path(of: name))
      }
      try directory.remove(directory.lock)
      do throws(SystemError) {
        try directory.platform.removeDirectory(directory.path)
      } catch {
        if !error.isDirectoryNotEmpty { throw error }
      }
    } catch {
      throw LogStoreError(error, "remove the store", file: directory.path)
    }
  }

  /// Whether a file has the name of a store's, but a number that this store never gave out.
  private static func isForeign(_ name: StoreDirectory.Name, _ manifest: Manifest) -> Bool {
    switch name {
    case .segment(let id), .newSegment(let id): id >= manifest.fileIdLimit
    case .index(let id), .newIndex(let id): id >= manifest.fileIdLimit
    case .liveness(let generation): generation > manifest.generation + 1
    case .manifest, .newManifest, .lock, .consumers, .newConsumers: false
    }
  }
}
