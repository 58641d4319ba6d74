internal import HlcText

// What becomes of a batch: it is decided, encoded, and put into the active log.
extension Writer {
  /// Decides a batch, encodes what wins, and puts its rows into the active log. Throws only if
  /// nothing of it has been staged.
  func stage(_ request: CommitRequest) throws(LogStoreError) {
    if case .batch(let batch) = request.work, let kind = batch.physicalKind,
      let pinned = physicalKind, kind != pinned
    {
      throw PreparedBatch.Refusal.mixed(batch.records[0].hlcTimestamp).error(at: 0)
    }
    try rollIfFull()
    try lookup.prepare(engine)
    var outcome = CommitOutcome()
    let batch: PreparedBatch
    var earliestDate = Int64.min
    switch request.work {
    case .batch(let prepared): batch = prepared
    case .local(let local):
      guard let stamped = try stamp(local) else {
        // Answered with the group, so that what has overtaken it can be seen by then.
        outcome.isOvertaken = true
        staged.append(Staged(request: request, outcome: outcome))
        return
      }
      batch = stamped
      outcome.stamped = batch.records
      earliestDate = earliestStampedDate
    }
    let winners = try decide(batch, &outcome)
    guard !winners.isEmpty else {
      staged.append(Staged(request: request, outcome: outcome))
      return
    }
    outcome.accepted = winners.count
    try openSegment()
    let start = frames.count
    let date = max(commitDate, engine.platform.wallClockMilliseconds(), earliestDate)
    let header = encode(batch, winners, date: date)
    do throws(LogStoreError) {
      try reserve(upTo: position + header.length)
    } catch {
      frames.removeLast(frames.count - start)
      throw error
    }
    // From here on the frame is part of the group.
    appendRows(batch, winners)
    position += header.length
    lastSequence = header.sequence
    lastChecksum = header.checksum
    commitDate = date
    physicalKind = physicalKind ?? batch.physicalKind
    follow(batch)
    if firstSequence == 0 {
      firstSequence = header.sequence
      firstDate = date
    }
    outcome.end = LogEnd(
      segment: fileId, length: position, sequence: header.sequence, checksum: header.checksum)
    staged.append(Staged(request: request, outcome: outcome))
  }

  /// A record of a batch that goes into the log, and what it supersedes.
  private struct Winner {
    var record: Int
    var target: Lookup.Existing?
  }

  /// Last writer wins, per key: the records of a batch as if applied one after the other.
  private func decide(
    _ batch: PreparedBatch, _ outcome: inout CommitOutcome
  ) throws(LogStoreError) -> [Winner] {
    var winners: [Winner] = []
    winners.reserveCapacity(batch.items.count)
    var isDropped: [Bool] = []
    let items = batch.items
    var keys = HashIndex(minimumCapacity: items.count > 1 ? items.count : 0)
    defer { lookup.finish(engine) }
    for index in items.indices {
      let item = items[index]
      var comparison = Lookup.Comparison.newer
      var target: Lookup.Existing?
      if items.count > 1,
        let earlier = keys.find(item.hash, hash: { items[winners[Int($0)].record].hash })
      {
        comparison = compare(batch, index, with: winners[Int(earlier)].record)
        if comparison == .newer {
          target = winners[Int(earlier)].target
          isDropped[Int(earlier)] = true
          outcome.superseded += 1
        }
      } else if lookup.isRedelivered(batch, index, in: engine) {
        comparison = .same
      } else {
        target = try lookup.find(batch, index, in: engine, active: log, sealing: sealing?.log)
        if let target {
          comparison = try lookup.compare(batch, index, with: target, in: engine)
          if comparison == .same { lookup.foundRedelivered(target) }
        } else if isPossibleResurrection(batch, index) {
          outcome.possibleResurrections += 1
          if !engine.options.acceptsResurrections { comparison = .older }
        }
      }
      switch comparison {
      case .newer:
        if items.count > 1 {
          keys.set(
            item.hash, UInt32(winners.count),
            hash: {
              Int($0) < winners.count ? items[winners[Int($0)].record].hash : item.hash
            })
        }
        winners.append(Winner(record: index, target: target))
        isDropped.append(false)
      case .older, .same:
        outcome.superseded += 1
      case .conflicting:
        outcome.superseded += 1
        outcome.conflictingTies += 1
      }
    }
    guard isDropped.contains(true) else { return winners }
    return zip(winners, isDropped).filter { !$0.1 }.map(\.0)
  }

  /// Whether a version of an absent key may be older than a tombstone of it that was purged.
  private func isPossibleResurrection(_ batch: PreparedBatch, _ index: Int) -> Bool {
    guard let purgeHorizon else { return false }
    let parts = batch.items[index].parts
    let order = compareNumbers(
      parts.physical, parts.counter, purgeHorizon.physical, purgeHorizon.counter)
    if order != 0 { return order < 0 }
    return batch.withNode(of: index) { node in
      withBytes(of: purgeHorizon.node) { node.compare($0) <= 0 }
    }
  }

