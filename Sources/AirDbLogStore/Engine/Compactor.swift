/// Replaces neighbouring sealed segments by one that holds only what is still needed: the cleaner.
///
/// Commits and reads go on meanwhile. The inputs stay as they are until a manifest that lists the
/// output in their place is durable, and their files until no reader uses them. A crash at any step
/// leaves either the inputs or the output in the manifest, and the other as orphans.
package struct Compactor: Sendable {
  let engine: Engine
  let writer: Writer
  let retention: RetentionBounds
  private let control: Control

  init(_ writer: Writer, keeping retention: RetentionBounds, _ control: Control) {
    self.writer = writer
    engine = writer.engine
    self.retention = retention
    self.control = control
  }

  /// How whoever started a compaction has a hand in it.
  package struct Control: Sendable {
    package var isCancelled: @Sendable () -> Bool
    /// Told how many bytes of the inputs have been done; may take its time.
    package var step: @Sendable (Int) -> Void

    package init(
      isCancelled: @escaping @Sendable () -> Bool, step: @escaping @Sendable (Int) -> Void
    ) {
      self.isCancelled = isCancelled
      self.step = step
    }

    func check() throws(LogStoreError) {
      if isCancelled() {
        throw LogStoreError(.cancelled, "The compaction was cancelled; nothing was changed.")
      }
    }
  }

  /// What a compaction did.
  package struct Outcome: Sendable {
    package var segments = 0
    /// The new segment; nil if nothing was left.
    package var output: UInt64?
    package var bytesBefore: UInt64 = 0
    package var bytesAfter: UInt64 = 0
    package var recordsDropped: UInt64 = 0
    package var tombstonesPurged: UInt64 = 0
  }

  /// A segment that is replaced, and where its entries went.
  struct Input: Sendable {
    var segment: SealedSegment
    /// For each rank here the row of the output, or `gone`.
    var rowOfRank: [UInt32]

    static let gone = UInt32.max
  }

  /// A new segment, and for each rank of its index the row.
  struct Output: Sendable {
    var info: Manifest.Segment
    var rowOfRank: [UInt32]
  }

  /// Compacts the sealed segments with these ids, which must be neighbours in log order. Nil if that
  /// came to nothing since a consumer may ask for more meanwhile.
  func compact(_ ids: [UInt64]) throws(LogStoreError) -> Outcome? {
    try engine.loadLiveness()
    let state = engine.snapshot
    // What is dropped must have been superseded by commits that cannot be lost any more: those of
    // the snapshot, so that the sync comes after it.
    if state.durableEnd.sequence < state.end.sequence { try writer.synchronize() }
    guard let start = state.sealed.firstIndex(where: { ids.contains($0.segment.info.fileId) })
    else { return Outcome() }
    let inputs = state.sealed[start...].prefix { ids.contains($0.segment.info.fileId) }
    let earlier = state.sealed[..<start]
    do throws(LogStoreError) {
      return try replace(inputs, behind: earlier)
    } catch {
      guard writer.makesRoom(after: error) else { throw error }
    }
    return try replace(inputs, behind: earlier)
  }

  /// Nothing has changed if it throws, unless the outcome is unknown.
  private func replace(
    _ inputs: ArraySlice<Published.Sealed>, behind earlier: ArraySlice<Published.Sealed>
  ) throws(LogStoreError) -> Outcome? {
    try writer.reserveFileIds()
    let id = engine.fileIds.next()
    do throws(LogStoreError) {
      if let outcome = try compact(inputs, behind: earlier, into: id) { return outcome }
      removeOutput(id)
      return nil
    } catch {
      if error.code == .outcomeUnknown {
        // Which manifest will be found is unknown, or a sync failed: nothing may be built on that.
        writer.poison(error)
      } else {
        removeOutput(id)
      }
      throw error
    }
  }

  /// Gives back the space of an output that no manifest names.
  private func removeOutput(_ id: UInt64) {
    let directory = engine.directory
    for path in [directory.newIndex(id), directory.index(id), directory.segment(id)] {
      try? directory.remove(path)
    }
  }

  private func compact(
    _ inputs: ArraySlice<Published.Sealed>, behind earlier: ArraySlice<Published.Sealed>,
    into id: UInt64
  ) throws(LogStoreError) -> Outcome? {
    guard let first = inputs.first?.segment, let last = inputs.last?.segment else {
      return Outcome()
    }
    var copying = Copying(
      packed: try PackedWriter(
        engine, fileId: id, predecessor: try engine.segmentHeader(first.info.fileId),
        firstSequence: first.info.firstSequence),
      earlier: earlier.map(\.segment))
    var outcome = Outcome(segments: inputs.count)
    var copied: [Input] = []
    for input in inputs {
      copied.append(try copy(input, &copying, control))
      outcome.bytesBefore += input.segment.info.bytes
    }
    try copying.packed.finish()
    var output: Output?
    if copying.packed.rowCount > 0 {
      output = try index(
        copying.packed.log.snapshot(), end: copying.packed.end, first.info, last.info)
    }
    try control.check()
    let purged = copying.purged
    if let consumers = retention.consumers {
      let isDone: Void? = try engine.consumers.takingEffect(consumers) {
        () throws(LogStoreError) in try replace(copied, by: output, purged)
      }
      if isDone == nil { return nil }
    } else {
      try replace(copied, by: output, purged)
    }
    outcome.recordsDropped = copying.dropped
    outcome.tombstonesPurged = copying.purged.count
    if let info = output?.info {
      outcome.output = info.fileId
      outcome.bytesAfter = info.bytes
    }
    return outcome
  }

  private func index(
    _ rows: RowLog.Snapshot, end: LogEnd, _ first: Manifest.Segment, _ last: Manifest.Segment
  ) throws(LogStoreError) -> Output {
    let directory = engine.directory
    let index = IndexBuilder.build(
      rows,
      IndexBuilder.Segment(
        storeId: engine.manifest.value.storeId, fileId: end.segment, length: end.length,
        firstSequence: first.firstSequence, lastSequence: last.lastSequence,
        lastChecksum: end.checksum))
    try Checkpoint.attempt("write an index", directory.index(end.segment)) {
      () throws(SystemError) in
      try directory.writeSynced(index.bytes.bytes, to: directory.newIndex(end.segment))
      try directory.rename(directory.newIndex(end.segment), to: directory.index(end.segment))
    }
    let info = Manifest.Segment(
      fileId: end.segment, length: end.length, firstSequence: first.firstSequence,
      lastSequence: last.lastSequence, lastChecksum: end.checksum,
      indexChecksum: index.headerChecksum, recordCount: index.header.recordCount,
      entryCount: index.header.entryCount, deadCount: 0,
      indexLength: UInt64(index.bytes.count), lastCommitDate: last.lastCommitDate)
    return Output(info: info, rowOfRank: index.rowOfRank)
  }
}
