import AirDbLogStore
import TestSupport

/// Carries such a script out.
final class CompactionRun {
  let script: CompactionScript
  let run: ScriptRun
  private(set) var recordsDropped: UInt64 = 0
  private(set) var emptied = 0
  private(set) var tombstonesPurged: UInt64 = 0
  private(set) var amid = 0

  /// Whether a compaction is under way, or its inputs are still to be removed.
  let isCompacting = Locked(false)

  /// What is to be committed at which call of the compaction under way.
  private let plan: Locked<[(moment: CompactionScript.Moment, batch: [ChangeRecord])]>
  private let action: Locked<(@Sendable ([ChangeRecord]) -> Void)?>

  init(
    _ script: CompactionScript, on files: SimulatedFileSystem,
    watch: @escaping @Sendable (SimulatedFileSystem, SimulatedCall) -> Void = { _, _ in }
  ) {
    self.script = script
    let plan = Locked<[(moment: CompactionScript.Moment, batch: [ChangeRecord])]>([])
    let action = Locked<(@Sendable ([ChangeRecord]) -> Void)?>(nil)
    self.plan = plan
    self.action = action
    run = ScriptRun(script.engineScript, on: files) { files, call in
      watch(files, call)
      let batch = plan.withLock { plan -> [ChangeRecord]? in
        guard let first = plan.first, first.moment.matches(call) else { return nil }
        return plan.removeFirst().batch
      }
      if let batch { action.withLock { $0 }?(batch) }
    }
  }

  func perform() throws {
    for step in script.steps { try perform(step) }
  }

  func perform(_ step: CompactionScript.Step) throws {
    switch step {
    case .compact, .compactAmid: isCompacting.withLock { $0 = true }
    case .step(.pump), .age: break
    case .step: isCompacting.withLock { $0 = false }
    }
    switch step {
    case .step(let step): try run.perform(step)
    case .compact: try compact()
    case .compactAmid(let commits): try compact(amid: commits)
    case .age: run.files.clock.advance(by: 1_000)
    }
  }

  private func compact(
    amid commits: [(moment: CompactionScript.Moment, batch: [ChangeRecord])] = []
  ) throws {
    guard let store = run.store else { return }
    let failures = Locked<[String]>([])
    let durability = try store.effectiveDurability
    let trace = run.trace
    action.withLock {
      $0 = { batch in
        do {
          _ = try trace.withLock { try $0.begin(batch) }
          guard let position = try store.applyAndWait(batch).position else { return }
          try trace.withLock {
            try $0.acknowledge(position.sequence, durably: durability == .powerLoss)
          }
        } catch {
          failures.withLock { $0.append("\(error)") }
        }
      }
    }
    plan.withLock { $0 = commits }
    let before = trace.withLock { $0.newest }
    let result = try store.compact()
    action.withLock { $0 = nil }
    tombstonesPurged += result.tombstonesPurged
    try notePurge(since: before, result)
    recordsDropped += result.recordsDropped
    if result.segments > 0, result.bytesAfter == 0 { emptied += 1 }
    amid += commits.count
    let left = plan.withLock { $0.count }
    let problems = failures.withLock { $0 }
    try expect(left == 0, "\(left) commits found no place in the compaction")
    try expect(problems.isEmpty, "a commit amid a compaction failed: \(problems)")
  }
}

extension CompactionRun {
  /// Takes note of the tombstones that a compaction, now done, has purged, and checks the horizon.
  func notePurge(since before: ReferenceModel, _ result: CompactionResult) throws {
    guard script.isPurging, let store = run.store else { return }
    let known = run.trace.withLock { $0 }
    let kept = Dictionary(
      uniqueKeysWithValues: try store.engine.adapterPage(after: nil, limit: .max).map {
        (ReferenceModel.Key($0), $0.hlcTimestamp)
      })
    let done = known.purgesDone > 0 ? known.purges[known.purgesDone - 1] : nil
    let gone = before.entries.filter { key, entry in
      let timestamp = entry.record.hlcTimestamp
      return entry.record.type == .delete && kept[key] != timestamp
        && done?.tombstones[key] != timestamp
    }
    try expect(
      UInt64(gone.count) == result.tombstonesPurged,
      "\(gone.count) tombstones are gone, \(result.tombstonesPurged) are said to be purged")
    guard !gone.isEmpty else { return }
    var horizon = done?.horizon ?? 0
    var greatest = done.flatMap { ReferenceModel.Time($0.timestamp, format: before.format) }
    var tombstones = done?.tombstones ?? [:]
    for (key, entry) in gone {
      horizon = max(horizon, known.commits[entry.commit].sequence ?? 0)
      greatest = greatest.map { max($0, entry.time) } ?? entry.time
      tombstones[key] = entry.record.hlcTimestamp
    }
    let purge = EngineTrace.Purge(
      horizon: horizon, timestamp: greatest?.text ?? "", tombstones: tombstones)
    run.trace.withLock {
      // What was thought to come has come, maybe in another way.
      $0.purges.removeLast($0.purges.count - $0.purgesDone)
      $0.purges.append(purge)
      $0.purgesDone = $0.purges.count
    }
    _ = try EngineOracle(store).purges(of: run.trace.withLock { $0 })
  }
}
