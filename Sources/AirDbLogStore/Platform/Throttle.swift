/// Holds work in the background to a number of bytes a second, on the thread that does it.
///
/// Only the pace depends on the clock here, nothing that is read or written.
package final class Throttle: Sendable {
  private let platform: any Platform
  private let bytesPerSecond: Double
  private let isCancelled: @Sendable () -> Bool
  /// When what has been done is within the limit.
  private let ready: Locked<UInt64>

  /// So often it looks whether it is cancelled.
  private static let pause: UInt64 = 20_000_000

  /// `isCancelled` ends a wait early.
  package init(
    _ platform: any Platform, bytesPerSecond: Int, isCancelled: @escaping @Sendable () -> Bool
  ) {
    self.platform = platform
    self.bytesPerSecond = Double(max(bytesPerSecond, 1))
    self.isCancelled = isCancelled
    ready = Locked(platform.uptimeNanoseconds())
  }

  /// Waits until so many bytes that have been done are within the limit.
  package func spend(_ bytes: Int) {
    let time = UInt64(Double(bytes) / bytesPerSecond * 1e9)
    // Time in which nothing was done is not saved up.
    let end = ready.withLock { ready in
      ready = max(ready, platform.uptimeNanoseconds()) + time
      return ready
    }
    while !isCancelled() {
      let now = platform.uptimeNanoseconds()
      if now >= end { return }
      platform.sleep(nanoseconds: min(end - now, Self.pause))
    }
  }
}
