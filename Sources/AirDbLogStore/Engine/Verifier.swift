internal import HlcText

/// The full check of a store: one snapshot, every byte of it.
struct Verifier {
  private let engine: Engine
  private let state: Published
  private let progress: (@Sendable (Double) -> Void)?
  private var report = VerificationReport()
  private var totalBytes: UInt64 = 0

  init(_ engine: Engine, _ progress: (@Sendable (Double) -> Void)?) throws(LogStoreError) {
    self.engine = engine
    self.progress = progress
    try engine.loadLiveness()
    state = engine.snapshot
  }

  consuming func run() throws(LogStoreError) -> VerificationReport {
    totalBytes = state.sealed.reduce(0) { $0 + $1.segment.info.length } + state.end.length
    try checkManifest()
    for position in state.sealed.indices {
      try checkSealed(position)
    }
    try checkTail()
    try checkConsumers()
    if !report.isClean { try checkCurrency() }
    progress?(1)
    return report
  }

  /// What a reader finds wrong may come from the writer, which has replaced files since.
  private func checkCurrency() throws(LogStoreError) {
    guard engine.options.isReadOnly, let current = try? engine.directory.readManifest(),
      current.segments != engine.manifest.value.segments
        || current.livenessGeneration != engine.manifest.value.livenessGeneration
    else { return }
    throw LogStoreError(
      .staleReader, "The writer has replaced files during the check.",
      file: engine.directory.manifest)
  }

  private mutating func add(
    _ file: String, _ offset: UInt64?, _ reason: String, isDerived: Bool = false
  ) {
    report.problems.append(
      VerificationReport.Problem(
        file: file, offset: offset, reason: reason, isDerived: isDerived))
  }

  /// Counts what has been read; stops if the task was cancelled.
  private mutating func step(_ bytes: UInt64) throws(LogStoreError) {
    report.checkedBytes += bytes
    try tellProgress()
  }

  private func tellProgress() throws(LogStoreError) {
    if Task.isCancelled { throw LogStoreError(.cancelled, "The check was cancelled.") }
    let done = report.checkedBytes + report.uncheckedBytes
    progress?(min(1, Double(done) / Double(max(totalBytes, 1))))
  }

  // MARK: Manifest

  private mutating func checkManifest() throws(LogStoreError) {
    let path = engine.directory.manifest
    do throws(LogStoreError) {
      guard let manifest = try engine.directory.readManifest() else {
        add(path, nil, "it is missing")
        return
      }
      if manifest.storeId != engine.manifest.value.storeId {
        add(path, 32, "it is another store's")
      }
    } catch {
      guard error.code == .corrupt || error.code == .unsupportedFormat else { throw error }
      add(path, error.offset, error.message)
    }
  }

  private mutating func checkConsumers() throws(LogStoreError) {
    do throws(LogStoreError) {
      try engine.consumers.check()
    } catch {
      guard error.code == .corrupt || error.code == .unsupportedFormat else { throw error }
      add(engine.directory.consumers, error.offset, error.message)
    }
  }

  // MARK: Sealed segments

  private mutating func checkSealed(_ position: Int) throws(LogStoreError) {
    let sealed = state.sealed[position]
    let info = sealed.segment.info
    let path = engine.directory.segment(info.fileId)
    try checkHeader(info.fileId, after: predecessor(of: position), path)
    let log = RowLog(fileId: info.fileId, base: 0)
    let end = try checkFrames(
      of: info.fileId, after: sealedStart(info), upTo: info.length, isSealed: true, into: log, path)
    try checkZeros(behind: info.length, of: info.fileId, path)
    // What is derived from damaged frames cannot be compared with them.
    guard let end else { return }
    guard end.sequence <= info.lastSequence, end.checksum == info.lastChecksum else {
      add(path, end.length, "its last frame is not the one that the manifest names")
      return
    }
    if UInt64(log.count) != info.recordCount {
      add(path, nil, "it has \(log.count) records, the manifest says \(info.recordCount)")
    }
    try checkIndex(sealed.segment, log)
    try checkLiveness(position, log)
  }