  private func compare(
    _ batch: PreparedBatch, _ index: Int, with other: Int
  ) -> Lookup.Comparison {
    Lookup.Comparison(
      batch.compareHlcs(index, other), batch.items[index].contentChecksum,
      batch.items[other].contentChecksum)
  }

  /// Appends a frame to the group's bytes.
  private func encode(_ batch: PreparedBatch, _ winners: [Winner], date: Int64) -> FrameHeader {
    let start = frames.count
    if start == 0 { framesStart = position }
    frames.appendZeros(FrameHeader.size)
    frames.append(batch.label)
    blockOffsets.removeAll(keepingCapacity: true)
    places.removeAll(keepingCapacity: true)
    for winner in winners {
      let item = batch.items[winner.record]
      batch.withBytes(of: winner.record) { record in
        places.append(
          encoder.add(
            record, parts: item.parts, contentChecksum: item.contentChecksum, to: &frames,
            frameStart: start, file: fileId, frameOffset: position, offsets: &blockOffsets))
      }
    }
    let blocks = encoder.finishFrame(
      into: &frames, frameStart: start, file: fileId, frameOffset: position,
      offsets: &blockOffsets)
    var body = Checksum.crc(
      UnsafeRawBufferPointer(
        rebasing: frames.bytes[
          (start + FrameHeader.size)..<(start + FrameHeader.size + batch.label.count)]))
    for offset in blockOffsets {
      body = Checksum.crc(
        frames.bytes.load(UInt32.self, at: start + Int(offset - position)), from: body)
    }
    frames.appendZeros((8 - (frames.count - start) % 8) % 8)
    var header = FrameHeader(
      length: UInt64(frames.count - start), sequence: nextSequence,
      durableSequence: engine.published.withLock { $0.durableEnd.sequence }, commitDate: date,
      recordCount: UInt32(winners.count), blockCount: blocks, previousChecksum: lastChecksum,
      bodyChecksum: body, asksPowerLoss: engine.options.durability == .powerLoss,
      labelLength: UInt16(batch.label.count))
    header.checksum = header.encode(into: &frames, at: start, file: fileId, offset: position)
    return header
  }

  private var nextSequence: UInt64 {
    let first = UInt64(epoch ?? 0) << 32 | 1
    return max(lastSequence + 1, first)
  }

  private func appendRows(_ batch: PreparedBatch, _ winners: [Winner]) {
    guard let log else { return }
    let deletions = engine.options.deletionValues
    var newest = winners[0].record
    for (index, winner) in winners.enumerated() {
      let item = batch.items[winner.record]
      let place = places[index]
      let number = batch.withBytes(of: winner.record) { record in
        log.append(
          RowLog.NewRow(
            hash: item.hash, physical: item.parts.physical, counter: item.parts.counter,
            node: UnsafeRawBufferPointer(rebasing: record.hlc[item.parts.nodeStart...]),
            collection: record.collection, block: blockOffsets[Int(place.block)],
            slot: place.slot, contentChecksum: item.contentChecksum,
            isDeletion: deletions.contains(record.type)))
      }
      nextRow = number + 1
      switch winner.target {
      case .row(let older, let row):
        if older !== log { older.supersede(row.number, by: number) }
      case .entry(let segment, let entry):
        let mark = RowLog.Mark(row: number, segment: segment.info.fileId, rank: entry.rank)
        log.add(mark)
        marks.append(mark)
      case nil: break
      }
      if index > 0, batch.compareHlcs(winner.record, newest) > 0 { newest = winner.record }
    }
    raiseGreatest(batch.records[newest], batch.items[newest].parts)
  }

  private func raiseGreatest(_ record: ChangeRecord, _ parts: HlcParts) {
    if let greatest {
      let numbers = compareNumbers(
        parts.physical, parts.counter, greatest.physical, greatest.counter)
      if numbers < 0 { return }
      if numbers == 0 {
        let order = withUTF8(record.hlcTimestamp) { hlc in
          withBytes(of: greatest.node) {
            UnsafeRawBufferPointer(rebasing: hlc[parts.nodeStart...]).compare($0)
          }
        }
        if order <= 0 { return }
      }
    }
    let key = withUTF8(record.hlcTimestamp) { hlc in
      HlcKey(
        physical: parts.physical, counter: parts.counter,
        node: UnsafeRawBufferPointer(rebasing: hlc[parts.nodeStart...]))
    }
    greatest = key
    stagedGreatest = (key, record.hlcTimestamp)
  }
}
