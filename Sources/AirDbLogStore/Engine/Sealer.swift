package import HlcText

/// Seals a segment off the commit path: builds its index, brings the liveness and the manifest up
/// to date. And the last part of that for a close.
package struct Sealer {
  private let engine: Engine

  package init(_ engine: Engine) { self.engine = engine }

  /// A full segment that gets no more frames.
  package struct Job: Sendable {
    package var log: RowLog
    package var file: OpenFile
    package var firstSequence: UInt64
    package var state: LogState
  }

  /// What a manifest says of the log up to a commit.
  package struct LogState: Sendable {
    package var end: LogEnd
    package var commitDate: Int64
    package var greatestHlc: String?
    package var physicalKind: HlcPhysicalKind?
  }

  package enum Outcome: Sendable {
    /// Listed in the manifest. For each rank of its index the row that it stands for.
    case sealed(SealedSegment, rowOfRank: [UInt32])
    /// Nothing has changed if another attempt may succeed; otherwise the outcome is unknown.
    case failed(LogStoreError, isRetryable: Bool)
  }

  package func seal(_ job: Job) -> Outcome {
    do throws(LogStoreError) {
      return try sealing(job)
    } catch {
      return .failed(error, isRetryable: error.code != .outcomeUnknown)
    }
  }

  private func sealing(_ job: Job) throws(LogStoreError) -> Outcome {
    let directory = engine.directory
    let id = job.state.end.segment
    // Recovery 5: the segment, its index, the liveness, the directory, the manifest.
    try syncing("shorten a full segment", directory.segment(id)) { () throws(SystemError) in
      // What was reserved behind the last frame is given back.
      try job.file.truncate(to: job.state.end.length)
    }
    do throws(SystemError) {
      try job.file.synchronize()
    } catch {
      // Whatever the reason: this sync must not be repeated.
      throw LogStoreError(
        .outcomeUnknown, "Could not sync a full segment: \(error.description).",
        file: directory.segment(id), errno: error.errno)
    }
    engine.published.withLock { state in
      if state.durableEnd.sequence < job.state.end.sequence { state.durableEnd = job.state.end }
    }
    let rows = job.log.snapshot()
    let manifest = engine.manifest.value
    let index = IndexBuilder.build(
      rows,
      IndexBuilder.Segment(
        storeId: manifest.storeId, fileId: id, length: job.state.end.length,
        firstSequence: job.firstSequence, lastSequence: job.state.end.sequence,
        lastChecksum: job.state.end.checksum))
    try syncing("write an index", directory.index(id)) { () throws(SystemError) in
      try directory.writeSynced(index.bytes.bytes, to: directory.newIndex(id))
      try directory.rename(directory.newIndex(id), to: directory.index(id))
    }
    let info = Manifest.Segment(
      fileId: id, length: job.state.end.length, firstSequence: job.firstSequence,
      lastSequence: job.state.end.sequence, lastChecksum: job.state.end.checksum,
      indexChecksum: index.headerChecksum, recordCount: index.header.recordCount,
      entryCount: index.header.entryCount, deadCount: 0,
      indexLength: UInt64(index.bytes.count), lastCommitDate: job.state.commitDate)
    let predecessor = engine.snapshot.sealed.last.map { sealed in
      LogEnd(
        segment: sealed.segment.info.fileId, length: sealed.segment.info.length,
        sequence: sealed.segment.info.lastSequence, checksum: sealed.segment.info.lastChecksum)
    }
    try writeManifest(job.state, adding: info)
    return .sealed(
      SealedSegment(info, predecessor: predecessor ?? LogEnd()), rowOfRank: index.rowOfRank)
  }

  /// The manifest of a close: the log ends where it is durable, and the liveness reflects all of it.
  package func writeClosingManifest(_ log: LogState) throws(LogStoreError) {
    try writeManifest(log, adding: nil)
  }

  /// Writes the liveness and a manifest as of a durable end of the log, which is the last commit
  /// of the segment that is added, or of all.
  private func writeManifest(
    _ log: LogState, adding info: Manifest.Segment?
  ) throws(LogStoreError) {
    // Before anything is added: what was superseded in earlier sessions must be known.
    try engine.loadLiveness()
    let directory = engine.directory
    let before = engine.manifest.value
    let state = engine.snapshot
    var segments = before.segments
    var dead = liveness(state, adding: info)
    if let info { segments.append(info) }
    for (index, bits) in dead.enumerated() { segments[index].deadCount = bits.count }
    if !dead.contains(where: { $0.count > 0 }) { dead = [] }
    var old: UInt64 = 0
    let path = directory.manifest
    try engine.manifest.update(
      { (manifest) throws(LogStoreError) in
        old = manifest.livenessGeneration
        manifest.segments = segments
        manifest.livenessSequence = log.end.sequence
        manifest.livenessGeneration = 0
        manifest.livenessLength = 0
        manifest.livenessChecksum = 0
        if !dead.isEmpty {
          let (bytes, checksum) = LivenessFile.encode(
            generation: manifest.generation, sequence: log.end.sequence, storeId: manifest.storeId,
            segments: zip(segments, dead).map { ($0.fileId, $1) })
          manifest.livenessGeneration = manifest.generation
          manifest.livenessLength = UInt64(bytes.count)
          manifest.livenessChecksum = checksum
          let file = directory.liveness(manifest.generation)
          try syncing("write the liveness", file) { () throws(SystemError) in
            try withBytes(of: bytes) { (bytes) throws(SystemError) in
              try directory.writeSynced(bytes, to: file)
            }
          }
        }
        try syncing("sync the store's directory", directory.path) { () throws(SystemError) in
          try directory.synchronizeDirectory()
        }
        manifest.end = log.end
        manifest.lastCommitDate = log.commitDate
        manifest.greatestHlc = Array((log.greatestHlc ?? "").utf8)
        manifest.hlcPhysicalKind = log.physicalKind?.rawValue ?? 0
      },
      orElse: { failure in
        switch failure {
        case .notWritten(let error): Self.failure(error, "write the manifest", path)
        case .unknown(let error):
          LogStoreError(
            .outcomeUnknown, "Could not replace the manifest: \(error.description).", file: path,
            errno: error.errno)
        }
      })
    if old > 0 { try? directory.remove(directory.liveness(old)) }
  }

  /// The bitmaps of all sealed segments, and of the one being added, without what later
  /// segments superseded: their commits might still be lost.
  private func liveness(_ state: Published, adding info: Manifest.Segment?) -> [DeadBits] {
    var dead = state.sealed.map(\.dead)
    guard let info else { return dead }
    let places = Dictionary(
      uniqueKeysWithValues: state.sealed.enumerated().map { ($1.segment.info.fileId, $0) })
    for log in state.tail where log.fileId != info.fileId {
      for mark in log.supersededEntries {
        if let place = places[mark.segment] { dead[place].remove(mark.rank) }
      }
    }
    dead.append(DeadBits(entryCount: info.entryCount))
    return dead
  }

  private func syncing(
    _ action: String, _ path: String, _ body: () throws(SystemError) -> Void
  ) throws(LogStoreError) {
    do throws(SystemError) {
      try body()
    } catch {
      throw Self.failure(error, action, path)
    }
  }

  /// For want of space, descriptors or permission nothing has happened that another attempt would
  /// not put right: it begins with new files. Anything else may be a failed sync.
  private static func failure(
    _ error: SystemError, _ action: String, _ path: String
  ) -> LogStoreError {
    if error.isNoSpace || error.isTooManyFiles || error.isPermission {
      return LogStoreError(error, action, file: path)
    }
    return LogStoreError(
      .outcomeUnknown, "Could not \(action): \(error.description).", file: path,
      errno: error.errno)
  }
}
