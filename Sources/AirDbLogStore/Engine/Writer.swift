internal import HlcText

/// The one writer of an engine: turns groups of batches into frames, and frames into published,
/// durable state.
///
/// Invariants:
/// - Everything but `queue`, `failure`, `syncState` and `reduced` is touched by the leader of the
///   commit queue only.
/// - Rows of a frame are in the active log before the frame is written, and visible only after it has
///   reached its durability level.
/// - All frames of a group go to one segment: before a segment is rolled over, what is staged is
///   committed. So rows that are not published are always in the active log.
/// - After a failed write or sync nothing is written any more (G4).
///
/// `@unchecked Sendable`: by the first invariant; the exceptions have locks of their own.
package final class Writer: @unchecked Sendable {
  package let engine: Engine
  package private(set) var queue: CommitQueue!

  /// Told that the sealed segments have changed, and that something was committed. Set before the
  /// first batch.
  package var cleanerHook: (@Sendable (_ hasSealed: Bool) -> Void)?

  /// Set once: why no more is written.
  private let failure = Locked<LogStoreError?>(nil)

  // The active segment.
  private var file: OpenFile?
  private var log: RowLog?
  private var fileId: UInt64 = 0
  private var firstSequence: UInt64 = 0
  /// Where the next frame goes, behind what is staged.
  private var position: UInt64 = 0
  /// The file's space is reserved up to here.
  private var reserved: UInt64 = 0

  // The log.
  private var lastSequence: UInt64
  private var lastChecksum: UInt32
  private var commitDate: Int64
  private var epoch: UInt32?
  private var physicalKind: HlcPhysicalKind?
  private var nextRow: UInt64
  private var greatest: HlcKey?
  private var hasWritten = false

  // The group under way.
  private var frames = ByteBuffer(capacity: 64 << 10)
  private var framesStart: UInt64 = 0
  private var encoder: BlockEncoder
  private var blockOffsets: [UInt64] = []
  private var places: [BlockEncoder.Place] = []
  private var staged: [Staged] = []
  private var marks: [RowLog.Mark] = []
  private var stagedGreatest: (key: HlcKey, text: String)?
  private var lookup: Lookup

  // Sealing.
  private var sealing: Sealer.Job?
  /// Whether the sealer has it now.
  private var isSealing = false
  /// Why the last attempt to seal failed, if another one may succeed.
  private var sealRefusal: LogStoreError?
  private let syncState = Locked(SyncState())
  private let reduced = Locked(false)

  private struct Staged {
    var request: CommitRequest
    var outcome: CommitOutcome
  }

  private struct SyncState {
    var unsynced: UInt64 = 0
    var isScheduled = false
  }

  package init(_ engine: Engine, _ recovered: Recovered) {
    self.engine = engine
    encoder = BlockEncoder(target: engine.options.blockBytes)
    // Until there is an active segment, these say what a new one follows.
    fileId = recovered.end.segment
    position = recovered.end.length
    lastSequence = recovered.end.sequence
    lastChecksum = recovered.end.checksum
    commitDate = recovered.commitDate
    physicalKind = recovered.physicalKind
    greatest = recovered.greatestHlc?.key
    nextRow = engine.snapshot.visibleRows
    lookup = Lookup()
    queue = CommitQueue { [unowned self] group in self.lead(group) }
  }

  /// Takes up the unsealed segments that the open found: the last one is written on, the ones before
  /// it are sealed.
  package func adopt(_ recovered: Recovered, files: [OpenFile]) throws(LogStoreError) {
    try queue.exclusively { () throws(LogStoreError) in try takeUp(recovered, files) }
  }

  private func takeUp(_ recovered: Recovered, _ files: [OpenFile]) throws(LogStoreError) {
    for (position, tail) in recovered.tail.enumerated() {
      log = tail.log
      file = files[position]
      fileId = tail.fileId
      firstSequence = tail.firstSequence
      self.position = tail.length
      reserved = tail.length
      lastSequence = tail.end.sequence
      lastChecksum = tail.end.checksum
      commitDate = tail.commitDate
      if position < recovered.tail.count - 1 { try roll() }
    }
  }
}

// MARK: - Leading

extension Writer {
  /// Why nothing can be written, if that is so.
  package var refusal: LogStoreError? { failure.withLock { $0 } }

  /// Stops all writing, for good. The first reason is kept.
  package func poison(_ error: LogStoreError) {
    failure.withLock { if $0 == nil { $0 = error } }
  }

