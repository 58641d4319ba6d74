/// Pages of commits after a position: the fetcher.
extension Engine {
  /// Which commits a page shows, by bytes.
  package struct CommitPredicate: Sendable, Hashable {
    /// Nil: all.
    package var authors: Set<[UInt8]>?
    package var excludedAuthors: Set<[UInt8]> = []
    /// Nil: all.
    package var collections: Set<[UInt8]>?

    package init() {}

    func accepts(_ transaction: Transaction) -> Bool {
      guard authors != nil || !excludedAuthors.isEmpty else { return true }
      let label = Array(transaction.label.utf8)
      return authors?.contains(label) != false && !excludedAuthors.contains(label)
    }
  }

  /// A commit with those of its records that are still in the log and pass the filter.
  package struct LoggedCommit: Sendable {
    package var sequence: UInt64
    package var checksum: UInt32
    package var date: Int64
    package var author: String
    package var changes: [LoggedChange]
  }

  package struct HistoryPage: Sendable {
    package var commits: [LoggedCommit] = []
    /// The last commit that was looked at; nil if there was none.
    package var end: LogEnd?
    package var isLast = false
  }

  /// What bounds a page.
  package struct HistoryLimits: Sendable {
    package var commits: Int
    /// No commit is added once the page has so many.
    package var bytes: Int
    /// Of the log: a page ends once so many have been read, found or not, so that progress can be
    /// saved.
    package var examinedBytes: UInt64 = 32 << 20

    package init(commits: Int, bytes: Int) {
      self.commits = commits
      self.bytes = bytes
    }
  }

  /// A page of the commits behind a position, as one snapshot shows them, and the horizon that its
  /// end has.
  package func history(
    after position: Position?, _ predicate: CommitPredicate, _ limits: HistoryLimits
  ) throws(LogStoreError) -> (page: HistoryPage, horizon: UInt64) {
    // In this order: what the snapshot lacks was purged at or before this horizon or is checked below.
    let horizon = position?.horizon ?? manifest.value.retentionHorizon
    let state = snapshot
    defer { withExtendedLifetime(state) {} }
    var scan = CommitScan(self, state)
    if let position { try check(position, state, &scan) }
    guard limits.commits > 0 else {
      let end = position.map { LogEnd(sequence: $0.sequence, checksum: $0.checksum) }
      return (HistoryPage(end: end), horizon)
    }
    var builder = HistoryBuilder(self, predicate, limits)
    try builder.fill(from: &scan)
    if builder.page.isLast, state.end.sequence > 0 { builder.page.end = state.end }
    if builder.page.end?.sequence == state.end.sequence { builder.page.isLast = true }
    return (builder.page, horizon)
  }

  /// The last commit that is older than a date, in milliseconds since 1970.
  package func lastCommit(before date: Int64) throws(LogStoreError) -> LogEnd? {
    let state = snapshot
    defer { withExtendedLifetime(state) {} }
    var scan = CommitScan(self, state)
    return try scan.last(before: date)
  }

  /// Checks that a position is one of this store's, as it is now, and that everything behind it is
  /// still there to be read.
  ///
  /// A commit that was cleaned away entirely cannot be compared any more; its position is accepted.
  package func validate(_ position: Position) throws(LogStoreError) {
    let state = snapshot
    defer { withExtendedLifetime(state) {} }
    var scan = CommitScan(self, state)
    try check(position, state, &scan)
  }

  /// Goes behind a position.
  private func check(
    _ position: Position, _ state: Published, _ scan: inout CommitScan
  ) throws(LogStoreError) {
    let manifest = manifest.value
    guard position.storeId.utf8.elementsEqual(storeId.utf8) else {
      throw LogStoreError(
        .foreignPosition,
        "The position is of the store \(position.storeId), but this one is \(storeId).")
    }
    guard position.sequence <= state.end.sequence else {
      throw LogStoreError(
        .positionBeyondEnd,
        "The position is behind commit \(describe(position.sequence)), but the log ends at commit \(describe(state.end.sequence))."
      )
    }
    // After the snapshot: whatever was purged before it is in this manifest.
    let seen = max(position.sequence, position.horizon)
    guard manifest.retentionHorizon <= seen else {
      throw LogStoreError(
        .historyPurged,
        "Deletions behind commit \(describe(seen)) and up to commit \(describe(manifest.retentionHorizon)) may have been purged since the position was reached."
      )
    }
    if let checksum = try scan.seek(behind: position.sequence), checksum != position.checksum {
      throw LogStoreError(
        .positionDiverged,
        "Commit \(describe(position.sequence)) is not the one that the position is behind: the store was restored from an earlier state and has gone another way since."
      )
    }
  }
}

/// Gathers the commits of a page.
private struct HistoryBuilder {
  private let engine: Engine
  private let predicate: Engine.CommitPredicate
  private let limits: Engine.HistoryLimits
  private var bytes = 0
  private var examined: UInt64 = 0
  /// Shared by the changes of one segment.
  private var source: ChangeSource?
  var page = Engine.HistoryPage()

