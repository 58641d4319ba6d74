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
    /// Listed in the manifest. For each row its rank in the index, if it has one.
    case sealed(SealedSegment, rankOfRow: [UInt32])
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
    try Checkpoint.attempt("shorten a full segment", directory.segment(id)) {
      () throws(SystemError) in
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
    try Checkpoint.attempt("write an index", directory.index(id)) { () throws(SystemError) in
      try directory.writeSynced(index.bytes.bytes, to: directory.newIndex(id))
      try directory.rename(directory.newIndex(id), to: directory.index(id))
    }
    let info = Manifest.Segment(
      fileId: id, length: job.state.end.length, firstSequence: job.firstSequence,
      lastSequence: job.state.end.sequence, lastChecksum: job.state.end.checksum,
      indexChecksum: index.headerChecksum, recordCount: index.header.recordCount,
      entryCount: index.header.entryCount, deadCount: 0,
      indexLength: UInt64(index.bytes.count), lastCommitDate: job.state.commitDate)
    try engine.structure.withLock { () throws(LogStoreError) in
      try Checkpoint(engine).write(.sealing(id)) { manifest, _ in
        manifest.segments.append(info)
        manifest.sealedEnd = job.state.end
        job.state.record(in: &manifest)
      }
    }
    let segment = SealedSegment(info, hold: job.log.hold, frames: job.log.frames)
    // The next commit looks keys up in it; what is not read here is read there.
    _ = try? engine.index(of: segment)
    var rankOfRow = [UInt32](repeating: .max, count: rows.rows.count)
    for (rank, row) in index.rowOfRank.enumerated() { rankOfRow[Int(row)] = UInt32(rank) }
    return .sealed(segment, rankOfRow: rankOfRow)
  }

  /// The manifest of a close: the log ends where it is durable, and the liveness reflects all of it.
  package func writeClosingManifest(_ log: LogState) throws(LogStoreError) {
    try engine.structure.withLock { () throws(LogStoreError) in
      try Checkpoint(engine).write(.closing) { manifest, _ in log.record(in: &manifest) }
    }
  }
}

extension Sealer.LogState {
  /// Makes this the durable end of the log, up to which the liveness goes.
  fileprivate func record(in manifest: inout Manifest) {
    manifest.livenessSequence = end.sequence
    // A log that was closed with several unsealed segments, as a copy is, is durable beyond the
    // first one.
    guard manifest.end.sequence <= end.sequence else { return }
    manifest.end = end
    manifest.lastCommitDate = commitDate
    manifest.greatestHlc = Array((greatestHlc ?? "").utf8)
    manifest.hlcPhysicalKind = physicalKind?.rawValue ?? 0
  }
}
