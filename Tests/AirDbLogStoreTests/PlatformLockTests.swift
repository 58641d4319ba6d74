import AirDbLogStore
import TestSupport
import Testing

@Suite("Locks")
struct PlatformLockTests {
  private struct Failure: Error {}

  /// Counts without any protection of its own.
  ///
  /// `@unchecked Sendable`: what the tests show is that the lock around it suffices.
  private final class Counter: @unchecked Sendable {
    var value = 0
  }

  @Test("One thread at a time is inside a lock")
  func exclusion() {
    let lock = Lock()
    let counter = Counter()
    inThreads(4) { _ in
      for _ in 0..<20_000 { lock.withLock { counter.value += 1 } }
    }
    #expect(lock.withLock { counter.value } == 80_000)
  }

  @Test("A guarded value is changed by one thread at a time")
  func lockedValue() {
    let counter = Locked(0)
    inThreads(4) { _ in
      for _ in 0..<20_000 { counter.withLock { $0 += 1 } }
    }
    #expect(counter.withLock { $0 } == 80_000)
  }

  @Test("An error leaves the lock, and what was done stays done")
  func errors() {
    let value = Locked(0)
    let (lock, monitor) = (Lock(), Monitor())
    for _ in 0..<2 {
      #expect(throws: Failure.self) { try lock.withLock { throw Failure() } }
      #expect(throws: Failure.self) { try monitor.withLock { throw Failure() } }
      #expect(throws: Failure.self) {
        try value.withLock {
          $0 += 1
          throw Failure()
        }
      }
    }
    #expect(value.withLock { $0 } == 2)
  }

  @Test("Whoever waits in a monitor is woken, and lets others in meanwhile")
  func monitor() {
    let monitor = Monitor()
    let turn = Counter()
    let (players, rounds) = (3, 200)
    inThreads(players) { player in
      for round in 0..<rounds {
        monitor.withLock {
          while turn.value != players * round + player { monitor.wait() }
          turn.value += 1
        }
        monitor.signalAll()
      }
    }
    #expect(monitor.withLock { turn.value } == players * rounds)
  }
}
