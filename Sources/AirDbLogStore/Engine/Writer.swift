internal import HlcText

/// The one writer of an engine: turns groups of batches into frames, and frames into published,
/// durable state.
///
/// Invariants:
/// - Everything but `queue`, `failure`, the hooks, `syncState`, `syncTarget`, `reduced` and `brake` is
///   touched by the leader of the commit queue only.
/// - Rows of a frame are in the active log before the frame is written, and visible only after it has
///   reached its durability level.
/// - All frames of a group go to one segment: before a segment is rolled over, what is staged is
///   committed. So rows that are not published are always in the active log.
/// - After a failed write or sync nothing is written any more (G4).
///
/// What is internal here is so for the writer's other files, `Writer+Staging`, `Writer+Segments` and
/// `Writer+Preparing`, and is touched nowhere else.
///
/// `@unchecked Sendable`: by the first invariant; the exceptions have locks of their own.
package final class Writer: @unchecked Sendable {
  package let engine: Engine
  package private(set) var queue: CommitQueue!

  /// Told that something was committed; true if segments were sealed, or enough was superseded in them
  /// for the cleaner to have a look. Set before the first batch.
  package var cleanerHook: (@Sendable (_ isWorthALook: Bool) -> Void)?
  /// Told that something can be seen that could not before. Set before the first batch.
  package var publishHook: (@Sendable () -> Void)?

  /// Set once: why no more is written.
  let failure = Locked<LogStoreError?>(nil)

  // The active segment.
  var file: OpenFile?
  var log: RowLog?
  var fileId: UInt64 = 0
  var firstSequence: UInt64 = 0
  /// Not after the date of its first commit.
  var firstDate = Int64.min
  /// Where the next frame goes, behind what is staged.
  var position: UInt64 = 0
  /// The file's space is reserved up to here.
  var reserved: UInt64 = 0

  /// The one that comes after it, if it has been prepared.
  var prepared: PreparedSegment?
  /// Whether that is under way.
  var isPreparing = false
  /// Whether that was begun since the active segment is there.
  var hasPrepared = false

  // The log.
  var lastSequence: UInt64
  var lastChecksum: UInt32
  var commitDate: Int64
  var epoch: UInt32?
  var physicalKind: HlcPhysicalKind?
  var nextRow: UInt64
  var greatest: HlcKey?
  /// The greatest timestamp of a tombstone that was purged.
  var purgeHorizon: HlcKey?
  var hasWritten = false

  // The group under way. No access to these lies within another one, so that the checks for that,
  // one a record and more, can be done without.
  @exclusivity(unchecked) var frames = ByteBuffer(capacity: 64 << 10)
  var framesStart: UInt64 = 0
  @exclusivity(unchecked) var encoder: BlockEncoder
  @exclusivity(unchecked) var blockOffsets: [UInt64] = []
  @exclusivity(unchecked) var places: [BlockEncoder.Place] = []
  var staged: [Staged] = []
  var marks: [RowLog.Mark] = []
  /// Of the records in sealed segments, since the cleaner was told.
  var supersededCount = 0
  var stagedGreatest: (key: HlcKey, text: String)?
  @exclusivity(unchecked) var lookup: Lookup

  /// Stamps changes that come without a timestamp; nil before the first of them.
  var clock: HybridLogicalClock?

  // Sealing.
  var sealing: Sealer.Job?
  /// Why the last attempt to seal failed, if another one may succeed.
  var sealRefusal: LogStoreError?
  /// Whether the sealer has it now.
  var isSealing = false
  let syncState = Locked(SyncState())
  let syncTarget = Locked(SyncTarget())
  private let reduced = Locked(false)
  /// How much the cleaner needs writers to wait for it, 0...1.
  package let brake = Locked(0.0)
  /// Nanoseconds that are to be waited yet.
  private var braking: UInt64 = 0

  struct Staged {
    var request: CommitRequest
    var outcome: CommitOutcome
  }

  /// The published end of the log, and the files that must be synced to make it durable.
  struct SyncTarget {
    var sealing: OpenFile?
    var active: OpenFile?
    var end = LogEnd()
  }

  struct SyncState {
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
    purgeHorizon = engine.snapshot.purgeHorizon?.key
    // What a recovery found is put in order by the close, as what this session writes; so is a log
    // that was closed as it was: a copy's.
    hasWritten = recovered.isUnclosed || recovered.hasUnsealedTail(engine.options)
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
    let brake = brake.withLock { $0 }
    let start = brake > 0 ? engine.platform.uptimeNanoseconds() : 0
    commit(group)
    if brake > 0 { wait(brake * Double(engine.platform.uptimeNanoseconds() - start)) }
  }

  /// Lets the cleaner catch up, after the callers have been answered: with the brake full on, as long
  /// as the group took, so that writers keep half their speed.
  private func wait(_ nanoseconds: Double) {
    braking += UInt64(nanoseconds)
    // A sleep is not exact, so that short ones would be too long.
    guard braking >= Self.leastWait else { return }
    engine.platform.sleep(nanoseconds: min(braking, Self.greatestWait))
    braking = 0
  }

  /// After so many records of sealed segments have been superseded there may be enough garbage, though
  /// no segment is full.
  private static func supersededToLook(_ segmentRecords: Int) -> Int {
    max(segmentRecords / 16, 1)
  }

  private static let leastWait: UInt64 = 2_000_000
  private static let greatestWait: UInt64 = 20_000_000

  private func commit(_ group: [CommitRequest]) {
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
    prepareSegmentIfDue()
  }

  /// A failed write or sync: the outcome is unknown, and writing stops.
  func unknown(_ error: SystemError, _ action: String, _ path: String) -> LogStoreError {
    let unknown = LogStoreError(
      .outcomeUnknown,
      "Could not \(action): \(error.description). What was being committed may or may not be durable.",
      file: path, errno: error.errno)
    poison(unknown)
    return unknown
  }
}