  /// What the first frame of a sealed segment follows; nil if its header does not say so any more.
  private func sealedStart(_ info: Manifest.Segment) throws(LogStoreError) -> LogEnd? {
    do throws(LogStoreError) {
      // The commit before the segment's first need not exist any more.
      return LogEnd(
        sequence: info.firstSequence - 1,
        checksum: try engine.segmentHeader(info.fileId).predecessorChecksum)
    } catch {
      guard error.code == .corrupt else { throw error }
      return nil
    }
  }

  private func predecessor(of position: Int) -> LogEnd {
    guard position > 0 else { return LogEnd() }
    let info = state.sealed[position - 1].segment.info
    return LogEnd(
      segment: info.fileId, length: info.length, sequence: info.lastSequence,
      checksum: info.lastChecksum)
  }

  /// Checks a segment's header, and that it follows `predecessor` if that is the segment it was
  /// written behind: what compaction has made of that may have another id.
  private mutating func checkHeader(
    _ id: UInt64, after predecessor: LogEnd, _ path: String
  ) throws(LogStoreError) {
    do throws(LogStoreError) {
      let header = try engine.segmentHeader(id)
      if header.predecessor == predecessor.segment,
        header.predecessorLength != predecessor.length
          || header.predecessorChecksum != predecessor.checksum
      {
        add(path, 40, "it does not follow the segment before it")
      }
    } catch {
      guard error.code == .corrupt else { throw error }
      add(path, error.offset, error.message)
    }
  }

  /// Checks the frames of a segment up to `limit`, where they end. Answers where the log has got to, or
  /// nil if there is damage, behind which it goes on. `start` is nil if it is not known what the first
  /// frame follows.
  private mutating func checkFrames(
    of id: UInt64, after start: LogEnd?, upTo limit: UInt64, isSealed: Bool, into log: RowLog,
    _ path: String
  ) throws(LogStoreError) -> LogEnd? {
    var isDamaged = start == nil
    var scan: SegmentScan
    var limit = limit
    do throws(SystemError) {
      let file = try engine.files.file(.segment(id))
      let size = try file.size()
      if size < limit {
        add(path, size, "it is cut short: its frames end at \(limit)")
        report.uncheckedBytes += limit - size
        isDamaged = true
        limit = size
      }
      scan = SegmentScan(
        file, fileId: id, size: limit, after: start ?? LogEnd(),
        maximumEpoch: engine.manifest.value.epoch, isSealed: isSealed)
    } catch {
      throw engine.segmentFailure(error, "open a segment", path)
    }
    do throws(SystemError) {
      if start == nil, case .disconnected(let header) = try scan.obstacle(before: limit) {
        scan.connect(to: header)
      }
    } catch {
      throw LogStoreError(error, "read a segment", file: path)
    }
    while scan.offset < limit {
      let frame: SegmentScan.Frame?
      do throws(SystemError) {
        frame = try scan.next()
        if frame == nil {
          isDamaged = true
          try passDamage(&scan, before: limit, path)
        }
      } catch {
        throw LogStoreError(error, "read a segment", file: path)
      }
      if let frame { try check(frame, into: log, path) } else { try tellProgress() }
    }
    return isDamaged ? nil : scan.end
  }

  /// Reports what is wrong where the scan stopped, and goes on behind it.
  private mutating func passDamage(
    _ scan: inout SegmentScan, before limit: UInt64, _ path: String
  ) throws(SystemError) {
    let start = scan.offset
    switch try scan.obstacle(before: limit) {
    case .disconnected(let header):
      add(path, start, "a frame does not follow the one before it")
      scan.connect(to: header)
    case .body(let header):
      add(path, start, "a frame is damaged")
      scan.skip(header)
    case .header:
      add(path, start, "a frame header is damaged")
      try scan.skipToHeader(before: limit)
    }
    report.uncheckedBytes += scan.offset - start
  }

