/// An open store: the files, the caches, and the state that readers see. The writer, reads and
/// checks are in files of their own.
///
/// One engine lives from an open to a close or to the first unknown outcome; reopening makes a new
/// one. Usable from any thread.
package final class Engine: Sendable {
  package let options: EngineOptions
  package let directory: StoreDirectory
  package let files: FileTable
  package let cache: BlockCache
  package let manifest: ManifestStore
  /// As positions have it.
  package let storeId: String
  package let published: Locked<Published>
  package let scheduler: any Scheduler
  package let fileIds: FileIds
  package let consumers: ConsumerRegistry
  package let knownTables = KnownTables()
  /// The writer's lock; nil when open read-only.
  package let writerLock: WriterLock?
  /// Why what was read earlier must not be read on, once that is so.
  package let ended = Locked<LogStoreError?>(nil)
  /// Held by whoever changes the list of sealed segments, from the look at the state to the manifest.
  package let structure = Monitor()
  /// One thread at a time loads an index or builds it again.
  private let repairing = Monitor()
  /// One thread at a time loads the liveness; building that again needs the indexes, so that
  /// `repairing` is taken inside this one.
  private let loadingLiveness = Monitor()

  package var platform: any Platform { directory.platform }

  package init(
    options: EngineOptions, directory: StoreDirectory, manifest: ManifestStore,
    published: Published, scheduler: any Scheduler, writerLock: WriterLock?,
    cache: BlockCache? = nil
  ) {
    self.options = options
    self.directory = directory
    self.manifest = manifest
    storeId = manifest.value.identity.description
    fileIds = FileIds(after: manifest.value)
    consumers = ConsumerRegistry(
      directory, storeId: manifest.value.storeId, isReadOnly: options.isReadOnly)
    self.published = Locked(published)
    self.scheduler = scheduler
    self.writerLock = writerLock
    files = FileTable(directory: directory, capacity: options.maximumOpenFiles)
    self.cache = cache ?? BlockCache(capacity: options.cacheBytes)
  }

  /// What was read from this engine and still depends on it can not be read on. The first reason is
  /// kept.
  package func end(_ reason: LogStoreError) { ended.withLock { if $0 == nil { $0 = reason } } }

  package func report(_ event: StoreEvent) { options.eventHandler?(event) }

  /// The state that readers see now.
  package var snapshot: Published { published.withLock { $0 } }
}

// MARK: - Indexes

extension Engine {
  /// The index of a sealed segment, loaded on first use.
  package func index(of segment: SealedSegment) throws(ReadFailure) -> SealedIndex {
    if let known = segment.loadedIndex.withLock({ $0 }) { return known }
    return try repairing.withLock { () throws(ReadFailure) in
      if let known = segment.loadedIndex.withLock({ $0 }) { return known }
      let index: SealedIndex
      do throws(IndexError) {
        index = try load(segment, .file(files))
      } catch {
        throw ReadFailure(error, segment)
      }
      segment.loadedIndex.withLock { $0 = index }
      return index
    }
  }

  private func load(
    _ segment: SealedSegment, _ origin: PageSource.Origin
  ) throws(IndexError) -> SealedIndex {
    let info = segment.info
    let storeId = manifest.value.storeId
    let source = PageSource(
      fileId: info.fileId, origin, build: segment.rebuilds.withLock { $0 }, cache: cache)
    return try SealedIndex(source) { header in
      header.storeId == storeId && header.segmentLength == info.length
        && header.lastChecksum == info.lastChecksum && header.entryCount == info.entryCount
        && header.recordCount == info.recordCount
    }
  }

