import AirDbLogStore
import CHeapProbe
import Foundation

/// Watches the heap of this process: bytes that have been allocated and not freed.
///
/// A thread looks at it about every half a millisecond, so that what one call needs for a moment is
/// seen as well.
final class HeapSampler: Sendable {
  private let peak = Locked(0)
  private let isDone = Locked(false)
  private let base: Int

  /// Bytes of heap in use; 0 where the system cannot say.
  static var inUse: Int { Int(heap_bytes_in_use()) }

  init() {
    base = Self.inUse
    let thread = DispatchQueue(label: "heap sampler")
    thread.async { [peak, isDone] in
      while !isDone.withLock({ $0 }) {
        let now = Self.inUse
        peak.withLock { $0 = max($0, now) }
        Thread.sleep(forTimeInterval: 0.0005)
      }
    }
  }

  /// The most that was in use above what was in use at the beginning.
  var growth: Int { max(0, peak.withLock { $0 } - base) }

  func stop() { isDone.withLock { $0 = true } }
}
