/// Chooses which neighbouring sealed segments are worth compacting.
///
/// Two reasons: *garbage*, superseded records that take space; and *tiers*, many small neighbours
/// that every lookup has to ask. A rewrite costs the live bytes and gains the dead ones, so that with
/// the thresholds here constant uniform updates end near 1.5 times the live size at a write
/// amplification of about 3 (Rosenblum and Ousterhout, "The Design and Implementation of a
/// Log-Structured File System", 1992, on cost and benefit of cleaning).
package struct CompactionPlan: Sendable, Equatable {
  /// File ids in log order.
  package var segments: [UInt64]
  package var bytes: UInt64
  /// An estimate: records are taken to be of one size.
  package var garbageBytes: UInt64

  /// How eagerly garbage is collected.
  package enum Urgency: Sendable {
    /// While commits come in.
    case busy
    /// When nothing else is to be done.
    case idle
    /// On demand: everything.
    case everything
  }

  /// The bounds of a compacted segment.
  package static let maximumBytes: UInt64 = 256 << 20
  package static let maximumRecords: UInt64 = 262_144
  /// So many neighbours of one tier are merged.
  package static let fanIn = 4

  /// A sealed segment, as far as the choice depends on it.
  package struct Candidate: Sendable, Hashable {
    package var id: UInt64
    package var bytes: UInt64
    package var records: UInt64
    package var live: UInt64

    package init(id: UInt64, bytes: UInt64, records: UInt64, live: UInt64) {
      self.id = id
      self.bytes = bytes
      self.records = records
      self.live = live
    }

    package var garbage: UInt64 {
      records == 0 ? 0 : UInt64(Double(bytes) * Double(records - live) / Double(records))
    }
  }

  /// The best plan, or nil if nothing is worth it.
  package static func choose(_ state: Published, _ urgency: Urgency) -> CompactionPlan? {
    let candidates = state.sealed.map { sealed in
      let info = sealed.segment.info
      return Candidate(
        id: info.fileId, bytes: info.length + info.indexLength, records: info.recordCount,
        live: info.entryCount - sealed.dead.count)
    }
    return choose(candidates, urgency)
  }

  package static func choose(_ candidates: [Candidate], _ urgency: Urgency) -> CompactionPlan? {
    let total = candidates.reduce(0) { $0 + $1.bytes }
    let garbage = candidates.reduce(0) { $0 + $1.garbage }
    let threshold: Double
    switch urgency {
    case .busy: threshold = 0.4
    case .idle: threshold = Double(garbage) > 0.06 * Double(total) ? 0.05 : 0.4
    case .everything: threshold = 0
    }
    return garbageRun(candidates, threshold) ?? tier(candidates)
  }

  /// The run with the most garbage whose every segment has at least the threshold's part of it.
  private static func garbageRun(
    _ candidates: [Candidate], _ threshold: Double
  ) -> CompactionPlan? {
    var best: CompactionPlan?
    var run: [Candidate] = []
    func close() {
      guard !run.isEmpty else { return }
      let plan = plan(run)
      if plan.garbageBytes > best?.garbageBytes ?? 0 { best = plan }
      run = []
    }
    for candidate in candidates {
      if candidate.garbage == 0 || Double(candidate.garbage) < threshold * Double(candidate.bytes) {
        close()
        continue
      }
      let live = run.reduce(candidate.live) { $0 + $1.live }
      let liveBytes = run.reduce(candidate.bytes - candidate.garbage) {
        $0 + $1.bytes - $1.garbage
      }
      if live > maximumRecords || liveBytes > maximumBytes { close() }
      run.append(candidate)
    }
    close()
    return best
  }

  /// Neighbours of about one size that make a larger one.
  private static func tier(_ candidates: [Candidate]) -> CompactionPlan? {
    guard candidates.count >= fanIn else { return nil }
    for start in 0...(candidates.count - fanIn) {
      let run = Array(candidates[start..<(start + fanIn)])
      let largest = run.map(\.live).max() ?? 0
      let sum = run.reduce(0) { $0 + $1.live }
      let bytes = run.reduce(0) { $0 + $1.bytes - $1.garbage }
      // The largest must not be most of the result, or it would be copied again and again.
      if 2 * largest <= sum, sum <= maximumRecords, bytes <= maximumBytes { return plan(run) }
    }
    return nil
  }

  private static func plan(_ run: [Candidate]) -> CompactionPlan {
    CompactionPlan(
      segments: run.map(\.id), bytes: run.reduce(0) { $0 + $1.bytes },
      garbageBytes: run.reduce(0) { $0 + $1.garbage })
  }
}