  /// Builds the index of a segment again from its frames: on disk, or in memory if this store is
  /// open read-only.
  package func rebuildIndex(
    of segment: SealedSegment, because reason: FormatError
  ) throws(LogStoreError) {
    let path = directory.index(segment.info.fileId)
    try repairing.withLock { () throws(LogStoreError) in
      let log = try replay(segment)
      let info = segment.info
      let result = IndexBuilder.build(
        log.snapshot(),
        IndexBuilder.Segment(
          storeId: manifest.value.storeId, fileId: info.fileId, length: info.length,
          firstSequence: info.firstSequence, lastSequence: info.lastSequence,
          lastChecksum: info.lastChecksum))
      guard result.header.entryCount == info.entryCount else {
        throw .corrupt(
          "the segment holds \(result.header.entryCount) keys, its manifest entry says \(info.entryCount)",
          file: directory.segment(info.fileId))
      }
      // Without the lock the directory is another engine's. And the index only speeds things up: without
      // a place for it on disk, memory must do.
      var isWritten = false
      writerLock?.whileHeld {
        do throws(SystemError) {
          try directory.writeSynced(result.bytes.bytes, to: directory.newIndex(info.fileId))
          try directory.rename(directory.newIndex(info.fileId), to: path)
          try directory.synchronizeDirectory()
          isWritten = true
        } catch {
          report(.failed(LogStoreError(error, "write an index", file: path)))
        }
        files.remove(.index(info.fileId))
      }
      let origin: PageSource.Origin =
        isWritten ? .file(files) : .memory(Array(result.bytes.bytes))
      // Pages of the damaged index may be sound each for itself; those in the cache are not its.
      segment.rebuilds.withLock { $0 &+= 1 }
      do throws(IndexError) {
        let index = try load(segment, origin)
        segment.loadedIndex.withLock { $0 = index }
      } catch {
        switch error {
        case .system(let error): throw LogStoreError(error, "read an index", file: path)
        case .damaged(let error): throw .corrupt(error, file: path)
        }
      }
    }
    report(.repaired(file: path, reason: reason.reason))
  }

  /// The frames of a sealed segment as rows.
  package func replay(_ segment: SealedSegment) throws(LogStoreError) -> RowLog {
    let info = segment.info
    let log = RowLog(fileId: info.fileId, base: 0)
    let manifest = manifest.value
    try forEachFrame(of: segment) { (frame) throws(LogStoreError) in
      do throws(FormatError) {
        try FrameReader(frame).forEachBlock { (block, offset) throws(FormatError) in
          for slot in block.rows.indices {
            try log.append(
              block, slot, format: options.format, secret: manifest.hashSecret,
              deletions: manifest.deletionValues, block: offset)
          }
        }
      } catch {
        throw .corrupt(error, file: directory.segment(info.fileId), base: frame.offset)
      }
    }
    return log
  }

  /// Calls `body` with each frame of a sealed segment. Throws `corrupt` if they are not exactly
  /// what the manifest says.
  package func forEachFrame(
    of segment: SealedSegment, _ body: (SegmentScan.Frame) throws(LogStoreError) -> Void
  ) throws(LogStoreError) {
    let info = segment.info
    let path = directory.segment(info.fileId)
    let header = try segmentHeader(info.fileId)
    var scan: SegmentScan
    do throws(SystemError) {
      let file = try files.file(.segment(info.fileId))
      // The commit before the segment's first need not exist any more.
      scan = SegmentScan(
        file, fileId: info.fileId, size: min(info.length, try file.size()),
        after: LogEnd(sequence: info.firstSequence - 1, checksum: header.predecessorChecksum),
        maximumEpoch: manifest.value.epoch, isSealed: true)
    } catch {
      throw segmentFailure(error, "open a segment", path)
    }
    while true {
      let frame: SegmentScan.Frame?
      do throws(SystemError) {
        frame = try scan.next()
      } catch {
        throw LogStoreError(error, "read a segment", file: path)
      }
      guard let frame else { break }
      try body(frame)
    }
    // The last commits of a compacted stretch may have left nothing.
    guard scan.offset == info.length, scan.end.sequence <= info.lastSequence,
      scan.end.checksum == info.lastChecksum
    else { throw .corrupt("a frame is damaged", file: path, offset: scan.offset) }
  }

  /// What a failed call on a segment means. Beside a writer that compacts, a reader's segments go.
  package func segmentFailure(
    _ error: SystemError, _ action: String, _ path: String
  ) -> LogStoreError {
    guard options.isReadOnly, error.isNotFound else {
      return LogStoreError(error, action, file: path)
    }
    return LogStoreError(
      .staleReader, "The writer has replaced a segment since this store was opened or refreshed.",
      file: path, errno: error.errno)
  }

  /// The header of a segment of this store.
  package func segmentHeader(_ id: UInt64) throws(LogStoreError) -> SegmentHeader {
    let path = directory.segment(id)
    var bytes = [UInt8](repeating: 0, count: SegmentHeader.size)
    do throws(SystemError) {
      let file = try files.file(.segment(id))
      let count = try bytes.withUnsafeMutableBufferPointer { (buffer) throws(SystemError) in
        try file.readExactly(into: UnsafeMutableRawBufferPointer(buffer), at: 0)
      }
      bytes.removeLast(bytes.count - count)
    } catch {
      throw segmentFailure(error, "read a segment", path)
    }
    do throws(FormatError) {
      let header = try withBytes(of: bytes) { (bytes) throws(FormatError) in
        try SegmentHeader.decode(bytes, fileId: id)
      }
      guard header.storeId == manifest.value.storeId else {
        throw FormatError("another store's segment", at: 16)
      }
      return header
    } catch {
      throw .corrupt(error, file: path)
    }
  }

