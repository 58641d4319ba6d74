package import AirDbLogStore
import Foundation

/// A recorded history of a real project as batches of changes, where the checkout lies beside its
/// data. It is not part of the package; tests that need it are skipped visibly without it.
package enum ChangeStream {
  private static let file = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
    .appendingPathComponent("shared/data/tldr-history.jsonl.gz")

  /// Whether the file is there.
  package static var isPresent: Bool { FileManager.default.isReadableFile(atPath: file.path) }

  private struct Line: Decodable {
    var batch: Int
    var collection: String
    var id: String
    var type: Int
    var hlc: String
    var payload: String?
    var payload64: Data?
  }

  /// The batches in the order in which they were made. Read once a process.
  package static func batches() throws -> [[ChangeRecord]] { try cached.get() }

  private static let cached = Result { try read() }

  private static func read() throws -> [[ChangeRecord]] {
    var batches: [[ChangeRecord]] = []
    var last = -1
    let decoder = JSONDecoder()
    for line in try decompressed().split(separator: UInt8(ascii: "\n")) {
      let line = try decoder.decode(Line.self, from: line)
      let record = ChangeRecord(
        id: line.id, collection: line.collection, type: MutationType(rawValue: line.type)!,
        payload: line.payload64 ?? Data((line.payload ?? "").utf8), hlcTimestamp: line.hlc)
      if line.batch != last {
        batches.append([])
        last = line.batch
      }
      batches[batches.count - 1].append(record)
    }
    return batches
  }

  private static func decompressed() throws -> Data {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["gzip", "-dc", file.path]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw CocoaError(.fileReadCorruptFile) }
    return data
  }
}
