// The segment that is written to: a new one, space in it, its sealing, syncs off the commit path.
extension Writer {
  /// Makes sure that this session has an epoch and that there is a segment to append to.
  func openSegment() throws(LogStoreError) {
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
        // Either manifest serves the next attempt: nothing has been built on the new one.
        case .notWritten(let error), .notDurable(let error):
          LogStoreError(error, "write the manifest", file: path)
        case .unknown(let error): self.unknown(error, "replace the manifest", path)
        }
      })
    return engine.manifest.value
  }

  /// Reserves file ids, durably, unless there are enough.
  func reserveIds() throws(LogStoreError) {
    if !engine.fileIds.hasReserved(engine.manifest.value) {
      try updateManifest { engine.fileIds.extend(&$0) }
    }
  }

  private func createSegment() throws(LogStoreError) {
    let next = try nextSegment()
    let header = SegmentHeader(
      storeId: engine.manifest.value.storeId, fileId: next.id, predecessor: fileId,
      predecessorLength: position, predecessorChecksum: lastChecksum)
    // The header becomes durable with the first commit.
    do throws(SystemError) {
      try withBytes(of: header.encode()) { (bytes) throws(SystemError) in
        try next.file.writeAll(bytes, at: 0)
      }
    } catch {
      remove(next)
      throw LogStoreError(error, "create a segment", file: next.file.path)
    }
    let log = RowLog(
      fileId: next.id, base: nextRow, after: LogEnd(sequence: lastSequence, checksum: lastChecksum))
    file = next.file
    self.log = log
    fileId = next.id
    firstSequence = 0
    firstDate = .min
    position = UInt64(SegmentHeader.size)
    reserved = next.reserved
    hasPrepared = false
    engine.published.withLock { $0.tail.append(log) }
  }

  private func nextSegment() throws(LogStoreError) -> PreparedSegment {
    if let segment = takePrepared() { return segment }
    return try prepare(reserving: Self.leastReservation)
  }

  private static let leastReservation: UInt64 = 64 << 10
  private static let greatestReservation: UInt64 = 4 << 20

  /// Makes sure that writing up to `end` cannot fail for lack of space.
  func reserve(upTo end: UInt64) throws(LogStoreError) {
    guard end > reserved, let file else { return }
    // As much again as there is, within bounds, so that reservations are few.
    let step = min(max(reserved, Self.leastReservation), Self.greatestReservation)
    let wanted = max(end, reserved + step)
    do throws(SystemError) {
      try file.reserve(offset: reserved, count: wanted - reserved)
      reserved = wanted
    } catch {
      // On a nearly full disk exactly what is needed may still fit.
      if error.isNoSpace { _ = giveUpPrepared() }
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
  func rollIfFull() throws(LogStoreError) {
    guard let log,
      position >= engine.options.segmentBytes || log.count >= engine.options.segmentRecords
    else { return }
    commitStaged()
    if let refusal { throw refusal }
    try roll()
  }

  /// Hands the active segment to the sealer. Waits for the one before it.
  func roll() throws(LogStoreError) {
    try waitForSeal()
    guard let log, let file, firstSequence > 0 else { return }
    // The sealer writes it anew, and from then on the manifest lists a segment more.
    try engine.loadLiveness()
    let state = engine.snapshot
    let job = Sealer.Job(
      log: log, file: file, firstSequence: firstSequence,
      state: Sealer.LogState(
        end: end, commitDate: commitDate, greatestHlc: state.greatestHlc?.text,
        physicalKind: physicalKind))
    sealing = job
    log.finish(at: position)
    self.log = nil
    self.file = nil
    schedule(job)
  }

  private func schedule(_ job: Sealer.Job) {
    sealRefusal = nil
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
  func waitForSeal() throws(LogStoreError) {
    queue.doPostedJobs()
    guard let sealing else { return }
    if !isSealing { schedule(sealing) }
    awaitSeal()
    if let sealRefusal { throw sealRefusal }
    if let refusal { throw refusal }
  }

  /// Waits until the seal under way has come to an end, good or bad.
  func awaitSeal() {
    queue.wait(until: { !isSealing }, help: { engine.scheduler.help() })
  }

  /// Puts a sealed segment in the place of its rows. Done by the leader.
  private func install(_ outcome: Sealer.Outcome) {
    isSealing = false
    switch outcome {
    case .failed(let error, let isRetryable):
      if isRetryable, error.code == .noSpace, let sealing, giveUpPrepared() {
        schedule(sealing)
        return
      }
      if isRetryable { sealRefusal = error } else { poison(error) }
      engine.report(.failed(error))
    case .sealed(let segment, let rankOfRow):
      guard let sealing else { return }
      // Rows of the active log that superseded rows of the sealed one now supersede its entries.
      let marks = sealing.log.supersededLater.map {
        RowLog.Mark(
          row: $0.number, segment: segment.info.fileId, rank: UInt64(rankOfRow[Int($0.row)]))
      }
      log?.add(marks)
      engine.published.withLock { state in
        var dead = DeadBits(entryCount: segment.info.entryCount)
        for mark in marks where mark.row < state.visibleRows { dead.insert(mark.rank) }
        state.sealed.append(Published.Sealed(segment: segment, dead: dead))
        state.sealedEnd = sealing.state.end
        state.tail.removeAll { $0 === sealing.log }
      }
      lookup.invalidate()
      self.sealing = nil
      // So much memory is not given back on the commit path.
      let memory = sealing.log.memory
      engine.scheduler.schedule { withExtendedLifetime(memory) {} }
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
  /// Has the active segment sealed if more than half of it can be left out and it is worth it.
  /// Waits for that; commits go on meanwhile.
  package func rollIfMostlyDead(keeping retention: RetentionBounds) throws(LogStoreError) {
    try rollIf { log in
      position > Self.leastToRoll && 2 * log.liveCount(below: nextRow) < log.count
        && !retention.keeps(sequence: lastSequence, date: commitDate)
    }
  }

  /// Has the active segment sealed if a compaction could make it smaller at all: it has superseded
  /// versions that nobody keeps, tombstones that may go, or many small commits. Waits for that;
  /// commits go on meanwhile.
  ///
  /// One that could not be sealed before is tried again first: it is to be cleaned as well.
  package func rollIfCleanable(keeping retention: RetentionBounds) throws(LogStoreError) {
    try sealRefused()
    try rollIf { log in
      let commits = lastSequence - firstSequence + 1
      if position > Self.leastToPack, log.count < 8 * Int(clamping: commits) { return true }
      if log.liveCount(below: nextRow) < log.count,
        !retention.keeps(sequence: firstSequence, date: firstDate)
      {
        return true
      }
      return retention.mayPurge(sequence: firstSequence, date: firstDate) && log.hasDeletions
    }
  }

  private func rollIf(_ isWorthIt: (RowLog) -> Bool) throws(LogStoreError) {
    // The segment that is to be sealed, once it has been looked at.
    var target: RowLog?
    try betweenGroups { () throws(LogStoreError) in
      if target == nil {
        guard refusal == nil, let log, firstSequence > 0, isWorthIt(log) else { return true }
        target = log
        // One that could not be sealed before comes first.
        if let sealing, !isSealing { schedule(sealing) }
      }
      guard let target, try !hasSealed(target) else { return true }
      if !isSealing { try roll() }
      return false
    }
  }

  /// Tries once more to seal what could not be sealed, if there is such a segment.
  private func sealRefused() throws(LogStoreError) {
    var tried: RowLog?
    try betweenGroups { () throws(LogStoreError) in
      if let tried { return try hasSealed(tried) }
      guard refusal == nil, let sealing, !isSealing else { return true }
      tried = sealing.log
      schedule(sealing)
      return false
    }
  }

  /// Whether a segment has been sealed; throws if that was tried and failed.
  private func hasSealed(_ segment: RowLog) throws(LogStoreError) -> Bool {
    guard log === segment || sealing?.log === segment else { return true }
    if isSealing { return false }
    if let sealRefusal { throw sealRefusal }
    if let refusal { throw refusal }
    return false
  }

  /// Runs `step` while no group is under way, and again after each seal, until it answers true. Others
  /// than the leader wait in this way for a seal: commits go on meanwhile.
  private func betweenGroups(
    _ step: () throws(LogStoreError) -> Bool
  ) throws(LogStoreError) {
    try queue.exclusively(until: step, help: { engine.scheduler.help() })
  }

  private static let leastToRoll: UInt64 = 1 << 20
  private static let leastToPack: UInt64 = 64 << 10

  /// The sealed segments have been replaced. Called by the leader.
  package func segmentsChanged() {
    lookup.invalidate()
    purgeHorizon = engine.snapshot.purgeHorizon?.key
  }

  /// Makes sure that a file id can be taken.
  package func reserveFileIds() throws(LogStoreError) {
    try queue.exclusively { () throws(LogStoreError) in
      if let refusal { throw refusal }
      try reserveIds()
    }
  }
}

// MARK: - Syncing in the background

extension Writer {
  private static let syncBytes: UInt64 = 8 << 20
  private static let syncMilliseconds = 1_000

  /// Bounds what a power loss takes from a store that does not sync its commits.
  func scheduleSync(_ bytes: Int) {
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
    // Does not wait for the leader, who may be waiting for a seal that is queued behind this.
    let target = syncTarget.withLock { $0 }
    if let refusal { throw refusal }
    for case let file? in [target.sealing, target.active] {
      do throws(SystemError) {
        if try file.synchronize() < .stable { reportReduced() }
      } catch {
        // A file whose seal finished meanwhile may be closed; it has been synced then.
        if error.isBadDescriptor { continue }
        throw unknown(error, "sync the log", file.path)
      }
    }
    engine.published.withLock { state in
      if state.durableEnd.sequence < target.end.sequence { state.durableEnd = target.end }
    }
  }

  /// Makes a commit that is visible survive power loss, if it does not yet.
  package func makeDurable(upTo sequence: UInt64) throws(LogStoreError) {
    if let refusal { throw refusal }
    if engine.published.withLock({ $0.durableEnd.sequence }) < sequence { try synchronize() }
  }

  var publishedEnd: LogEnd { engine.published.withLock { $0.end } }
}
