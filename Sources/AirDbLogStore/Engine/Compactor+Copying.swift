internal import HlcText

// What is copied of the inputs of a compaction.
extension Compactor {
  /// The work under way.
  struct Copying: ~Copyable {
    var packed: PackedWriter
    /// The sealed segments before the inputs.
    let earlier: [SealedSegment]
    var dropped: UInt64 = 0
    var purged = Purged()

    init(packed: consuming PackedWriter, earlier: [SealedSegment]) {
      self.packed = packed
      self.earlier = earlier
    }
  }

  /// The tombstones that a compaction leaves out.
  struct Purged: Sendable {
    var count: UInt64 = 0
    /// The greatest sequence of theirs.
    var sequence: UInt64 = 0
    /// The greatest timestamp.
    var greatest: Published.Greatest?

    mutating func add(
      _ sequence: UInt64, _ key: HlcKey, _ text: () throws(FormatError) -> String
    ) throws(FormatError) {
      count += 1
      self.sequence = max(self.sequence, sequence)
      if greatest.map({ $0.key < key }) ?? true {
        greatest = Published.Greatest(key: key, text: try text())
      }
    }
  }

  /// Copies what is kept of one input.
  func copy(
    _ input: Published.Sealed, _ copying: inout Copying, _ control: Control
  ) throws(LogStoreError) -> Input {
    let info = input.segment.info
    if input.dead.count == info.entryCount,
      !retention.keeps(sequence: info.lastSequence, date: info.lastCommitDate)
    {
      // Nothing of it is kept: there is no need to read it.
      copying.dropped += info.recordCount
      control.step(Int(info.bytes) - SegmentHeader.size)
      return Input(
        segment: input.segment,
        rowOfRank: [UInt32](repeating: Input.gone, count: Int(info.entryCount)))
    }
    let ranked = try ranked(input.segment)
    var result = Input(
      segment: input.segment,
      rowOfRank: [UInt32](repeating: Input.gone, count: Int(input.segment.info.entryCount)))
    var cursor = 0
    try engine.forEachFrame(of: input.segment) { (frame) throws(LogStoreError) in
      try control.check()
      var failure: LogStoreError?
      do throws(FormatError) {
        var commits = CommitCursor(try FrameReader(frame).transactions())
        try FrameReader(frame).forEachBlock { (block, offset) throws(FormatError) in
          for slot in block.rows.indices where failure == nil {
            let transaction = try commits.next()
            // Entries and records are both in order of arrival.
            var rank: UInt32?
            if cursor < ranked.count,
              ranked[cursor].place == SealedIndex.HlcEntry.place(offset, slot)
            {
              rank = ranked[cursor].rank
              cursor += 1
            }
            let isLive = rank.map { !input.dead[UInt64($0)] } ?? false
            do throws(LogStoreError) {
              guard try isKept(block, slot, transaction, isLive: isLive, &copying) else { continue }
              if let rank { result.rowOfRank[Int(rank)] = UInt32(copying.packed.rowCount) }
              try copying.packed.add(transaction, block, slot)
            } catch {
              failure = error
            }
          }
        }
      } catch {
        throw .corrupt(
          error, file: engine.directory.segment(input.segment.info.fileId), base: frame.offset)
      }
      if let failure { throw failure }
      control.step(frame.bytes.count)
    }
    control.step(Int(input.segment.info.indexLength))
    return result
  }

  private func isKept(
    _ block: DecodedBlock, _ slot: Int, _ transaction: Transaction, isLive: Bool,
    _ copying: inout Copying
  ) throws(LogStoreError) -> Bool {
    guard isLive else {
      if retention.keeps(sequence: transaction.sequence, date: transaction.date) { return true }
      copying.dropped += 1
      return false
    }
    guard retention.mayPurge(sequence: transaction.sequence, date: transaction.date),
      engine.options.deletionValues.contains(block.rows[slot].type),
      // Older versions in the inputs go with it; one elsewhere would come back to life.
      try !isHeld(block, slot, by: copying.earlier)
    else { return true }
    do throws(FormatError) {
      try block.withHlcKey(slot, format: engine.options.format) {
        (_, physical, counter, node) throws(FormatError) in
        let key = HlcKey(physical: physical, counter: counter, node: node)
        try copying.purged.add(transaction.sequence, key) { () throws(FormatError) in
          try block.withHlc(slot) { String(decoding: $0, as: UTF8.self) }
        }
      }
    } catch {
      throw LogStoreError(.corrupt, "A timestamp does not parse: \(error.reason).")
    }
    return false
  }

  /// Whether one of these segments has a version of a record's key.
  private func isHeld(
    _ block: DecodedBlock, _ slot: Int, by segments: [SealedSegment]
  ) throws(LogStoreError) -> Bool {
    if segments.isEmpty { return false }
    let secret = engine.manifest.value.hashSecret
    let collection = Array(block.collection(slot).utf8)
    let hash = withBytes(of: collection) { name in
      block.withId(slot) { secret.hash(collection: name, id: $0) }
    }
    return try engine.reading { () throws(ReadFailure) in
      for segment in segments where try engine.holds(segment, hash, in: collection) { return true }
      return false
    }
  }

  /// An entry by its place in the segment.
  private struct Ranked {
    var place: UInt64
    var rank: UInt32
  }

  /// The entries of a segment in order of arrival.
  private func ranked(_ segment: SealedSegment) throws(LogStoreError) -> [Ranked] {
    try engine.reading { () throws(ReadFailure) in
      var result: [Ranked] = []
      result.reserveCapacity(Int(segment.info.entryCount))
      try engine.forEachEntry(of: segment) { (rank, entry) in
        result.append(Ranked(place: entry.place, rank: UInt32(rank)))
      }
      result.sort { $0.place < $1.place }
      return result
    }
  }
}

extension Engine {
  /// Calls `body` with each entry of a segment's index in HLC order.
  func forEachEntry(
    of segment: SealedSegment, _ body: (UInt64, SealedIndex.HlcEntry) -> Void
  ) throws(ReadFailure) {
    let index = try index(of: segment)
    do throws(IndexError) {
      var page = try index.hlcPage(holding: 0)
      for rank in 0..<index.header.entryCount {
        if rank % index.hlcEntriesPerPage == 0 { page = try index.hlcPage(holding: rank) }
        body(rank, try index.hlcEntry(rank, in: page))
      }
    } catch {
      throw ReadFailure(error, segment)
    }
  }
}
