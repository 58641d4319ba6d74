import AirDbLogStore

/// Jobs that wait for a test to let time go by, on its thread.
package final class ClockedScheduler: Scheduler {
  private struct Job: Sendable {
    var due: Int64
    var work: @Sendable () -> Void
  }

  private let clock: SimulatedClock
  private let jobs = Locked<[Job]>([])

  package init(_ clock: SimulatedClock) { self.clock = clock }

  package func schedule(_ job: @escaping @Sendable () -> Void) {
    schedule(afterMilliseconds: 0, job)
  }

  package func schedule(afterMilliseconds delay: Int, _ job: @escaping @Sendable () -> Void) {
    jobs.withLock { $0.append(Job(due: clock.milliseconds + Int64(delay), work: job)) }
  }

  /// Jobs that are still to come.
  package var count: Int { jobs.withLock { $0.count } }

  /// Runs the earliest job that is due; false if there is none.
  package func help() -> Bool {
    guard let job = take(until: clock.milliseconds) else { return false }
    job.work()
    return true
  }

  /// Lets so much time go by, with each job at its time.
  package func advance(milliseconds: Int64) {
    let end = clock.milliseconds + milliseconds
    while let job = take(until: end) {
      clock.milliseconds = max(clock.milliseconds, job.due)
      job.work()
    }
    clock.milliseconds = end
  }

  private func take(until date: Int64) -> Job? {
    jobs.withLock { jobs in
      guard let next = jobs.indices.min(by: { jobs[$0].due < jobs[$1].due }),
        jobs[next].due <= date
      else { return nil }
      return jobs.remove(at: next)
    }
  }
}
