import AirDbLogStore

/// A wall clock that stands still unless a test moves it, either way.
package final class SimulatedClock: Sendable {
  private let now: Locked<Int64>

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
}