  /// Runs a read, building damaged indexes again until it succeeds.
  package func reading<Result>(
    _ body: () throws(ReadFailure) -> Result
  ) throws(LogStoreError) -> Result {
    // Each round mends one index; more rounds than segments means that mending does not help.
    var rounds = snapshot.sealed.count + 1
    while true {
      do throws(ReadFailure) {
        return try body()
      } catch {
        switch error {
        case .failed(let error): throw error
        case .damagedIndex(let segment, let reason):
          rounds -= 1
          guard rounds >= 0 else {
            throw .corrupt(reason, file: directory.index(segment.info.fileId))
          }
          try rebuildIndex(of: segment, because: reason)
        }
      }
    }
  }
}

// MARK: - Liveness

extension Engine {
  /// Loads which entries of the sealed segments are superseded, on first use.
  package func loadLiveness() throws(LogStoreError) {
    if published.withLock({ $0.hasLiveness }) { return }
    try loadingLiveness.withLock { () throws(LogStoreError) in
      if published.withLock({ $0.hasLiveness }) { return }
      switch try readLiveness() {
      case .sound(let dead): publish(dead)
      case .damaged(let path, let reason):
        report(.repaired(file: path, reason: reason))
        publish(try rebuildLiveness())
      }
    }
  }

  /// The same from the file alone: false if that is absent or damaged.
  package func loadLivenessFile() throws(LogStoreError) -> Bool {
    try loadingLiveness.withLock { () throws(LogStoreError) in
      if published.withLock({ $0.hasLiveness }) { return true }
      guard case .sound(let dead) = try readLiveness() else { return false }
      publish(dead)
      return true
    }
  }

  private func publish(_ dead: [DeadBits]) {
    published.withLock { state in
      // Sealed segments are only added while this is loaded, never before.
      for (index, bits) in dead.enumerated() {
        state.sealed[index] = Published.Sealed(segment: state.sealed[index].segment, dead: bits)
      }
      state.hasLiveness = true
    }
  }

  private enum StoredLiveness {
    case sound([DeadBits])
    case damaged(file: String, reason: String)
  }

  private func readLiveness() throws(LogStoreError) -> StoredLiveness {
    let manifest = manifest.value
    guard manifest.livenessGeneration > 0 else {
      return .sound(manifest.segments.map { DeadBits(entryCount: $0.entryCount) })
    }
    let path = directory.liveness(manifest.livenessGeneration)
    let bytes: [UInt8]
    do throws(LogStoreError) {
      guard let found = try directory.contents(of: path, limit: manifest.livenessLength) else {
        return .damaged(file: path, reason: "it is absent")
      }
      bytes = found
    } catch {
      guard error.code == .corrupt else { throw error }
      return .damaged(file: path, reason: "it is longer than the manifest says")
    }
    do throws(FormatError) {
      return .sound(
        try withBytes(of: bytes) { (bytes) throws(FormatError) in
          try LivenessFile.decode(bytes, manifest)
        })
    } catch {
      return .damaged(file: path, reason: error.reason)
    }
  }

  /// Which entries are superseded by a key of a later segment or of the tail, as of the manifest's
  /// liveness sequence: a join over all keys, for the case of damage only.
  package func rebuildLiveness() throws(LogStoreError) -> [DeadBits] {
    let state = snapshot
    // Rows of the tail up to the liveness sequence count as well; those behind it are replayed by
    // the open and marked there.
    return try reading { () throws(ReadFailure) in
      var indexes: [SealedIndex] = []
      for sealed in state.sealed { indexes.append(try index(of: sealed.segment)) }
      var result: [DeadBits] = []
      for (position, index) in indexes.enumerated() {
        var bits = DeadBits(entryCount: index.header.entryCount)
        for collection in index.collections {
          for key in collection.firstKey..<(collection.firstKey + collection.keyCount) {
            do throws(IndexError) {
              let entry = try index.key(at: key)
              let isDead = try withBytes(of: collection.name) { (name) throws(IndexError) in
                for later in indexes[(position + 1)...] {
                  if try later.find(entry.hash, in: name) != nil { return true }
                }
                return state.tail.contains {
                  $0.newest(entry.hash, below: state.visibleRows) != nil
                }
              }
              if isDead { bits.insert(entry.rank) }
            } catch {
              throw ReadFailure(error, state.sealed[position].segment)
            }
          }
        }
        result.append(bits)
      }
      return result
    }
  }
}
