import CBenchmarkProbe
import Foundation

/// What the machine allows: appends of 512 bytes, each followed by a sync.
enum RawBaseline {
  static func run(_ task: Case, _ result: inout Measurement) throws {
    let size = 512
    let count = max(task.records / 50, 10)
    let path = task.directory + "/raw"
    let descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw BenchmarkError("Could not create \(path).") }
    defer { close(descriptor) }
    if task.workload == .rawPreallocated {
      try check(probe_reserve(descriptor, Int64(size * count)))
    }
    try check(probe_sync(descriptor))
    let bytes = [UInt8](repeating: 0xA5, count: size)
    let meter = Meter(countsAllocations: false)
    try meter.timed {
      for number in 0..<count {
        try meter.operation {
          try check(probe_write(descriptor, bytes, size, Int64(number * size)))
          try check(probe_sync(descriptor))
        }
      }
    }
    result.operations = count
    result.recordBytes = UInt64(size * count)
    meter.finish(&result)
  }

  private static func check(_ code: Int32) throws {
    guard code == 0 else { throw BenchmarkError("The raw baseline failed with errno \(code).") }
  }
}
