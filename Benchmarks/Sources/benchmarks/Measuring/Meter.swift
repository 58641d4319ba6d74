import CBenchmarkProbe
import Foundation

/// Measures the parts of a process that count.
final class Meter {
  private let countsAllocations: Bool
  private let baseBytes: UInt64
  private let sampler: PeakSampler
  private let startWritten: (UInt64, UInt64)
  private(set) var seconds = 0.0
  private(set) var cpuSeconds = 0.0
  private var nanoseconds: [Int64] = []
  private var threadNanoseconds: [Int64] = []

  /// Begins with memory and written bytes. Call it when the input is there and the store is not.
  init(countsAllocations: Bool) {
    self.countsAllocations = countsAllocations && probe_counts_allocations()
    probe_trim_heap()
    baseBytes = probe_anonymous_bytes()
    sampler = PeakSampler()
    startWritten = Self.written()
  }

  /// Adds a timed part.
  func timed(_ body: () throws -> Void) rethrows {
    let (start, cpu) = begin()
    try body()
    end(start, cpu)
  }

  func timedTasks(_ body: () async throws -> Void) async rethrows {
    let (start, cpu) = begin()
    try await body()
    end(start, cpu)
  }

  private func begin() -> (ContinuousClock.Instant, Double) {
    if countsAllocations { probe_count_allocations(true) }
    let cpu = probe_cpu_seconds()
    return (ContinuousClock.now, cpu)
  }

  private func end(_ start: ContinuousClock.Instant, _ cpu: Double) {
    seconds += (ContinuousClock.now - start).seconds
    cpuSeconds += probe_cpu_seconds() - cpu
    probe_count_allocations(false)
  }

  /// Times one operation of those whose distribution is asked for, within a timed part.
  func operation(_ body: () throws -> Void) rethrows {
    let cpu = probe_thread_nanoseconds()
    let start = ContinuousClock.now
    try body()
    add(ContinuousClock.now - start)
    threadNanoseconds.append(probe_thread_nanoseconds() - cpu)
  }

  func add(_ duration: Duration) { nanoseconds.append(duration.nanoseconds) }

  func add(_ durations: [Duration]) { nanoseconds += durations.map(\.nanoseconds) }

  /// Closing belongs to what writing costs, but not to its rate.
  func closing(_ body: () throws -> Void) rethrows {
    let cpu = probe_cpu_seconds()
    try body()
    cpuSeconds += probe_cpu_seconds() - cpu
  }

  func finish(_ measurement: inout Measurement) {
    measurement.seconds = seconds
    measurement.cpuSeconds = cpuSeconds
    if !nanoseconds.isEmpty { measurement.latency = Latency(nanoseconds: nanoseconds) }
    if !threadNanoseconds.isEmpty {
      measurement.threadTime = Latency(nanoseconds: threadNanoseconds)
    }
    if countsAllocations { measurement.allocations = probe_allocations() }
    let peak = sampler.stop()
    measurement.peakAnonymousBytes = peak > baseBytes ? peak - baseBytes : 0
    let written = Self.written()
    measurement.passedBytes = written.0 - startWritten.0
    measurement.deviceBytes = written.1 - startWritten.1
  }

  private static func written() -> (UInt64, UInt64) {
    var passed: UInt64 = 0
    var toDevice: UInt64 = 0
    probe_written(&passed, &toDevice)
    return (passed, toDevice)
  }
}

/// Looks at the anonymous memory of the process every 5 milliseconds.
private final class PeakSampler: @unchecked Sendable {
  // `@unchecked Sendable`: the variables are only touched under the lock.
  private let lock = NSLock()
  private var peak: UInt64 = 0
  private var isStopped = false

  init() {
    Thread.detachNewThread { [self] in
      while look() { Thread.sleep(forTimeInterval: 0.005) }
    }
  }

  private func look() -> Bool {
    let now = probe_anonymous_bytes()
    return lock.withLock {
      peak = max(peak, now)
      return !isStopped
    }
  }

  func stop() -> UInt64 {
    _ = look()
    return lock.withLock {
      isStopped = true
      return peak
    }
  }
}

extension Duration {
  var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
  var nanoseconds: Int64 {
    components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000
  }
}