  /// Every rule about one frame whose checksums hold.
  private mutating func check(
    _ frame: SegmentScan.Frame, into log: RowLog, _ path: String
  ) throws(LogStoreError) {
    var problem: FormatError?
    var count: UInt64 = 1
    do throws(FormatError) {
      let transactions = try FrameReader(frame).transactions()
      count = UInt64(transactions.count)
      var commits = CommitCursor(transactions)
      var last: (sequence: UInt64, ordinal: UInt32)?
      try FrameReader(frame).forEachBlock { (block, offset) throws(FormatError) in
        for slot in block.rows.indices {
          let sequence = try commits.next().sequence
          if frame.header.kind == .packed {
            let ordinal = block.rows[slot].ordinal
            if let last, last.sequence == sequence, last.ordinal >= ordinal {
              throw FormatError("ordinals of a commit that do not ascend", at: 0)
            }
            last = (sequence, ordinal)
          }
          if let found = try check(block, slot, at: offset, into: log) { problem = found }
        }
      }
    } catch {
      problem = error
    }
    if let problem {
      add(path, frame.offset + UInt64(problem.offset), problem.reason)
    }
    report.checkedCommits += count
    report.checkedRecords += UInt64(frame.header.recordCount)
    try step(frame.header.length)
  }

  private func check(
    _ block: DecodedBlock, _ slot: Int, at offset: UInt64, into log: RowLog
  ) throws(FormatError) -> FormatError? {
    let manifest = engine.manifest.value
    let row = block.rows[slot]
    return try block.withFields(slot) { (record) throws(FormatError) in
      guard record.contentChecksum == row.contentChecksum else {
        return FormatError("a record's content checksum does not match")
      }
      let text = record.hlc.assumingMemoryBound(to: UInt8.self)
      guard let parts = parseHlc(text, format: engine.options.format) else {
        return FormatError("a timestamp that does not parse")
      }
      if let pinned = state.physicalKind, parts.kind != pinned {
        return FormatError("a timestamp of another kind of clock")
      }
      let node = UnsafeRawBufferPointer(rebasing: record.hlc[parts.nodeStart...])
      let isSame = try block.withHlcKey(slot, format: engine.options.format) {
        (_, physical, counter, otherNode) throws(FormatError) in
        physical == parts.physical && counter == parts.counter && node.equals(otherNode)
      }
      guard isSame else { return FormatError("a timestamp that differs from its shape") }
      // Only what is newer than the version before it in the log is logged.
      let hash = manifest.hashSecret.hash(collection: record.collection, id: record.id)
      if let older = log.newest(hash, below: .max) {
        var order = compareNumbers(
          parts.physical, parts.counter, older.row.physical, older.row.counter)
        if order == 0 { order = withBytes(of: older.node) { node.compare($0) } }
        guard order > 0 else { return FormatError("a version that is not newer than the last") }
      }
      log.append(
        RowLog.NewRow(
          hash: hash, physical: parts.physical, counter: parts.counter, node: node,
          collection: record.collection, block: offset, slot: UInt8(slot),
          contentChecksum: row.contentChecksum,
          isDeletion: manifest.deletionValues.contains(row.type)))
      return nil
    }
  }

  private mutating func checkZeros(
    behind end: UInt64, of id: UInt64, _ path: String
  ) throws(LogStoreError) {
    do throws(SystemError) {
      let file = try engine.files.file(.segment(id))
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
      defer { buffer.deallocate() }
      var position = end
      while true {
        let count = try file.readExactly(into: buffer, at: position)
        if count == 0 { return }
        if !UnsafeRawBufferPointer(rebasing: buffer[..<count]).isZero {
          add(path, position, "there are bytes behind the end of a sealed segment")
          return
        }
        position += UInt64(count)
      }
    } catch {
      throw LogStoreError(error, "read a segment", file: path)
    }
  }

  // MARK: Derived data

