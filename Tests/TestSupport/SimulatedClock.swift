import AirDbLogStore

/// A wall clock that stands still unless a test moves it, either way, and a steady one that goes on
/// while somebody sleeps.
package final class SimulatedClock: Sendable {
  private let now: Locked<Int64>
  private let slept = Locked<UInt64>(0)

  package init(milliseconds: Int64 = 1_700_000_000_000) {
    now = Locked(milliseconds)
  }

  /// Milliseconds since 1970.
  package var milliseconds: Int64 {
    get { now.withLock { $0 } }
    set { now.withLock { $0 = newValue } }
  }

  package func advance(by milliseconds: Int64) {
    now.withLock { $0 += milliseconds }
  }

  /// The nanoseconds that have been slept altogether.
  package var uptimeNanoseconds: UInt64 { slept.withLock { $0 } }

  package func sleep(nanoseconds: UInt64) {
    slept.withLock { $0 += nanoseconds }
  }
}
