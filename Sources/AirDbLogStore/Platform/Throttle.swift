#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Holds work in the background to a number of bytes a second, on the thread that does it.
///
/// Only the pace depends on the clock here, nothing that is read or written.
package final class Throttle: Sendable {
  private let bytesPerSecond: Int
  private let isCancelled: @Sendable () -> Bool
  private let ready: Locked<ContinuousClock.Instant>

  /// `isCancelled` ends a wait early.
  package init(bytesPerSecond: Int, isCancelled: @escaping @Sendable () -> Bool) {
    self.bytesPerSecond = max(bytesPerSecond, 1)
    self.isCancelled = isCancelled
    ready = Locked(ContinuousClock.now)
  }

  /// Waits until so many bytes that have been done are within the limit.
  package func spend(_ bytes: Int) {
    let time = Duration.seconds(Double(bytes) / Double(bytesPerSecond))
    // Time in which nothing was done is not saved up.
    let end = ready.withLock { ready in
      ready = max(ready, ContinuousClock.now) + time
      return ready
    }
    while !isCancelled() {
      let left = end - ContinuousClock.now
      if left <= .zero { return }
      let pause = min(left, .milliseconds(20))
      usleep(UInt32(max(1, pause.components.attoseconds / 1_000_000_000_000)))
    }
  }
}
