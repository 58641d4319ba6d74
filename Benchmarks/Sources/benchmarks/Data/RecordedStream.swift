import AirDbLogStore
import Foundation

/// A recorded history of a real project: a gzip-compressed file of JSON lines, which is not a part of
/// this repository.
enum RecordedStream {
  /// Beside the checkout, unless an option or the environment say otherwise.
  static var defaultPath: String {
    ProcessInfo.processInfo.environment["AIRDB_BENCHMARK_STREAM"]
      ?? "../shared/data/tldr-history.jsonl.gz"
  }

  private struct Line: Decodable {
    var batch: Int
    var collection: String
    var id: String
    var type: Int
    var hlc: String
    var payload: String?
    var payload64: Data?
  }

  /// The batches in the order in which they were made.
  static func batches(at path: String) throws -> [[ChangeRecord]] {
    let text = try ChildOutput.of(["gzip", "-dc", path])
    let decoder = JSONDecoder()
    var batches: [[ChangeRecord]] = []
    var number: Int?
    for line in text.split(separator: UInt8(ascii: "\n")) {
      let line = try decoder.decode(Line.self, from: line)
      if line.batch != number { batches.append([]) }
      number = line.batch
      guard let type = MutationType(rawValue: line.type) else { continue }
      batches[batches.count - 1].append(
        ChangeRecord(
          id: line.id, collection: line.collection, type: type,
          payload: line.payload64 ?? Data((line.payload ?? "").utf8), hlcTimestamp: line.hlc))
    }
    return batches
  }
}

/// What a program prints.
enum ChildOutput {
  static func of(_ command: [String], input: Data? = nil) throws -> Data {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = command
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    var inputFile: URL?
    if let input {
      // A file, not a pipe: so nobody has to feed it while the output is read.
      let file = FileManager.default.temporaryDirectory
        .appendingPathComponent("airdb-benchmark-" + UUID().uuidString)
      try input.write(to: file)
      inputFile = file
      process.standardInput = try FileHandle(forReadingFrom: file)
    } else {
      process.standardInput = FileHandle.nullDevice
    }
    defer { if let inputFile { try? FileManager.default.removeItem(at: inputFile) } }
    try process.run()
    let data = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw BenchmarkError("\(command[0]) failed with status \(process.terminationStatus)")
    }
    return data
  }
}
