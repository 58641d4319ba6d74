/// Chooses which neighbouring sealed segments are worth compacting.
///
/// Two reasons: *garbage*, what a compaction would leave out; and *tiers*, many small neighbours
/// that every lookup has to ask. A rewrite costs the live bytes and gains the dead ones: where each
/// segment that is rewritten has at least a part `g` of garbage, `1 / g` bytes are written for each byte
/// of updates, the update among them, and no more than `g` of the store is garbage if the cleaner keeps
/// up (Rosenblum and Ousterhout, "The Design and Implementation of a Log-Structured File System", 1992,
/// on cost and benefit of cleaning). What is being written is there twice, so that while commits come
/// in it is done in small steps.
package struct CompactionPlan: Sendable, Equatable {
  /// File ids in log order.
  package var segments: [UInt64]
  package var bytes: UInt64
  /// An estimate: records are taken to be of one size.
  package var garbageBytes: UInt64

  /// What the output takes: the scratch space that is needed until the inputs can go.
  package var outputBytes: UInt64 { bytes - garbageBytes }

  /// How eagerly garbage is collected.
  package enum Urgency: Sendable {
    /// While commits come in.
    case busy
    /// When nothing else is to be done.
    case idle
    /// On demand: everything.
    case everything
  }

  /// When a rewrite is worth it, and how large it may become.
  package struct Rules: Sendable {
    /// The part of a segment that must be garbage for it to be rewritten while commits come in.
    package var garbageRatio = 0.3
    /// The part of the store that may be garbage when nothing else is to be done.
    package var idleGarbageRatio = 0.06
    /// The bounds of a compacted segment. Memory goes with its records.
    package var maximumBytes: UInt64 = 256 << 20
    package var maximumRecords: UInt64 = 262_144
    /// While commits come in several segments are only compacted together if the result has at most
    /// this part of the store's bytes, or of `smallBytes`.
    package var busyPart = 0.125
    package var smallBytes: UInt64 = 32 << 20
    /// So many neighbours of one tier are merged.
    package var fanIn = 4
    /// The space that an output may take.
    package var scratchBytes = UInt64.max

    package init() {}

    fileprivate func whileBusy(_ bytes: UInt64) -> Rules {
      var rules = self
      let step = UInt64(busyPart * Double(max(bytes, smallBytes)))
      rules.maximumBytes = min(maximumBytes, step)
      return rules
    }

    fileprivate func allow(_ run: [Candidate]) -> Bool {
      run.reduce(0) { $0 + $1.live } <= maximumRecords
        && run.reduce(0) { $0 + $1.bytes - $1.garbage } <= min(maximumBytes, scratchBytes)
    }
  }

  /// A sealed segment, as far as the choice depends on it.
  package struct Candidate: Sendable, Hashable {
    package var id: UInt64
    package var bytes: UInt64
    package var records: UInt64
    /// Of the records those that a compaction would keep.
    package var live: UInt64
    /// Bytes that only the frames of small commits take, and packed ones do not.
    package var framing: UInt64
    /// Whether other segments cannot be cleaned before this one.
    package var isWanted = false

    package init(id: UInt64, bytes: UInt64, records: UInt64, live: UInt64, framing: UInt64 = 0) {
      self.id = id
      self.bytes = bytes
      self.records = records
      self.live = live
      self.framing = min(framing, bytes)
    }

    package var garbage: UInt64 { framing + supersededBytes }

    /// What of the garbage is records, about.
    var supersededBytes: UInt64 {
      if records == 0 { return 0 }
      let part = Double(records - live) / Double(records)
      return UInt64(Double(bytes - framing) * part)
    }
  }

  /// The best plan, or nil if nothing is worth it.
  package static func choose(
    _ candidates: [Candidate], _ urgency: Urgency, _ rules: Rules = Rules()
  ) -> CompactionPlan? {
    let total = candidates.reduce(0) { $0 + $1.bytes }
    let garbage = candidates.reduce(0) { $0 + $1.garbage }
    let threshold: Double
    var rules = rules
    switch urgency {
    case .busy:
      threshold = rules.garbageRatio
      rules = rules.whileBusy(total)
    case .idle:
      threshold =
        Double(garbage) > rules.idleGarbageRatio * Double(total)
        ? min(0.05, rules.idleGarbageRatio) : rules.garbageRatio
    case .everything: threshold = 0
    }
    let runs = garbageRuns(candidates, threshold, rules)
    // On demand from the oldest on, since what it holds can keep tombstones of later ones.
    let best =
      urgency == .everything ? runs.first : runs.max { $0.garbageBytes < $1.garbageBytes }
    return best ?? tier(candidates, rules)
  }

  /// The runs whose every segment has at least the threshold's part of garbage.
  private static func garbageRuns(
    _ candidates: [Candidate], _ threshold: Double, _ rules: Rules
  ) -> [CompactionPlan] {
    var result: [CompactionPlan] = []
    var run: [Candidate] = []
    func close() {
      if !run.isEmpty { result.append(plan(run)) }
      run = []
    }
    for candidate in candidates {
      let isWorthIt =
        candidate.garbage > 0
        && (candidate.isWanted
          || Double(candidate.garbage) >= threshold * Double(candidate.bytes))
      guard isWorthIt, candidate.bytes - candidate.garbage <= rules.scratchBytes else {
        close()
        continue
      }
      if !rules.allow(run + [candidate]) { close() }
      run.append(candidate)
    }
    close()
    return result
  }

  /// Neighbours of about one size that make a larger one.
  private static func tier(_ candidates: [Candidate], _ rules: Rules) -> CompactionPlan? {
    guard candidates.count >= rules.fanIn else { return nil }
    for start in 0...(candidates.count - rules.fanIn) {
      let run = Array(candidates[start..<(start + rules.fanIn)])
      let largest = run.map(\.live).max() ?? 0
      let sum = run.reduce(0) { $0 + $1.live }
      // The largest must not be most of the result, or it would be copied again and again.
      if 2 * largest <= sum, rules.allow(run) { return plan(run) }
    }
    return nil
  }

  private static func plan(_ run: [Candidate]) -> CompactionPlan {
    CompactionPlan(
      segments: run.map(\.id), bytes: run.reduce(0) { $0 + $1.bytes },
      garbageBytes: run.reduce(0) { $0 + $1.garbage })
  }
}