  private func lead(_ group: [CommitRequest]) {
    queue.doPostedJobs()
    for request in group {
      do throws(LogStoreError) {
        if let refusal { throw refusal }
        try stage(request)
      } catch {
        queue.complete([(request, .failure(error))])
      }
    }
    commitStaged()
  }

  /// A failed write or sync: the outcome is unknown, and writing stops.
  private func unknown(_ error: SystemError, _ action: String, _ path: String) -> LogStoreError {
    let unknown = LogStoreError(
      .outcomeUnknown,
      "Could not \(action): \(error.description). What was being committed may or may not be durable.",
      file: path, errno: error.errno)
    poison(unknown)
    return unknown
  }
}

// MARK: - Staging

extension Writer {
  /// Decides a batch, encodes what wins, and puts its rows into the active log. Throws only if
  /// nothing of it has been staged.
  private func stage(_ request: CommitRequest) throws(LogStoreError) {
    let batch = request.batch
    if let kind = batch.physicalKind, let pinned = physicalKind, kind != pinned {
      throw PreparedBatch.Refusal.mixed(batch.records[0].hlcTimestamp).error(at: 0)
    }
    try rollIfFull()
    try lookup.prepare(engine)
    var outcome = CommitOutcome()
    let winners = try decide(batch, &outcome)
    guard !winners.isEmpty else {
      staged.append(Staged(request: request, outcome: outcome))
      return
    }
    outcome.accepted = winners.count
    try openSegment()
    let start = frames.count
    let date = max(commitDate, engine.platform.wallClockMilliseconds())
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
    if firstSequence == 0 { firstSequence = header.sequence }
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
      } else {
        target = try lookup.find(batch, index, in: engine, active: log, sealing: sealing?.log)
        if let target { comparison = try lookup.compare(batch, index, with: target, in: engine) }
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

  private func compare(
    _ batch: PreparedBatch, _ index: Int, with other: Int
  ) -> Lookup.Comparison {
    let a = batch.items[index]
    let b = batch.items[other]
    let order = withUTF8(batch.records[index].hlcTimestamp) { first in
      withUTF8(batch.records[other].hlcTimestamp) { second in
        compareHlc(
          first.assumingMemoryBound(to: UInt8.self), a.parts,
          second.assumingMemoryBound(to: UInt8.self), b.parts)
      }
    }
    return Lookup.Comparison(order, a.contentChecksum, b.contentChecksum)
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
      withBytes(of: batch.records[winner.record]) { record in
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
    for (index, winner) in winners.enumerated() {
      let item = batch.items[winner.record]
      let record = batch.records[winner.record]
      let place = places[index]
      let number = withUTF8(record.collection) { collection in
        withUTF8(record.hlcTimestamp) { hlc in
          log.append(
            RowLog.NewRow(
              hash: item.hash, physical: item.parts.physical, counter: item.parts.counter,
              node: UnsafeRawBufferPointer(rebasing: hlc[item.parts.nodeStart...]),
              collection: collection, block: blockOffsets[Int(place.block)], slot: place.slot,
              contentChecksum: item.contentChecksum,
              isDeletion: deletions.contains(Int64(record.type.rawValue))))
        }
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
      raiseGreatest(record, item.parts)
    }
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

// MARK: - Committing

extension Writer {
  /// Writes the group's frames, makes them durable, publishes them, and tells their callers.
  private func commitStaged() {
    guard !staged.isEmpty else { return }
    let group = staged
    staged.removeAll(keepingCapacity: true)
    var error: LogStoreError?
    if frames.count > 0 { error = writeAndSync() }
    if error == nil { publish() }
    if frames.count > 0 { cleanerHook?(false) }
    frames.removeAll()
    frames.shrink(toCapacity: 1 << 20)
    marks.removeAll(keepingCapacity: true)
    stagedGreatest = nil
    queue.complete(
      group.map { staged in
        if let error {
          (staged.request, .failure(error))
        } else {
          (staged.request, .success(staged.outcome))
        }
      })
  }

  private func writeAndSync() -> LogStoreError? {
    guard let file else { return nil }
    do throws(SystemError) {
      try file.writeAll(frames.bytes, at: framesStart)
    } catch {
      return unknown(error, "write to the log", file.path)
    }
    hasWritten = true
    guard engine.options.durability == .powerLoss else {
      scheduleSync(frames.count)
      return nil
    }
    do throws(SystemError) {
      if try file.synchronize() < .stable { reportReduced() }
    } catch {
      return unknown(error, "sync the log", file.path)
    }
    return nil
  }

  /// Whether the platform could not give the durability that was asked for.
  package var isReduced: Bool { reduced.withLock { $0 } }

  private func reportReduced() {
    let isNew = reduced.withLock { reduced in
      defer { reduced = true }
      return !reduced
    }
    if isNew { engine.report(.durabilityReduced) }
  }

  private var end: LogEnd {
    LogEnd(segment: fileId, length: position, sequence: lastSequence, checksum: lastChecksum)
  }

  /// Makes what was staged visible, in one step.
  private func publish() {
    guard frames.count > 0 else { return }
    let end = end
    let isDurable = engine.options.durability == .powerLoss
    engine.published.withLock { state in
      state.visibleRows = nextRow
      state.end = end
      if isDurable { state.durableEnd = end }
      state.commitDate = commitDate
      state.physicalKind = physicalKind
      if let stagedGreatest {
        state.greatestHlc = Published.Greatest(key: stagedGreatest.key, text: stagedGreatest.text)
      }
      if !marks.isEmpty { state.insert(marks) }
    }
  }
}

// MARK: - The active segment

extension Writer {
  /// Makes sure that this session has an epoch and that there is a segment to append to.
  private func openSegment() throws(LogStoreError) {
    // A counter that would overflow goes on in a new epoch.
    if epoch == nil || lastSequence & 0xFFFF_FFFF == 0xFFFF_FFFF { try claimEpoch() }
    if file == nil { try createSegment() }
  }

  /// Claims an epoch, durably, so that no sequence of this session was ever given before, and
  /// reserves file ids.
  private func claimEpoch() throws(LogStoreError) {
    let claimed = try updateManifest { manifest in
      manifest.epoch += 1
      engine.fileIds.extend(&manifest)
    }
    epoch = claimed.epoch
  }

  /// Replaces the manifest; what is known durable goes with it.
  @discardableResult
  private func updateManifest(
    _ change: (inout Manifest) -> Void
  ) throws(LogStoreError) -> Manifest {
    let path = engine.directory.manifest
    try engine.manifest.update(
      { (manifest) throws(LogStoreError) in
        guard manifest.epoch < .max else {
          throw LogStoreError(
            .limitExceeded, "The store has been written by 2^32 - 1 sessions.")
        }
        change(&manifest)
      },
      orElse: { failure in
        switch failure {
        case .notWritten(let error): LogStoreError(error, "write the manifest", file: path)
        case .unknown(let error): self.unknown(error, "replace the manifest", path)
        }
      })
    return engine.manifest.value
  }

  private func createSegment() throws(LogStoreError) {
    if !engine.fileIds.hasReserved(engine.manifest.value) {
      try updateManifest { engine.fileIds.extend(&$0) }
    }
    let id = engine.fileIds.next()
    let path = engine.directory.segment(id)
    let header = SegmentHeader(
      storeId: engine.manifest.value.storeId, fileId: id, predecessor: fileId,
      predecessorLength: position, predecessorChecksum: lastChecksum)
    let size = UInt64(SegmentHeader.size)
    let created: OpenFile
    do throws(SystemError) {
      created = try engine.directory.open(path, .createNew)
    } catch {
      throw LogStoreError(error, "create a segment", file: path)
    }
    do throws(SystemError) {
      try created.reserve(offset: 0, count: Self.leastReservation)
      try withBytes(of: header.encode()) { (bytes) throws(SystemError) in
        try created.writeAll(bytes, at: 0)
      }
    } catch {
      // No commit is in it: it goes away, or is an orphan that the next open removes.
      try? engine.directory.remove(path)
      throw LogStoreError(error, "create a segment", file: path)
    }
    // Until its entry is durable, no commit in it can be.
    do throws(SystemError) {
      try created.synchronize()
      try engine.directory.synchronizeDirectory()
    } catch {
      throw unknown(error, "sync a new segment", path)
    }
    let log = RowLog(fileId: id, base: nextRow)
    file = created
    self.log = log
    fileId = id
    firstSequence = 0
    position = size
    reserved = Self.leastReservation
    engine.published.withLock { $0.tail.append(log) }
  }

  private static let leastReservation: UInt64 = 64 << 10
  private static let greatestReservation: UInt64 = 4 << 20

  /// Makes sure that writing up to `end` cannot fail for lack of space.
  private func reserve(upTo end: UInt64) throws(LogStoreError) {
    guard end > reserved, let file else { return }
    // As much again as there is, within bounds, so that reservations are few.
    let step = min(max(reserved, Self.leastReservation), Self.greatestReservation)
    let wanted = max(end, reserved + step)
    do throws(SystemError) {
      try file.reserve(offset: reserved, count: wanted - reserved)
      reserved = wanted
    } catch {
      // On a nearly full disk exactly what is needed may still fit.
      do throws(SystemError) {
        try file.reserve(offset: reserved, count: end - reserved)
        reserved = end
      } catch {
        throw LogStoreError(error, "reserve space in the log", file: file.path)
      }
    }
  }
}

// MARK: - Sealing

extension Writer {
  /// Starts a new segment if the active one is full, and has the full one sealed.
  private func rollIfFull() throws(LogStoreError) {
    guard let log,
      position >= engine.options.segmentBytes || log.count >= engine.options.segmentRecords
    else { return }
    commitStaged()
    if let refusal { throw refusal }
    try roll()
  }

  /// Hands the active segment to the sealer. Waits for the one before it.
  private func roll() throws(LogStoreError) {
    try waitForSeal()
    guard let log, let file, firstSequence > 0 else { return }
    let state = engine.snapshot
    let job = Sealer.Job(
      log: log, file: file, firstSequence: firstSequence,
      state: Sealer.LogState(
        end: end, commitDate: commitDate, greatestHlc: state.greatestHlc?.text,
        physicalKind: physicalKind))
    sealing = job
    self.log = nil
    self.file = nil
    schedule(job)
  }

  private func schedule(_ job: Sealer.Job) {
    isSealing = true
    engine.scheduler.schedule { [weak self] in self?.seal(job) }
  }

  /// Runs off the commit path.
  private func seal(_ job: Sealer.Job) {
    let outcome: Sealer.Outcome
    if let refusal {
      outcome = .failed(refusal, isRetryable: false)
    } else {
      outcome = Sealer(engine).seal(job)
    }
    queue.post { [weak self] in self?.install(outcome) }
  }

  /// Waits until no segment is being sealed; tries again what failed for want of space or files.
  private func waitForSeal() throws(LogStoreError) {
    queue.doPostedJobs()
    guard let sealing else { return }
    if !isSealing {
      sealRefusal = nil
      schedule(sealing)
    }
    awaitSeal()
    if let sealRefusal { throw sealRefusal }
    if let refusal { throw refusal }
  }

  /// Waits until the seal under way has come to an end, good or bad.
  private func awaitSeal() {
    queue.wait(until: { !isSealing }, help: { engine.scheduler.help() })
  }

  /// Puts a sealed segment in the place of its rows. Done by the leader.
  private func install(_ outcome: Sealer.Outcome) {
    isSealing = false
    switch outcome {
    case .failed(let error, let isRetryable):
      if isRetryable { sealRefusal = error } else { poison(error) }
      engine.report(.failed(error))
    case .sealed(let segment, let rowOfRank):
      guard let sealing else { return }
      let rows = sealing.log.snapshot()
      engine.published.withLock { state in
        var dead = DeadBits(entryCount: segment.info.entryCount)
        for (rank, row) in rowOfRank.enumerated()
        where rows.superseders[Int(row)] < state.visibleRows {
          dead.insert(UInt64(rank))
        }
        state.sealed.append(Published.Sealed(segment: segment, dead: dead))
        state.sealedEnd = sealing.state.end
        state.tail.removeAll { $0 === sealing.log }
      }
      // Rows of the active log that superseded rows of the sealed one now supersede its entries.
      if let log {
        var rankOfRow: [UInt32: UInt64] = [:]
        for (rank, row) in rowOfRank.enumerated()
        where rows.superseders[Int(row)] != RowLog.never {
          rankOfRow[row] = UInt64(rank)
        }
        for (row, rank) in rankOfRow {
          log.add(
            RowLog.Mark(
              row: rows.superseders[Int(row)], segment: segment.info.fileId, rank: rank))
        }
      }
      lookup.invalidate()
      self.sealing = nil
      cleanerHook?(true)
      engine.report(
        .sealed(
          segment: segment.info.fileId, records: segment.info.recordCount,
          bytes: segment.info.length))
    }
  }
}

// MARK: - Compaction

extension Writer {
  /// Has the active segment sealed if more than half of it is superseded and it is worth it.
  package func rollIfMostlyDead() throws(LogStoreError) {
    try queue.exclusively { () throws(LogStoreError) in
      guard refusal == nil, hasWritten, let log, position > Self.leastToRoll else { return }
      let live = log.liveCount(below: nextRow)
      guard 2 * live < log.count else { return }
      try roll()
      try waitForSeal()
    }
  }

  private static let leastToRoll: UInt64 = 1 << 20

  /// The sealed segments have been replaced. Called by the leader.
  package func segmentsChanged() { lookup.invalidate() }

  /// Makes sure that a file id can be taken.
  package func reserveFileIds() throws(LogStoreError) {
    try queue.exclusively { () throws(LogStoreError) in
      if let refusal { throw refusal }
      if !engine.fileIds.hasReserved(engine.manifest.value) {
        try updateManifest { engine.fileIds.extend(&$0) }
      }
    }
  }
}

// MARK: - Syncing in the background

extension Writer {
  private static let syncBytes: UInt64 = 8 << 20
  private static let syncMilliseconds = 1_000

  /// Bounds what a power loss takes from a store that does not sync its commits.
  private func scheduleSync(_ bytes: Int) {
    let (isLarge, isNew) = syncState.withLock { state in
      let before = state.unsynced
      state.unsynced += UInt64(bytes)
      defer { state.isScheduled = true }
      return (
        before < Self.syncBytes && state.unsynced >= Self.syncBytes, !state.isScheduled
      )
    }
    if isLarge {
      engine.scheduler.schedule { [weak self] in self?.syncInBackground() }
    } else if isNew {
      engine.scheduler.schedule(afterMilliseconds: Self.syncMilliseconds) { [weak self] in
        self?.syncInBackground()
      }
    }
  }

  private func syncInBackground() {
    guard refusal == nil else { return }
    syncState.withLock { $0 = SyncState() }
    do throws(LogStoreError) {
      try synchronize()
    } catch {
      engine.report(.failed(error))
    }
  }

  /// Makes everything published so far survive power loss.
  package func synchronize() throws(LogStoreError) {
    // The files and the end belong together: both as of between two groups.
    let (open, end) = queue.exclusively { ([sealing?.file, file].compactMap { $0 }, publishedEnd) }
    if let refusal { throw refusal }
    for file in open {
      do throws(SystemError) {
        try file.synchronize()
      } catch {
        // A file whose seal finished meanwhile may be closed; it has been synced then.
        if error.isBadDescriptor { continue }
        throw unknown(error, "sync the log", file.path)
      }
    }
    engine.published.withLock { state in
      if state.durableEnd.sequence < end.sequence { state.durableEnd = end }
    }
  }

  private var publishedEnd: LogEnd { engine.published.withLock { $0.end } }
}

// MARK: - Ending

extension Writer {
  /// Makes everything durable, seals a long tail, and leaves the log so that the next open has
  /// nothing to look up. The writer takes no batch afterwards.
  package func close() throws(LogStoreError) {
    try queue.exclusively { () throws(LogStoreError) in
      // After a failure nothing is written any more; nor by a second call, when the lock has been
      // given back.
      if let refusal {
        // Nothing may touch the files any more when somebody recovers them.
        if refusal.code == .outcomeUnknown { awaitSeal() }
        return
      }
      defer { poison(LogStoreError(.closed, "The store has been closed.")) }
      try waitForSeal()
      guard hasWritten else { return }
      try finish()
    }
  }

  private func finish() throws(LogStoreError) {
    if let file {
      do throws(SystemError) {
        try file.synchronize()
      } catch {
        throw unknown(error, "sync the log", file.path)
      }
    }
    let end = publishedEnd
    engine.published.withLock { $0.durableEnd = end }
    if position - UInt64(SegmentHeader.size) > engine.options.replayBytes {
      try roll()
      try waitForSeal()
    }
    if let file, reserved > position {
      do throws(SystemError) {
        try file.truncate(to: position)
      } catch {
        throw unknown(error, "give back reserved space", file.path)
      }
    }
    let state = engine.snapshot
    try Sealer(engine).writeClosingManifest(
      Sealer.LogState(
        end: state.end, commitDate: state.commitDate, greatestHlc: state.greatestHlc?.text,
        physicalKind: state.physicalKind))
  }
}
