internal import Dispatch

/// Where the engine's work off the commit path runs.
package protocol Scheduler: Sendable {
  /// Runs a job soon, off the caller's thread. Jobs run one at a time, in order.
  func schedule(_ job: @escaping @Sendable () -> Void)

  /// Runs a job after about so many milliseconds.
  func schedule(afterMilliseconds delay: Int, _ job: @escaping @Sendable () -> Void)

  /// Called by a thread that waits for a job: runs one on this thread if that is how the scheduler
  /// works. False if there was nothing to do.
  func help() -> Bool
}

/// Jobs on a queue of their own.
package struct QueueScheduler: Scheduler {
  private let queue: DispatchQueue

  package init(label: String) {
    queue = DispatchQueue(label: label, qos: .utility)
  }

  package func schedule(_ job: @escaping @Sendable () -> Void) {
    queue.async(execute: job)
  }

  package func schedule(afterMilliseconds delay: Int, _ job: @escaping @Sendable () -> Void) {
    queue.asyncAfter(deadline: .now() + .milliseconds(delay), execute: job)
  }

  package func help() -> Bool { false }
}

/// Jobs kept until somebody asks for them: for runs that must be the same each time.
package final class ManualScheduler: Scheduler {
  private let jobs = Locked<[@Sendable () -> Void]>([])

  package init() {}

  package func schedule(_ job: @escaping @Sendable () -> Void) {
    jobs.withLock { $0.append(job) }
  }

  package func schedule(afterMilliseconds delay: Int, _ job: @escaping @Sendable () -> Void) {
    schedule(job)
  }

  package func help() -> Bool {
    guard let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { return false }
    job()
    return true
  }

  /// Runs all jobs, also those that jobs add.
  package func run() {
    while help() {}
  }
}
