/// Runs compactions: by itself in the background, and on demand. One at a time.
///
/// `@unchecked Sendable`: the variables are only touched inside `monitor`.
package final class Cleaner: @unchecked Sendable {
  private let writer: Writer
  private let scheduler: (any Scheduler)?
  private let policy: CleaningPolicy
  private let monitor = Monitor()
  private var isRunning = false
  private var isStopped = false
  private var isScheduled = false
  private var isIdleCheckScheduled = false
  /// When it looks for what is old enough to go, if that is scheduled.
  private var agingDate: Int64?

  private var engine: Engine { writer.engine }

  /// Without a scheduler it compacts on demand only.
  package init(_ writer: Writer, scheduler: (any Scheduler)?) {
    self.writer = writer
    policy = writer.engine.options.cleaning
    self.scheduler = policy.isAutomatic ? scheduler : nil
  }

  // MARK: By itself

  /// There is a new sealed segment, or much of the others has been superseded.
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

  /// Something was committed, or consumers need less, or the store was opened: look again when it has
  /// become quiet.
  package func considerIdle() {
    guard let scheduler else { return }
    let isNew = monitor.withLock { () -> Bool in
      if isStopped || isIdleCheckScheduled { return false }
      isIdleCheckScheduled = true
      return true
    }
    guard isNew else { return }
    let end = engine.published.withLock { $0.end.sequence }
    scheduler.schedule(afterMilliseconds: policy.idleMilliseconds) { [weak self] in
      self?.checkIdle(since: end)
    }
  }

  private func checkIdle(since sequence: UInt64) {
    let mayGoOn = monitor.withLock { () -> Bool in
      isIdleCheckScheduled = false
      return !isStopped
    }
    guard mayGoOn else { return }
    guard engine.published.withLock({ $0.end.sequence }) == sequence else {
      considerIdle()
      return
    }
    cleanIdle()
  }

  private func cleanIdle() {
    do throws(LogStoreError) {
      try writer.rollIfMostlyDead(keeping: engine.expectedRetention())
    } catch {
      report(error)
    }
    writer.giveUpPreparedWhenIdle()
    clean(.idle)
  }

  private func clean(_ urgency: CompactionPlan.Urgency) {
    monitor.withLock { isScheduled = false }
    do throws(LogStoreError) {
      _ = try run(urgency, isCancelled: { false })
      try considerAging()
    } catch {
      report(error)
    }
  }

  /// Looks again when something that is kept now has become too old to be kept.
  private func considerAging() throws(LogStoreError) {
    guard let scheduler, let date = try engine.nextAging() else { return }
    let isNew = monitor.withLock { () -> Bool in
      if isStopped || agingDate.map({ $0 <= date }) ?? false { return false }
      agingDate = date
      return true
    }
    guard isNew else { return }
    let left = date - engine.platform.wallClockMilliseconds()
    // The wall clock may be moved, or go on while the device sleeps.
    let delay = min(max(left, 1), Self.longestDelay)
    scheduler.schedule(afterMilliseconds: Int(delay)) { [weak self] in self?.checkAging(date) }
  }

  private static let longestDelay: Int64 = 3_600_000

  private func checkAging(_ date: Int64) {
    let mayGoOn = monitor.withLock { () -> Bool in
      // An earlier date has taken the place of this one.
      guard agingDate == date else { return false }
      agingDate = nil
      return !isStopped
    }
    guard mayGoOn else { return }
    if engine.platform.wallClockMilliseconds() >= date {
      cleanIdle()
    } else {
      do throws(LogStoreError) {
        try considerAging()
      } catch {
        report(error)
      }
    }
  }

  /// A store that ends meanwhile is no failure.
  private func report(_ error: LogStoreError) {
    if error.code != .cancelled, error.code != .closed { engine.report(.failed(error)) }
  }

  // MARK: On demand

  /// Compacts until nothing is left that is worth it.
  package func run(
    _ urgency: CompactionPlan.Urgency, isCancelled: @escaping @Sendable () -> Bool,
    progress: (@Sendable (Double) -> Void)? = nil
  ) throws(LogStoreError) -> Compactor.Outcome {
    try begin()
    defer {
      writer.brake.withLock { $0 = 0 }
      monitor.withLock {
        isRunning = false
        monitor.signalAll()
      }
    }
    let isOver: @Sendable () -> Bool = { [self] in
      isCancelled() || monitor.withLock { isStopped }
    }
    var shortage: LogStoreError?
    if urgency == .everything {
      do throws(LogStoreError) {
        try writer.rollIfCleanable(keeping: engine.expectedRetention())
      } catch {
        guard error.code == .noSpace else { throw error }
        shortage = error
      }
    }
    let progress = progress.map { CompactionProgress($0) }
    try progress?.expect(engine.compactionEstimate().bytesToRead)
    // Who asks for it waits for it.
    let pace = urgency == .everything ? nil : Pace(writer, policy, isCancelled: isOver)
    let control = Compactor.Control(isCancelled: isOver) { bytes in
      progress?.add(bytes)
      pace?.spend(bytes)
    }
    var result = try run(urgency, control, pace)
    if let shortage {
      // What has been cleaned may have made the room for the rest.
      if result.segments == 0 { throw shortage }
      engine.waitForScheduled()
      try writer.rollIfCleanable(keeping: engine.expectedRetention())
      result.add(try run(urgency, control, pace))
    }
    progress?.finish()
    return result
  }

  private func run(
    _ urgency: CompactionPlan.Urgency, _ control: Compactor.Control, _ pace: Pace?
  ) throws(LogStoreError) -> Compactor.Outcome {
    var result = Compactor.Outcome()
    var rules = engine.compactionRules
    // Each segment is rewritten at most once, so that it ends beside a busy writer.
    var fresh = Set<UInt64>()
    while true {
      let survey = try CompactionSurvey(engine, keeping: try engine.expectedRetention())
      let candidates = try survey.candidates()
      pace?.adapt(to: candidates, in: survey.state)
      let plan = CompactionPlan.choose(
        candidates.map { fresh.contains($0.id) ? $0.withoutGarbage : $0 }, urgency, rules)
      guard let plan, fresh.isDisjoint(with: plan.segments) else { return result }
      let found: Compactor.Outcome?
      do throws(LogStoreError) {
        found = try Compactor(writer, keeping: try engine.retention(), control)
          .compact(plan.segments)
      } catch {
        // On a nearly full disk less at a time may fit, and make room for more.
        guard error.code == .noSpace, plan.outputBytes > 0 else { throw error }
        rules.scratchBytes = plan.segments.count > 1 ? plan.outputBytes / 2 : plan.outputBytes - 1
        guard CompactionPlan.choose(candidates, urgency, rules) != nil else { throw error }
        continue
      }
      // A consumer asks for more: what is worth it has to be looked at again.
      guard let outcome = found else { continue }
      if rules.scratchBytes < .max {
        // What has been replaced makes room when it is removed.
        engine.waitForScheduled()
        rules.scratchBytes = .max
      }
      if let id = outcome.output { fresh.insert(id) }
      result.add(outcome)
      engine.report(
        .compacted(
          segments: outcome.segments, bytesBefore: outcome.bytesBefore,
          bytesAfter: outcome.bytesAfter))
    }
  }

  private func begin() throws(LogStoreError) {
    let mayRun = monitor.withLock { () -> Bool in
      while isRunning, !isStopped { monitor.wait() }
      if isStopped { return false }
      isRunning = true
      return true
    }
    guard mayRun else {
      throw LogStoreError(.closed, "The store has been closed.")
    }
  }

  /// Ends the compaction under way, which changes nothing then, and lets none begin.
  package func stop() {
    monitor.withLock {
      isStopped = true
      monitor.signalAll()
      while isRunning { monitor.wait() }
    }
  }
}

