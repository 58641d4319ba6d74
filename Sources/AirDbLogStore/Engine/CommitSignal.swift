/// Wakes those who wait for commits. It says only that there may be something new: what, they look up
/// themselves. So nothing is buffered, any number of notices is as good as one, and whoever knows of
/// a commit, in this process or from another one, may give a notice.
///
/// Outlives engines: a store has one from its open to its end. Usable from any thread.
package final class CommitSignal: Sendable {
  private struct State {
    /// How many notices there have been.
    var count: UInt64 = 0
    var isFinished = false
    var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    var nextWaiter: UInt64 = 0
  }

  private let state = Locked(State())

  package init() {}

  /// Says that there may be something new. Never waits; whoever waits is resumed outside the lock.
  package func notify() { wake { $0.count &+= 1 } }

  /// Says that nothing comes any more.
  package func finish() { wake { $0.isFinished = true } }

  private func wake(_ change: (inout State) -> Void) {
    let waiters = state.withLock { state in
      change(&state)
      defer { state.waiters.removeAll(keepingCapacity: true) }
      return state.waiters
    }
    for waiter in waiters.values { waiter.resume() }
  }

  /// How many notices there have been: to be taken before a look at what they are about.
  package var count: UInt64 { state.withLock { $0.count } }

  package var isFinished: Bool { state.withLock { $0.isFinished } }

  /// Waits until there have been more notices than `count`, or nothing comes any more, or the task is
  /// cancelled.
  package func wait(past count: UInt64) async {
    let id = state.withLock { state in
      defer { state.nextWaiter += 1 }
      return state.nextWaiter
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let mustWait = state.withLock { state in
          // A cancellation that comes later finds the waiter; one that came before is seen here.
          if state.count != count || state.isFinished || Task.isCancelled { return false }
          state.waiters[id] = continuation
          return true
        }
        if !mustWait { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: id) }?.resume()
    }
  }

  /// How many wait.
  package var waiterCount: Int { state.withLock { $0.waiters.count } }
}