  init(
    _ engine: Engine, _ predicate: Engine.CommitPredicate, _ limits: Engine.HistoryLimits
  ) {
    self.engine = engine
    self.predicate = predicate
    self.limits = limits
  }

  private var isFull: Bool {
    page.commits.count >= limits.commits || !page.commits.isEmpty && bytes >= limits.bytes
  }

  mutating func fill(from scan: inout CommitScan) throws(LogStoreError) {
    while examined < limits.examinedBytes {
      guard let step = try scan.next() else {
        page.isLast = true
        break
      }
      if try !add(step) {
        // It goes on inside of this frame.
        step.part.frames.remember(step.start)
        return
      }
      examined += step.frame.header.length
      if isFull { break }
    }
    scan.rememberPlace()
  }

  /// Adds the commits of a frame. False if the page is full before its last one.
  private mutating func add(_ step: CommitScan.Step) throws(LogStoreError) -> Bool {
    var blocks: FrameBlocks?
    var record = step.firstRecord
    for transaction in step.transactions {
      if isFull { return false }
      let records = record..<(record + transaction.recordCount)
      record = records.upperBound
      if predicate.accepts(transaction) {
        do throws(FormatError) {
          var known = if let blocks { blocks } else { try FrameBlocks(step.frame) }
          try add(transaction, records, &known, step)
          blocks = known
        } catch {
          throw .corrupt(
            error, file: engine.directory.segment(step.part.fileId), base: step.frame.offset)
        }
      }
      page.end = LogEnd(sequence: transaction.sequence, checksum: transaction.checksum)
    }
    return true
  }

  private mutating func add(
    _ transaction: Transaction, _ records: Range<UInt32>, _ blocks: inout FrameBlocks,
    _ step: CommitScan.Step
  ) throws(FormatError) {
    var changes: [Engine.LoggedChange] = []
    var size = 64
    for record in records {
      let (block, offset, slot) = try blocks.find(record)
      if let collections = predicate.collections,
        !collections.contains(Array(block.collection(slot).utf8))
      {
        continue
      }
      let change = Engine.LoggedChange(
        collection: block.collection(slot), id: try block.id(slot), type: try block.type(slot),
        hlc: try block.hlc(slot), contentChecksum: block.rows[slot].contentChecksum,
        place: Engine.Place(file: step.part.fileId, block: offset, slot: slot),
        source: source(of: step.part))
      size += block.payloadCount(slot) + change.id.utf8.count + change.hlc.utf8.count + 64
      changes.append(change)
    }
    // Nothing of it passes the filter.
    if changes.isEmpty { return }
    bytes += size
    page.commits.append(
      Engine.LoggedCommit(
        sequence: transaction.sequence, checksum: transaction.checksum, date: transaction.date,
        author: transaction.label, changes: changes))
  }

  private mutating func source(of part: CommitScan.Part) -> ChangeSource {
    if let source, source.fileId == part.fileId { return source }
    let fresh = ChangeSource(engine, part.fileId, part.hold)
    source = fresh
    return fresh
  }
}

/// The blocks of a frame, their rows parsed when they are needed.
private struct FrameBlocks {
  private let frame: SegmentScan.Frame
  /// In order, without gaps.
  private var blocks: [(firstRecord: UInt32, position: Int, length: Int)] = []
  private var current: (index: Int, rows: BlockRows)?

  /// Finds the blocks of a frame whose checksums hold.
  init(_ frame: SegmentScan.Frame) throws(FormatError) {
    self.frame = frame
    try FrameReader(frame).forEachBlockHeader { header, position in
      blocks.append((header.firstRecord, position, Int(header.length)))
    }
  }

  /// The rows of the block with a record, where it is in the file, and the record's slot.
  mutating func find(_ record: UInt32) throws(FormatError) -> (BlockRows, UInt64, Int) {
    // Records are asked for in order, so that it is the block at hand or one of the next.
    var index = current?.index ?? 0
    if blocks[index].firstRecord > record { index = 0 }
    while index + 1 < blocks.count, blocks[index + 1].firstRecord <= record { index += 1 }
    let block = blocks[index]
    let rows: BlockRows
    if let current, current.index == index {
      rows = current.rows
    } else {
      do throws(FormatError) {
        rows = try BlockRows(
          rowsOf: UnsafeRawBufferPointer(
            rebasing: frame.bytes[block.position..<(block.position + block.length)]))
      } catch {
        throw FormatError(error.reason, at: block.position + error.offset)
      }
      current = (index, rows)
    }
    let slot = Int(record - block.firstRecord)
    guard slot < rows.rows.count else {
      throw FormatError("a record past the blocks of its frame", at: block.position)
    }
    return (rows, frame.offset + UInt64(block.position), slot)
  }
}

extension Engine {
  /// The position behind a commit; `horizon` is that of the reading that came there, or the present
  /// one.
  package func position(at end: LogEnd, horizon: UInt64? = nil) -> Position {
    Position(
      storeId: storeId, sequence: end.sequence, checksum: end.checksum,
      horizon: horizon ?? manifest.value.retentionHorizon)
  }
}