extension Engine {
  /// A compacted segment has at most as many records as four sealed ones, which bounds the memory
  /// that it takes to make one.
  var compactionRules: CompactionPlan.Rules {
    var rules = CompactionPlan.Rules()
    rules.garbageRatio = options.cleaning.garbageRatio
    rules.idleGarbageRatio = options.cleaning.idleGarbageRatio
    rules.maximumRecords = UInt64(max(options.segmentRecords, 1)) * UInt64(rules.fanIn)
    return rules
  }

  /// Waits until what has been scheduled is done.
  func waitForScheduled() {
    let monitor = Monitor()
    let isDone = Locked(false)
    scheduler.schedule {
      isDone.withLock { $0 = true }
      monitor.withLock { monitor.signalAll() }
    }
    while !isDone.withLock({ $0 }) {
      if scheduler.help() { continue }
      monitor.withLock { if !isDone.withLock({ $0 }) { monitor.wait() } }
    }
  }
}

/// How fast a run in the background goes, and how much writers are held back for it.
private final class Pace: Sendable {
  private let writer: Writer
  private let throttle: Throttle?
  private let pressure = Locked<CleaningPressure?>(nil)

  init(_ writer: Writer, _ policy: CleaningPolicy, isCancelled: @escaping @Sendable () -> Bool) {
    self.writer = writer
    throttle = policy.bytesPerSecond.map {
      Throttle(writer.engine.platform, bytesPerSecond: $0, isCancelled: isCancelled)
    }
  }

  /// Before each step: what there is to clean.
  func adapt(to candidates: [CompactionPlan.Candidate], in state: Published) {
    pressure.withLock {
      $0 = CleaningPressure(
        candidates, in: state, segmentBytes: writer.engine.options.segmentBytes)
    }
    _ = level()
  }

  /// So many bytes have been done.
  func spend(_ bytes: Int) {
    if level() == 0 { throttle?.spend(bytes) }
  }

  private func level() -> Double {
    let state = writer.engine.snapshot
    let level = pressure.withLock { $0?.level(in: state) ?? 0 }
    writer.brake.withLock { $0 = level }
    return level
  }
}

/// Tells how far a run has come, by the bytes of what is replaced.
private final class CompactionProgress: Sendable {
  private let report: @Sendable (Double) -> Void
  private let state = Locked((expected: UInt64(0), done: UInt64(0)))

  init(_ report: @escaping @Sendable (Double) -> Void) { self.report = report }

  func expect(_ bytes: UInt64) { state.withLock { $0.expected = bytes } }

  func add(_ bytes: Int) {
    let part = state.withLock { state in
      state.done += UInt64(bytes)
      return Double(state.done) / Double(max(state.expected, 1))
    }
    report(min(part, 1))
  }

  func finish() { report(1) }
}

extension CompactionPlan.Candidate {
  fileprivate var withoutGarbage: CompactionPlan.Candidate {
    CompactionPlan.Candidate(id: id, bytes: bytes - garbage, records: live, live: live)
  }
}

extension Compactor.Outcome {
  fileprivate mutating func add(_ outcome: Compactor.Outcome) {
    segments += outcome.segments
    bytesBefore += outcome.bytesBefore
    bytesAfter += outcome.bytesAfter
    recordsDropped += outcome.recordsDropped
    tombstonesPurged += outcome.tombstonesPurged
  }
}
