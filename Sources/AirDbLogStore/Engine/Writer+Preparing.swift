/// A segment that has no header yet: a file with space in it whose entry in the directory is durable.
struct PreparedSegment: Sendable {
  let id: UInt64
  let file: OpenFile
  /// The file's space is reserved up to here.
  let reserved: UInt64
}

// The segment that comes after the active one is prepared ahead of time, so that the commit that
// finds the active one full does not wait for a sync.
extension Writer {
  /// Has the next segment prepared off the commit path when the active one is half full. Called by
  /// the leader. A session that writes nothing else does not do this either.
  func prepareSegmentIfDue() {
    guard hasWritten, !hasPrepared, !isPreparing, prepared == nil, refusal == nil, let log,
      2 * position >= engine.options.segmentBytes || 2 * log.count >= engine.options.segmentRecords
    else { return }
    hasPrepared = true
    isPreparing = true
    engine.scheduler.schedule { [weak self] in self?.prepareAhead() }
  }

  /// Runs off the commit path.
  private func prepareAhead() {
    var made: PreparedSegment?
    if refusal == nil {
      do throws(LogStoreError) {
        made = try prepare(reserving: min(Self.reservationAhead, engine.options.segmentBytes))
      } catch {
        // What only could not be done now, the commit that needs it tries again.
        if error.code == .outcomeUnknown { engine.report(.failed(error)) }
      }
    }
    queue.post { [weak self, made] in
      self?.isPreparing = false
      self?.prepared = made
    }
  }

  private static let reservationAhead: UInt64 = 1 << 20

  /// Waits for what is under way. Called by the leader.
  func awaitPreparation() {
    queue.wait(until: { !isPreparing }, help: { engine.scheduler.help() })
  }

  /// The id of the segment that has been prepared: for checks of which files are used.
  package var preparedId: UInt64? { queue.exclusively { prepared?.id } }

  /// The segment that was prepared. Called by the leader.
  func takePrepared() -> PreparedSegment? {
    guard let segment = prepared else { return nil }
    prepared = nil
    // Ids ascend along the log (Recovery 2): this one came too late for the segment it was meant to be.
    guard segment.id > fileId else {
      remove(segment)
      return nil
    }
    return segment
  }

  /// Creates the file of a segment. Until its entry is durable, no commit in it can be.
  func prepare(reserving count: UInt64) throws(LogStoreError) -> PreparedSegment {
    try reserveIds()
    let id = engine.fileIds.next()
    let path = engine.directory.segment(id)
    let file: OpenFile
    do throws(SystemError) {
      file = try engine.directory.open(path, .createNew)
    } catch {
      throw LogStoreError(error, "create a segment", file: path)
    }
    let segment = PreparedSegment(id: id, file: file, reserved: count)
    do throws(SystemError) {
      try file.reserve(offset: 0, count: count)
    } catch {
      remove(segment)
      throw LogStoreError(error, "create a segment", file: path)
    }
    do throws(SystemError) {
      try engine.directory.synchronizeDirectory()
    } catch {
      guard error.isTooManyFiles else { throw unknown(error, "sync a new segment's entry", path) }
      // The directory could not even be opened.
      remove(segment)
      throw LogStoreError(error, "sync a new segment's entry", file: path)
    }
    return segment
  }

  /// Gives the prepared segment's space back, because something else needs it now. False if there is
  /// none. Called by the leader.
  ///
  /// Another one is not prepared before the active segment is full.
  func giveUpPrepared() -> Bool {
    guard let prepared else { return false }
    self.prepared = nil
    remove(prepared)
    return true
  }

  /// The same for a store that has become quiet: it may stay so for long, and a writer that is not
  /// in a hurry can wait for a sync. Blocks.
  package func giveUpPreparedWhenIdle() {
    queue.exclusivelyByAnyLeader { [self] in _ = giveUpPrepared() }
  }

  /// The same for work off the commit path that failed with `error`: true if it is worth another
  /// attempt. Blocks.
  package func makesRoom(after error: LogStoreError) -> Bool {
    guard error.code == .noSpace else { return false }
    let hasMadeRoom = Locked(false)
    queue.exclusivelyByAnyLeader { [self] in
      let hasGivenUp = giveUpPrepared()
      hasMadeRoom.withLock { $0 = hasGivenUp }
    }
    return hasMadeRoom.withLock { $0 }
  }

  /// No commit is in it: it goes away, or is an orphan that the next open removes.
  func remove(_ segment: PreparedSegment) {
    try? engine.directory.remove(engine.directory.segment(segment.id))
  }
}