  /// An index is a function of the frames: it must be, byte for byte, what they give.
  private mutating func checkIndex(
    _ segment: SealedSegment, _ log: RowLog
  ) throws(LogStoreError) {
    let info = segment.info
    let path = engine.directory.index(info.fileId)
    let built = IndexBuilder.build(
      log.snapshot(),
      IndexBuilder.Segment(
        storeId: engine.manifest.value.storeId, fileId: info.fileId, length: info.length,
        firstSequence: info.firstSequence, lastSequence: info.lastSequence,
        lastChecksum: info.lastChecksum))
    if built.header.entryCount != info.entryCount {
      add(
        engine.directory.manifest, nil,
        "segment \(info.fileId) has \(built.header.entryCount) keys, the manifest says \(info.entryCount)"
      )
      return
    }
    guard
      let bytes = try engine.directory.contents(of: path, limit: UInt64(built.bytes.count) + 4_096)
    else {
      add(path, nil, "it is missing", isDerived: true)
      return
    }
    let difference = withBytes(of: bytes) { found in
      found.firstDifference(from: built.bytes.bytes)
    }
    if let difference {
      add(path, UInt64(difference), "it differs from what the log gives", isDerived: true)
    }
    if info.indexLength != UInt64(built.bytes.count) || info.indexChecksum != built.headerChecksum {
      add(
        engine.directory.manifest, nil, "it describes another index of segment \(info.fileId)",
        isDerived: true)
    }
  }

  /// An entry is superseded exactly if a later segment holds its key.
  private mutating func checkLiveness(_ position: Int, _ log: RowLog) throws(LogStoreError) {
    let sealed = state.sealed[position]
    let rows = log.snapshot()
    let problem: String? = try engine.reading { () throws(ReadFailure) in
      let index = try engine.index(of: sealed.segment)
      for (row, superseder) in zip(rows.rows, rows.superseders) where superseder == RowLog.never {
        let name = rows.collections[Int(row.collection)]
        guard let entry = try find(row.hash, name, index, sealed.segment) else {
          return "a key of segment \(sealed.segment.info.fileId) is not found"
        }
        var isDead = state.tail.contains {
          $0.newest(row.hash, below: state.visibleRows) != nil
        }
        for later in state.sealed[(position + 1)...] where !isDead {
          let laterIndex = try engine.index(of: later.segment)
          isDead = try find(row.hash, name, laterIndex, later.segment) != nil
        }
        if isDead != sealed.dead[entry.rank] {
          return isDead
            ? "a superseded record of segment \(sealed.segment.info.fileId) is shown as live"
            : "a live record of segment \(sealed.segment.info.fileId) is shown as superseded"
        }
      }
      return nil
    }
    if let problem {
      let generation = engine.manifest.value.livenessGeneration
      let path =
        generation > 0 ? engine.directory.liveness(generation) : engine.directory.manifest
      add(path, nil, problem, isDerived: true)
    }
  }

  private func find(
    _ hash: KeyHash, _ collection: [UInt8], _ index: SealedIndex, _ segment: SealedSegment
  ) throws(ReadFailure) -> SealedIndex.KeyEntry? {
    do throws(IndexError) {
      return try withBytes(of: collection) { (name) throws(IndexError) in
        try index.find(hash, in: name)
      }
    } catch {
      throw ReadFailure(error, segment)
    }
  }

  // MARK: Tail

  /// The unsealed segments, as far as the snapshot shows them.
  private mutating func checkTail() throws(LogStoreError) {
    // Nil behind damage, where it is unknown.
    var end: LogEnd? = state.sealedEnd
    for log in state.tail {
      let path = engine.directory.segment(log.fileId)
      let isLast = log.fileId == state.end.segment
      // A segment into which nothing has been written yet, or nothing that is visible.
      let limit = isLast ? state.end.length : log.finalLength
      guard limit > 0 else { continue }
      if let end { try checkHeader(log.fileId, after: end, path) }
      let rows = RowLog(fileId: log.fileId, base: log.base)
      let reached = try checkFrames(
        of: log.fileId, after: end, upTo: limit, isSealed: false, into: rows, path)
      if let reached, isLast, reached.checksum != state.end.checksum {
        add(
          path, reached.length,
          "the log ends at commit \(describe(reached.sequence)) instead of \(describe(state.end.sequence))"
        )
      }
      end = reached
    }
  }
}

extension UnsafeRawBufferPointer {
  /// The first offset at which two runs of bytes differ.
  fileprivate func firstDifference(from other: UnsafeRawBufferPointer) -> Int? {
    if equals(other) { return nil }
    for offset in 0..<Swift.min(count, other.count) where self[offset] != other[offset] {
      return offset
    }
    return Swift.min(count, other.count)
  }
}
