/// Replaces neighbouring sealed segments by one that holds only what is still needed: the cleaner.
///
/// Commits and reads go on meanwhile. The inputs stay as they are until a manifest that lists the
/// output in their place is durable, and their files until no reader uses them. A crash at any step
/// leaves either the inputs or the output in the manifest, and the other as orphans.
package struct Compactor: Sendable {
  private let engine: Engine
  private let writer: Writer

  init(_ writer: Writer) {
    self.writer = writer
    engine = writer.engine
  }

  /// What is to be kept beside the newest versions.
  struct Retention {
    /// Every version of the commits behind this sequence.
    var pinnedAfter: UInt64 = .max
    /// Every version of the commits since this date, in milliseconds since 1970.
    var since: Int64 = .max
    /// The consumers that ask for it.
    var consumers: ConsumerRegistry.Reading

    func keeps(_ transaction: Transaction) -> Bool {
      transaction.sequence > pinnedAfter || transaction.date >= since
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
  }

  /// A segment that is replaced, and where its entries went.
  private struct Input: Sendable {
    var segment: SealedSegment
    /// For each row of the output that is an entry of this input: its rank here.
    var ranks: [UInt32: UInt64] = [:]
  }

  /// Compacts the sealed segments with these ids, which must be neighbours in log order. Nil if that
  /// came to nothing since a consumer may ask for more meanwhile.
  func compact(
    _ ids: [UInt64], keeping retention: Retention, isCancelled: () -> Bool
  ) throws(LogStoreError) -> Outcome? {
    try engine.loadLiveness()
    let state = engine.snapshot
    // What is dropped must have been superseded by commits that cannot be lost any more: those of
    // the snapshot, so that the sync comes after it.
    try writer.synchronize()
    let inputs = state.sealed.filter { ids.contains($0.segment.info.fileId) }
    guard let first = inputs.first?.segment, let last = inputs.last?.segment else {
      return Outcome()
    }
    let header = try engine.segmentHeader(first.info.fileId)
    try writer.reserveFileIds()
    let id = engine.fileIds.next()
    do throws(LogStoreError) {
      if let outcome = try compact(inputs, first, last, into: id, header, retention, isCancelled) {
        return outcome
      }
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
    _ inputs: [Published.Sealed], _ first: SealedSegment, _ last: SealedSegment,
    into id: UInt64, _ header: SegmentHeader, _ retention: Retention, _ isCancelled: () -> Bool
  ) throws(LogStoreError) -> Outcome? {
    var packed = try PackedWriter(
      engine, fileId: id, predecessor: header, firstSequence: first.info.firstSequence)
    var outcome = Outcome(segments: inputs.count)
    var copied: [Input] = []
    for input in inputs {
      copied.append(
        try copy(input, into: &packed, keeping: retention, &outcome, isCancelled))
      outcome.bytesBefore += input.segment.info.length + input.segment.info.indexLength
    }
    try packed.finish()
    let rows = packed.log.snapshot()
    var output: (info: Manifest.Segment, rowOfRank: [UInt32])?
    if !rows.rows.isEmpty {
      output = try index(
        rows, end: packed.end, first.info, last.info, dates: last.info.lastCommitDate)
    } else {
      removeOutput(id)
    }
    let isDone: Void? = try engine.consumers.takingEffect(retention.consumers) {
      () throws(LogStoreError) in try replace(copied, by: output)
    }
    guard isDone != nil else { return nil }
    if let info = output?.info {
      outcome.output = info.fileId
      outcome.bytesAfter = info.length + info.indexLength
    }
    return outcome
  }

  // MARK: Copying

  /// Copies what is kept of one input.
  private func copy(
    _ input: Published.Sealed, into packed: inout PackedWriter, keeping retention: Retention,
    _ outcome: inout Outcome, _ isCancelled: () -> Bool
  ) throws(LogStoreError) -> Input {
    let ranks = try ranks(of: input.segment)
    var result = Input(segment: input.segment)
    var cursor = 0
    var dropped: UInt64 = 0
    var row = UInt32(packed.rowCount)
    try engine.forEachFrame(of: input.segment) { (frame) throws(LogStoreError) in
      if isCancelled() {
        throw LogStoreError(.cancelled, "The compaction was cancelled; nothing was changed.")
      }
      let reader = FrameReader(frame)
      var failure: LogStoreError?
      do throws(FormatError) {
        let transactions = try reader.transactions()
        var transaction = 0
        var left = transactions[0].recordCount
        try reader.forEachBlock { (block, offset) throws(FormatError) in
          for slot in block.rows.indices where failure == nil {
            while left == 0 {
              transaction += 1
              left = transactions[transaction].recordCount
            }
            left -= 1
            // Entries and records are both in order of arrival.
            var rank: UInt64?
            if cursor < ranks.count, ranks[cursor].block == offset, ranks[cursor].slot == slot {
              rank = ranks[cursor].rank
              cursor += 1
            }
            let isLive = rank.map { !input.dead[$0] } ?? false
            guard isLive || retention.keeps(transactions[transaction]) else {
              dropped += 1
              continue
            }
            do throws(LogStoreError) {
              try packed.add(transactions[transaction], block, slot)
            } catch {
              failure = error
            }
            if let rank { result.ranks[row] = rank }
            row += 1
          }
        }
      } catch {
        throw .corrupt(
          error, file: engine.directory.segment(input.segment.info.fileId), base: frame.offset)
      }
      if let failure { throw failure }
    }
    outcome.recordsDropped += dropped
    return result
  }

  private struct Ranked {
    var block: UInt64
    var slot: Int
    var rank: UInt64
  }

  /// The entries of a segment in order of arrival.
  private func ranks(of segment: SealedSegment) throws(LogStoreError) -> [Ranked] {
    try engine.reading { () throws(ReadFailure) in
      let index = try engine.index(of: segment)
      var result: [Ranked] = []
      result.reserveCapacity(Int(index.header.entryCount))
      do throws(IndexError) {
        var page = try index.hlcPage(holding: 0)
        for rank in 0..<index.header.entryCount {
          if rank % index.hlcEntriesPerPage == 0 { page = try index.hlcPage(holding: rank) }
          let entry = try index.hlcEntry(rank, in: page)
          result.append(Ranked(block: entry.block, slot: entry.slot, rank: rank))
        }
      } catch {
        throw ReadFailure(error, segment)
      }
      result.sort { ($0.block, $0.slot) < ($1.block, $1.slot) }
      return result
    }
  }

  private func index(
    _ rows: RowLog.Snapshot, end: LogEnd, _ first: Manifest.Segment, _ last: Manifest.Segment,
    dates lastCommitDate: Int64
  ) throws(LogStoreError) -> (info: Manifest.Segment, rowOfRank: [UInt32]) {
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
      indexLength: UInt64(index.bytes.count), lastCommitDate: lastCommitDate)
    return (info, index.rowOfRank)
  }

  // MARK: Replacing

  /// Puts the output in the place of the inputs: in the manifest, then in what readers see.
  private func replace(
    _ inputs: [Input], by output: (info: Manifest.Segment, rowOfRank: [UInt32])?
  ) throws(LogStoreError) {
    let ids = Set(inputs.map(\.segment.info.fileId))
    let segment = output.map { SealedSegment($0.info) }
    try engine.structure.withLock { () throws(LogStoreError) in
      try Checkpoint(engine).write(.compacting) { manifest, liveness in
        let place = manifest.segments.firstIndex { ids.contains($0.fileId) } ?? 0
        manifest.segments.removeAll { ids.contains($0.fileId) }
        if let output {
          manifest.requiredFeatures |= Manifest.packedFrames
          manifest.segments.insert(output.info, at: place)
          liveness[output.info.fileId] = dead(inputs, output) { liveness[$0] }
        }
      }
      // By the leader, so that no batch is half way, and inside the lock, so that no checkpoint sees
      // the new manifest with the old state.
      writer.queue.exclusivelyByAnyLeader {
        swap(inputs, ids, segment, output)
        writer.segmentsChanged()
      }
    }
    retire(inputs)
  }

  /// The dead entries of the output, by those of the inputs.
  private func dead(
    _ inputs: [Input], _ output: (info: Manifest.Segment, rowOfRank: [UInt32]),
    _ bits: (UInt64) -> DeadBits?
  ) -> DeadBits {
    var result = DeadBits(entryCount: output.info.entryCount)
    let ranks = rankOfRow(output)
    for input in inputs {
      guard let dead = bits(input.segment.info.fileId), dead.count > 0 else { continue }
      for (row, rank) in input.ranks where dead[rank] {
        if let place = ranks[row] { result.insert(place) }
      }
    }
    return result
  }

  private func rankOfRow(
    _ output: (info: Manifest.Segment, rowOfRank: [UInt32])
  ) -> [UInt32: UInt64] {
    Dictionary(
      uniqueKeysWithValues: output.rowOfRank.enumerated().map { ($1, UInt64($0)) })
  }

  private func swap(
    _ inputs: [Input], _ ids: Set<UInt64>, _ segment: SealedSegment?,
    _ output: (info: Manifest.Segment, rowOfRank: [UInt32])?
  ) {
    engine.published.withLock { state in
      let current = Dictionary(
        uniqueKeysWithValues: state.sealed.map { ($0.segment.info.fileId, $0.dead) })
      let place = state.sealed.firstIndex { ids.contains($0.segment.info.fileId) } ?? 0
      state.sealed.removeAll { ids.contains($0.segment.info.fileId) }
      if let output, let segment {
        // With the marks that commits made on the inputs meanwhile.
        state.sealed.insert(
          Published.Sealed(segment: segment, dead: dead(inputs, output) { current[$0] }),
          at: place)
      }
      // Marks of the tail name entries of the inputs.
      var moved: [UInt64: [UInt64: UInt64]] = [:]
      if let output {
        let ranks = rankOfRow(output)
        for input in inputs {
          var places: [UInt64: UInt64] = [:]
          for (row, rank) in input.ranks { places[rank] = ranks[row] }
          moved[input.segment.info.fileId] = places
        }
      }
      for log in state.tail {
        log.moveMarks(from: ids) { mark in
          guard let output, let rank = moved[mark.segment]?[mark.rank] else { return nil }
          return RowLog.Mark(row: mark.row, segment: output.info.fileId, rank: rank)
        }
      }
    }
  }

  /// Has the inputs' files removed when the last reader is done with them.
  private func retire(_ inputs: [Input]) {
    for input in inputs {
      let id = input.segment.info.fileId
      let directory = engine.directory
      let files = engine.files
      let scheduler = engine.scheduler
      let lock = engine.writerLock
      input.segment.whenReleased {
        files.remove(.segment(id))
        files.remove(.index(id))
        scheduler.schedule {
          // Once the lock is given back the path may be another store's: the next open removes what
          // is left.
          lock?.whileHeld {
            try? directory.remove(directory.segment(id))
            try? directory.remove(directory.index(id))
          }
        }
      }
    }
  }
}
