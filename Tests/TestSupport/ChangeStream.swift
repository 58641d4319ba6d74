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
  package static var isPresent: Bool {
    #if os(macOS) || os(Linux)
      FileManager.default.isReadableFile(atPath: file.path)
    #else
      false
    #endif
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

  /// The batches in the order in which they were made. Read once a process.
  package static func batches() throws -> [[ChangeRecord]] { try cached.get() }

  private static let cached = Result {
    var batches: [[ChangeRecord]] = []
    try forEachBatch { batch in
      batches.append(batch)
      return true
    }
    return batches
  }

  /// Calls `body` with one batch after the other, holding no more than one, until it answers false.
  package static func forEachBatch(_ body: ([ChangeRecord]) throws -> Bool) throws {
    let decoder = JSONDecoder()
    var batch: [ChangeRecord] = []
    var number = 0
    var goesOn = true
    try forEachLine { text in
      let line = try decoder.decode(Line.self, from: text)
      if line.batch != number, !batch.isEmpty {
        goesOn = try body(batch)
        batch = []
      }
      number = line.batch
      batch.append(
        ChangeRecord(
          id: line.id, collection: line.collection, type: MutationType(rawValue: line.type)!,
          payload: line.payload64 ?? Data((line.payload ?? "").utf8), hlcTimestamp: line.hlc))
      return goesOn
    }
    if goesOn, !batch.isEmpty { _ = try body(batch) }
  }

  private static func forEachLine(_ body: (Data) throws -> Bool) throws {
    #if os(macOS) || os(Linux)
      let process = Process()
      process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
      process.arguments = ["gzip", "-dc", file.path]
      let output = Pipe()
      process.standardOutput = output
      process.standardError = FileHandle.nullDevice
      try process.run()
      defer {
        // Not SIGTERM, which a child of this process may have blocked.
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
      }
      var pending = Data()
      while true {
        let more = output.fileHandleForReading.availableData
        if more.isEmpty { break }
        pending += more
        var start = pending.startIndex
        while let end = pending[start...].firstIndex(of: UInt8(ascii: "\n")) {
          guard try body(pending[start..<end]) else { return }
          start = end + 1
        }
        pending = Data(pending[start...])
      }
      guard pending.isEmpty else { throw CocoaError(.fileReadCorruptFile) }
    #endif
  }
}