// MARK: - Committing

extension Writer {
  /// Writes the group's frames, makes them durable, publishes them, and tells their callers.
  func commitStaged() {
    guard !staged.isEmpty else { return }
    let group = staged
    staged.removeAll(keepingCapacity: true)
    var error: LogStoreError?
    if frames.count > 0 { error = writeAndSync() }
    if error == nil, frames.count > 0 {
      publish()
      publishHook?()
      if engine.options.durability != .powerLoss { scheduleSync(frames.count) }
      supersededCount += marks.count
      let isWorthALook = supersededCount >= Self.supersededToLook(engine.options.segmentRecords)
      if isWorthALook { supersededCount = 0 }
      cleanerHook?(isWorthALook)
    }
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
    guard engine.options.durability == .powerLoss else { return nil }
    do throws(SystemError) {
      if try file.synchronize() < .stable { reportReduced() }
    } catch {
      return unknown(error, "sync the log", file.path)
    }
    return nil
  }

  /// Whether the platform could not give the durability that was asked for.
  package var isReduced: Bool { reduced.withLock { $0 } }

  func reportReduced() {
    let isNew = reduced.withLock { reduced in
      defer { reduced = true }
      return !reduced
    }
    if isNew { engine.report(.durabilityReduced) }
  }

  var end: LogEnd {
    LogEnd(segment: fileId, length: position, sequence: lastSequence, checksum: lastChecksum)
  }

  /// Makes what was staged visible, in one step.
  private func publish() {
    let end = end
    let isDurable = engine.options.durability == .powerLoss
    // First, so that whoever syncs after a look at the state makes all of it durable.
    syncTarget.withLock { $0 = SyncTarget(sealing: sealing?.file, active: file, end: end) }
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

// MARK: - Ending

extension Writer {
  /// Makes everything durable, seals a long tail, and leaves the log so that the next open has
  /// nothing to look up. The writer takes no batch afterwards.
  package func close() throws(LogStoreError) {
    try queue.exclusively { () throws(LogStoreError) in
      // After a failure nothing is written any more; nor by a second call, when the lock has been
      // given back.
      if let refusal {
        guard refusal.code == .outcomeUnknown else { return }
        // Nothing may touch the files any more when somebody recovers them.
        awaitSeal()
        awaitPreparation()
        let state = engine.snapshot
        if state.durableEnd.sequence < state.end.sequence { throw refusal }
        return
      }
      defer { poison(LogStoreError(.closed, "The store has been closed.")) }
      try waitForSeal()
      awaitPreparation()
      if let prepared { remove(prepared) }
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
    if file != nil, position - UInt64(SegmentHeader.size) > engine.options.replayBytes {
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
