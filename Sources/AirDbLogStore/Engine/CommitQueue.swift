internal import Dispatch

/// One batch on its way into the log.
///
/// `@unchecked Sendable`: `outcome` is only touched inside the queue's monitor; the rest is constant.
package final class CommitRequest: @unchecked Sendable {
  package let work: CommitWork
  fileprivate var outcome: Result<CommitOutcome, LogStoreError>?
  /// Who waits for it, if it is a task; else a thread waits.
  fileprivate let continuation: CheckedContinuation<Result<CommitOutcome, LogStoreError>, Never>?

  fileprivate init(
    _ work: CommitWork,
    _ continuation: CheckedContinuation<Result<CommitOutcome, LogStoreError>, Never>? = nil
  ) {
    self.work = work
    self.continuation = continuation
  }
}

/// What became of a batch.
package struct CommitOutcome: Sendable {
  package var accepted = 0
  package var superseded = 0
  package var conflictingTies = 0
  package var possibleResurrections = 0
  /// The records that the store's clock stamped.
  package var stamped: [ChangeRecord] = []
  /// Whether the condition of a local batch did not hold: nothing was done.
  package var isOvertaken = false
  /// The end of the log with this commit; nil if the batch was wholly stale.
  package var end: LogEnd?
}

/// Group commit: batches that arrive while one group is written and synced form the next group.
///
/// Whoever finds nobody at work leads: a thread that calls ``commit(_:)`` leads on itself, so that a
/// lone writer never changes threads; batches of tasks are led by a queue of the store.
///
/// Writers whose batches were made durable together come back together, but the first of them is
/// there before the others. Would it go ahead alone, they would wait for its sync and for their own,
/// and half of all syncs would serve one batch. So a leader waits for as many batches as the last
/// group had, for at most half the time which that took.
package final class CommitQueue: @unchecked Sendable {
  // `@unchecked Sendable`: the variables are only touched inside `monitor`.
  private let monitor = Monitor()
  private var waiting: [CommitRequest] = []
  private var isLed = false
  private var isDrainScheduled = false
  /// What is to be done when no batch is half way.
  private var jobs: [@Sendable () -> Void] = []
  /// How many of them have been done.
  private var doneJobs: UInt64 = 0
  /// Batches of the last group, and the nanoseconds that leading it took.
  private var lastGroup = (count: 1, nanoseconds: UInt64(0))
  /// Whether the leader waits for more batches.
  private var isGathering = false
  private let gathered = DispatchSemaphore(value: 0)
  private let queue = DispatchQueue(label: "airdb.log.commit", qos: .userInitiated)
  /// Makes a group of batches durable. Called by one leader at a time.
  private let lead: @Sendable ([CommitRequest]) -> Void

  package init(lead: @escaping @Sendable ([CommitRequest]) -> Void) {
    self.lead = lead
  }

  /// Commits on this thread, or waits for the thread that does.
  package func commit(_ work: CommitWork) -> Result<CommitOutcome, LogStoreError> {
    let request = CommitRequest(work)
    let isLeader = monitor.withLock {
      add(request)
      while isLed, request.outcome == nil { monitor.wait() }
      if request.outcome != nil { return false }
      isLed = true
      return true
    }
    if isLeader {
      leadWaiting()
      release()
    }
    return monitor.withLock { request.outcome! }
  }

  /// Commits off the cooperative pool.
  package func commit(_ work: CommitWork) async -> Result<CommitOutcome, LogStoreError> {
    await withCheckedContinuation { continuation in
      monitor.withLock {
        add(CommitRequest(work, continuation))
        scheduleDrainIfNeeded()
      }
    }
  }

  /// Runs `body` while no group is under way. Blocks.
  package func exclusively<Result: ~Copyable, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    monitor.withLock {
      while isLed { monitor.wait() }
      isLed = true
    }
    defer { release() }
    return try body()
  }

  /// Runs `step` while no group is under way, and again after posted jobs have been done, until it
  /// answers true. Blocks; others lead between the steps.
  package func exclusively<Failure: Error>(
    until step: () throws(Failure) -> Bool, help: () -> Bool
  ) throws(Failure) {
    while true {
      // Jobs are done by whoever leads, so that none comes between the step and the look at their
      // number.
      let (isDone, seen) = try exclusively { () throws(Failure) in
        doPostedJobs()
        return (try step(), monitor.withLock { doneJobs })
      }
      if isDone { return }
      while monitor.withLock({ doneJobs == seen }), !help() {
        monitor.withLock { if doneJobs == seen { monitor.wait() } }
      }
    }
  }

  /// Says what became of batches. Their callers go on at once.
  package func complete(_ outcomes: [(CommitRequest, Result<CommitOutcome, LogStoreError>)]) {
    monitor.withLock {
      for (request, outcome) in outcomes { request.outcome = outcome }
      monitor.signalAll()
    }
    for (request, outcome) in outcomes { request.continuation?.resume(returning: outcome) }
  }

  /// Waits, as the leader and with no batch half way, until a posted job has made `isDone` true.
  package func wait(until isDone: () -> Bool, help: () -> Bool) {
    while true {
      doPostedJobs()
      if isDone() { return }
      if help() { continue }
      monitor.withLock { if jobs.isEmpty { monitor.wait() } }
    }
  }

  /// Has a job done when no batch is half way: by whoever leads, at its next safe point, or by this
  /// thread. Does not wait for a leader.
  package func post(_ job: @escaping @Sendable () -> Void) {
    let isFree = monitor.withLock { () -> Bool in
      jobs.append(job)
      monitor.signalAll()
      if isLed { return false }
      isLed = true
      return true
    }
    if isFree { release() }
  }

  /// Runs `body` when no batch is half way, and returns when it has run: on this thread if nobody
  /// leads, else on the leader's, even if that waits for something that the caller holds up.
  package func exclusivelyByAnyLeader(_ body: @escaping @Sendable () -> Void) {
    let isDone = Locked(false)
    post {
      body()
      isDone.withLock { $0 = true }
    }
    monitor.withLock { while !isDone.withLock({ $0 }) { monitor.wait() } }
  }

  /// Does the posted jobs. Called by the leader, at points where no batch is half way.
  package func doPostedJobs() {
    while let job = monitor.withLock({ jobs.isEmpty ? nil : jobs.removeFirst() }) {
      job()
      monitor.withLock {
        doneJobs += 1
        monitor.signalAll()
      }
    }
  }

  /// Ends the lead; what was posted meanwhile is done first.
  private func release() {
    while true {
      doPostedJobs()
      let isReleased = monitor.withLock { () -> Bool in
        guard jobs.isEmpty else { return false }
        isLed = false
        if waiting.contains(where: { $0.continuation != nil }) { scheduleDrainIfNeeded() }
        monitor.signalAll()
        return true
      }
      if isReleased { return }
    }
  }

  /// Only inside `monitor`.
  private func add(_ request: CommitRequest) {
    waiting.append(request)
    if isGathering, waiting.count >= lastGroup.count {
      isGathering = false
      gathered.signal()
    }
  }

  /// Leads a group of what is waiting. Called by the leader.
  private func leadWaiting() {
    gather()
    let group = monitor.withLock {
      defer { waiting = [] }
      return waiting
    }
    guard !group.isEmpty else { return }
    let start = DispatchTime.now().uptimeNanoseconds
    lead(group)
    let end = DispatchTime.now().uptimeNanoseconds
    monitor.withLock { lastGroup = (group.count, end - start) }
  }

  /// A shorter wait would cost more than it gives, and no writer is to notice a longer one.
  private static let patience: ClosedRange<UInt64> = 25_000...1_000_000

  private func gather() {
    let patience = monitor.withLock { () -> UInt64? in
      let patience = min(lastGroup.nanoseconds / 2, Self.patience.upperBound)
      guard waiting.count < lastGroup.count, patience >= Self.patience.lowerBound else {
        return nil
      }
      isGathering = true
      return patience
    }
    guard let patience else { return }
    let outcome = gathered.wait(timeout: .now() + .nanoseconds(Int(patience)))
    let isSignaled = monitor.withLock { () -> Bool in
      defer { isGathering = false }
      return !isGathering
    }
    // The last one came when the time was over: its signal is not for the next group.
    if isSignaled, outcome == .timedOut { gathered.wait() }
  }

  private func scheduleDrainIfNeeded() {
    guard !isLed, !isDrainScheduled else { return }
    isDrainScheduled = true
    queue.async { self.drain() }
  }

  private func drain() {
    let isLeader = monitor.withLock {
      isDrainScheduled = false
      if isLed || waiting.isEmpty { return false }
      isLed = true
      return true
    }
    guard isLeader else { return }
    leadWaiting()
    release()
  }
}
