/// What one process measured of one engine under one workload.
struct Measurement: Codable {
  var workload: Workload
  var engine: EngineKind?
  /// Operations in the timed part: records, commits, polls.
  var operations = 0
  var seconds = 0.0
  /// Of single operations, where they are timed one by one.
  var latency: Latency?
  /// Processor time of the thread in the same operations: what it did not wait for, so that another
  /// process has no part in it.
  var threadTime: Latency?
  /// User and system time of all threads, in the timed part and in closing.
  var cpuSeconds = 0.0
  /// Bytes passed to write calls until the store was closed.
  var passedBytes: UInt64 = 0
  /// Bytes that these calls, or a memory map, made the system write.
  var deviceBytes: UInt64 = 0
  /// Bytes of all fields of the records that were applied.
  var recordBytes: UInt64 = 0
  /// In the timed part, if they were counted.
  var allocations: UInt64?
  /// The most above what there was before the store was opened.
  var peakAnonymousBytes: UInt64 = 0
  /// Of the closed store.
  var diskBytes: UInt64?
  /// Of what is in the store afterwards, or what was read.
  var digest: Digest?
  var version = ""

  /// Whether single commits of this engine's were timed, on one thread.
  var isTimed: Bool {
    let isAlone = workload == .commitsNormal || workload == .commitsFull
    return latency != nil && (isAlone || workload.isAboutStalls)
  }

  /// What is compared: operations a second, or for ``Workload/reopen`` milliseconds.
  var value: Double {
    if workload == .reopen { return seconds * 1_000 / Double(max(operations, 1)) }
    return Double(operations) / max(seconds, 1e-9)
  }
}

/// Times of single operations, in microseconds.
struct Latency: Codable {
  var p50 = 0.0
  var p99 = 0.0
  var p999 = 0.0
  var maximum = 0.0

  init(nanoseconds: [Int64]) {
    let sorted = nanoseconds.sorted()
    func at(_ part: Double) -> Double {
      guard let last = sorted.indices.last else { return 0 }
      return Double(sorted[min(last, Int(Double(sorted.count) * part))]) / 1_000
    }
    p50 = at(0.5)
    p99 = at(0.99)
    p999 = at(0.999)
    maximum = at(1)
  }
}

/// The median; of an even number the lower middle one.
func median(_ values: [Double]) -> Double? {
  values.isEmpty ? nil : values.sorted()[(values.count - 1) / 2]
}
