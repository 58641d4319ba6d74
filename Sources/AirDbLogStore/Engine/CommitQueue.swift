internal import Dispatch

/// One batch on its way into the log.
///
/// `@unchecked Sendable`: `outcome` is only touched inside the queue's monitor; the rest is constant.
package final class CommitRequest: @unchecked Sendable {
  package let batch: PreparedBatch
  fileprivate var outcome: Result<CommitOutcome, LogStoreError>?
  /// Who waits for it, if it is a task; else a thread waits.
  fileprivate let continuation: CheckedContinuation<Result<CommitOutcome, LogStoreError>, Never>?

  fileprivate init(
    _ batch: PreparedBatch,
    _ continuation: CheckedContinuation<Result<CommitOutcome, LogStoreError>, Never>? = nil
  ) {
    self.batch = batch
    self.continuation = continuation
  }
}

/// What became of a batch.
package struct CommitOutcome: Sendable {
  package var accepted = 0
  package var superseded = 0
  package var conflictingTies = 0
  /// The end of the log with this commit; nil if the batch was wholly stale.
  package var end: LogEnd?
}

/// Group commit: batches that arrive while one group is written and synced form the next group.
///
/// Whoever finds nobody at work leads: a thread that calls ``commit(_:)`` leads on itself, so that a
/// lone writer never changes threads; batches of tasks are led by a queue of the store.
package final class CommitQueue: @unchecked Sendable {
  // `@unchecked Sendable`: the variables are only touched inside `monitor`.
  private let monitor = Monitor()
  private var waiting: [CommitRequest] = []
  private var isLed = false
  private var isDrainScheduled = false
  /// What is to be done when no batch is half way.
  private var jobs: [@Sendable () -> Void] = []
  private let queue = DispatchQueue(label: "airdb.log.commit", qos: .userInitiated)
  /// Makes a group of batches durable. Called by one leader at a time.
  private let lead: @Sendable ([CommitRequest]) -> Void

  package init(lead: @escaping @Sendable ([CommitRequest]) -> Void) {
    self.lead = lead
  }

  /// Commits on this thread, or waits for the thread that does.
  package func commit(_ batch: PreparedBatch) -> Result<CommitOutcome, LogStoreError> {
    let request = CommitRequest(batch)
    let group: [CommitRequest] = monitor.withLock {
      waiting.append(request)
      while isLed, request.outcome == nil { monitor.wait() }
      if request.outcome != nil { return [] }
      isLed = true
      return takeWaiting()
    }
    if !group.isEmpty {
      lead(group)
      release()
    }
    return monitor.withLock { request.outcome! }
  }

  /// Commits off the cooperative pool.
  package func commit(_ batch: PreparedBatch) async -> Result<CommitOutcome, LogStoreError> {
    await withCheckedContinuation { continuation in
      monitor.withLock {
        waiting.append(CommitRequest(batch, continuation))
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
    post { [self] in
      body()
      isDone.withLock { $0 = true }
      monitor.withLock { monitor.signalAll() }
    }
    monitor.withLock { while !isDone.withLock({ $0 }) { monitor.wait() } }
  }

  /// Does the posted jobs. Called by the leader, at points where no batch is half way.
  package func doPostedJobs() {
    while let job = monitor.withLock({ jobs.isEmpty ? nil : jobs.removeFirst() }) { job() }
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

  private func takeWaiting() -> [CommitRequest] {
    defer { waiting = [] }
    return waiting
  }

  private func scheduleDrainIfNeeded() {
    guard !isLed, !isDrainScheduled else { return }
    isDrainScheduled = true
    queue.async { self.drain() }
  }

  private func drain() {
    let group: [CommitRequest] = monitor.withLock {
      isDrainScheduled = false
      if isLed || waiting.isEmpty { return [] }
      isLed = true
      return takeWaiting()
    }
    guard !group.isEmpty else { return }
    lead(group)
    release()
  }
}
