/// Runs compactions: by itself in the background, and on demand. One at a time.
///
/// `@unchecked Sendable`: the variables are only touched inside `monitor`.
package final class Cleaner: @unchecked Sendable {
  private let writer: Writer
  private let scheduler: (any Scheduler)?
  private let monitor = Monitor()
  private var isRunning = false
  private var isStopped = false
  private var isScheduled = false
  /// Commits seen when the idle check was scheduled.
  private var isIdleCheckScheduled = false

  /// After so long without a commit the store counts as idle.
  private static let idleMilliseconds = 2_000

  /// Without a scheduler it compacts on demand only.
  package init(_ writer: Writer, scheduler: (any Scheduler)?) {
    self.writer = writer
    self.scheduler = scheduler
  }

  // MARK: By itself

  /// The sealed segments have changed.
  package func consider() {
    guard let scheduler else { return }
    let isNew = monitor.withLock { () -> Bool in
      if isStopped || isScheduled { return false }
      isScheduled = true
      return true
    }
    if isNew { scheduler.schedule { [weak self] in self?.clean(.busy) } }
    considerIdle()
  }

  /// Something was committed: look again when it has become quiet.
  package func considerIdle() {
    guard let scheduler else { return }
    let isNew = monitor.withLock { () -> Bool in
      if isStopped || isIdleCheckScheduled { return false }
      isIdleCheckScheduled = true
      return true
    }
    guard isNew else { return }
    let end = writer.engine.published.withLock { $0.end.sequence }
    scheduler.schedule(afterMilliseconds: Self.idleMilliseconds) { [weak self] in
      self?.checkIdle(since: end)
    }
  }

  private func checkIdle(since sequence: UInt64) {
    monitor.withLock { isIdleCheckScheduled = false }
    let isQuiet = writer.engine.published.withLock { $0.end.sequence } == sequence
    if isQuiet {
      do throws(LogStoreError) {
        try writer.rollIfMostlyDead()
      } catch {
        writer.engine.report(.failed(error))
      }
      clean(.idle)
    } else {
      considerIdle()
    }
  }

  private func clean(_ urgency: CompactionPlan.Urgency) {
    monitor.withLock { isScheduled = false }
    do throws(LogStoreError) {
      _ = try run(urgency, isCancelled: { false })
    } catch {
      if error.code != .cancelled { writer.engine.report(.failed(error)) }
    }
  }

  // MARK: On demand

  /// Compacts until nothing is left that is worth it.
  package func run(
    _ urgency: CompactionPlan.Urgency, isCancelled: () -> Bool
  ) throws(LogStoreError) -> Compactor.Outcome {
    let mayRun = monitor.withLock { () -> Bool in
      while isRunning { monitor.wait() }
      if isStopped { return false }
      isRunning = true
      return true
    }
    guard mayRun else {
      throw LogStoreError(.closed, "The store has been closed.")
    }
    defer {
      monitor.withLock {
        isRunning = false
        monitor.signalAll()
      }
    }
    try writer.engine.loadLiveness()
    var result = Compactor.Outcome()
    // On demand each segment is rewritten at most once, so that it ends beside a busy writer.
    var fresh = Set<UInt64>()
    while let plan = CompactionPlan.choose(writer.engine.snapshot, urgency) {
      guard fresh.isDisjoint(with: plan.segments) else { break }
      let consumers = try writer.engine.consumers.settled()
      let pinnedAfter = consumers.leastPinned(
        in: writer.engine.snapshot, now: writer.engine.platform.wallClockMilliseconds())
      guard
        let outcome = try Compactor(writer).compact(
          plan.segments,
          keeping: Compactor.Retention(pinnedAfter: pinnedAfter, consumers: consumers),
          isCancelled: { isCancelled() || monitor.withLock { isStopped } })
      else { continue }
      if let id = outcome.output { fresh.insert(id) }
      result.add(outcome)
      writer.engine.report(
        .compacted(
          segments: outcome.segments, bytesBefore: outcome.bytesBefore,
          bytesAfter: outcome.bytesAfter))
      if outcome.bytesAfter >= outcome.bytesBefore, urgency != .everything, outcome.segments < 2 {
        break
      }
    }
    return result
  }

  /// Ends the compaction under way, which changes nothing then, and lets none begin.
  package func stop() {
    monitor.withLock {
      isStopped = true
      while isRunning { monitor.wait() }
    }
  }
}

extension Compactor.Outcome {
  fileprivate mutating func add(_ outcome: Compactor.Outcome) {
    segments += outcome.segments
    bytesBefore += outcome.bytesBefore
    bytesAfter += outcome.bytesAfter
    recordsDropped += outcome.recordsDropped
  }
}
