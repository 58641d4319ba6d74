import CBenchmarkProbe
import Foundation

/// Where stores are made, and gone afterwards; and the processes that work on them.
final class WorkFolder {
  let path: String
  private let isOurs: Bool

  private let syncs: Bool

  init(_ given: String?, syncs: Bool = true) throws {
    self.syncs = syncs
    path =
      (given.map { $0 + "/" } ?? FileManager.default.temporaryDirectory.path + "/")
      + "airdb-benchmarks-\(ProcessInfo.processInfo.processIdentifier)"
    isOurs = !FileManager.default.fileExists(atPath: path)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { if isOurs { try? FileManager.default.removeItem(atPath: path) } }

  /// An empty directory, or a copy of another one.
  func directory(_ name: String, copyOf original: String? = nil) throws -> String {
    let path = path + "/" + name
    try? FileManager.default.removeItem(atPath: path)
    if let original {
      try FileManager.default.copyItem(atPath: original, toPath: path)
    } else {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
    // What others left to write would be in the way of the syncs that are measured.
    if syncs { probe_sync_all() }
    return path
  }

  func remove(_ path: String) { try? FileManager.default.removeItem(atPath: path) }

  /// Runs a case in a process of its own.
  func run(_ task: Case) throws -> Measurement {
    let process = Process()
    process.executableURL = Bundle.main.executableURL
    process.arguments = [
      Benchmarks.workerFlag, String(decoding: try JSONEncoder().encode(task), as: UTF8.self),
    ]
    let output = Pipe()
    process.standardOutput = output
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let data = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    guard process.terminationReason == .exit, process.terminationStatus == 0 else {
      throw BenchmarkError(
        "\(task.workload.rawValue) on \(task.engine?.title ?? "the raw file") failed "
          + "with status \(process.terminationStatus)")
    }
    return try JSONDecoder().decode(Measurement.self, from: data)
  }
}
