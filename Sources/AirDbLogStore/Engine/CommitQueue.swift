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

  /// Waits, as the leader, until `isDone`; whoever makes it so calls ``wake()``.
  package func wait(until isDone: () -> Bool, help: () -> Bool) {
    while !monitor.withLock({ isDone() }) {
      if help() { continue }
      monitor.withLock { if !isDone() { monitor.wait() } }
    }
  }

  /// Lets those look again who wait for something outside the queue. `change` is made visible to
  /// them.
  package func wake(_ change: () -> Void) {
    monitor.withLock {
      change()
      monitor.signalAll()
    }
  }

  /// Takes the lead if nobody has it, for a body that must not wait. False if somebody leads, who
  /// then has to do it.
  package func tryExclusively(_ body: () -> Void) -> Bool {
    let isFree = monitor.withLock { () -> Bool in
      if isLed { return false }
      isLed = true
      return true
    }
    if isFree {
      body()
      release()
    }
    return isFree
  }

  private func release() {
    monitor.withLock {
      isLed = false
      if waiting.contains(where: { $0.continuation != nil }) { scheduleDrainIfNeeded() }
      monitor.signalAll()
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
