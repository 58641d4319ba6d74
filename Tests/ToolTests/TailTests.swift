#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation
  import Testing

  @Suite("Following a writer")
  struct TailTests {
    /// A tail that runs, and what it has printed.
    private final class Following {
      private let process: Process
      private let file: String

      init(_ arguments: [String], in folder: TemporaryFolder) throws {
        process = try Tool.process(["tail"] + arguments, in: folder)
        file = folder.path("lines of tail")
        try #require(FileManager.default.createFile(atPath: file, contents: nil))
        process.standardOutput = FileHandle(forUpdatingAtPath: file)
        try process.run()
      }

      deinit { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }

      /// The whole lines so far.
      var lines: [Substring] {
        get throws {
          let text = try String(contentsOfFile: file, encoding: .utf8)
          return text[..<(text.lastIndex(of: "\n") ?? text.startIndex)].split(separator: "\n")
        }
      }

      /// Waits for a line with a text; false if the process ended before.
      func shows(_ text: String) throws -> Bool {
        while try !lines.contains(where: { $0.contains(text) }) {
          guard process.isRunning else { return false }
          Thread.sleep(forTimeInterval: 0.01)
        }
        return true
      }

      func end(_ signal: Int32) throws -> Tool.Outcome {
        kill(process.processIdentifier, signal)
        return try Tool.outcome(of: process)
      }
    }

    private func record(_ number: Int, _ collection: String = "notes") -> ChangeRecord {
      SampleStore.record(number, collection, "id \(number)", .insert, "content \(number)")
    }

    @Test(
      "it prints what a writer commits, as history does, until a signal ends it",
      arguments: [SIGINT, SIGTERM])
    func follows(signal: Int32) throws {
      let folder = try TemporaryFolder()
      let path = try SampleStore.make(in: folder)
      let store = try ChangeStore(at: path)
      let start = try #require(try store.position)
      try store.applyAndWait([record(20)], author: "before")
      let tail = try Following([path, "--after", "\(start)", "--json"], in: folder)
      #expect(try tail.shows("\"author\":\"before\""))
      for number in 21...25 {
        try store.applyAndWait([record(number)], author: "me")
        #expect(try tail.shows("\"id\":\"id \(number)\""))
      }
      let outcome = try tail.end(signal)
      #expect(outcome.status == 0 && outcome.errors.isEmpty)
      #expect(outcome.lines.count == 7)
      let history = try Tool.run(["history", path, "--after", "\(start)", "--json"], in: folder)
      #expect(outcome.output == history.output)
      try store.close()
    }

    @Test("without a position it begins now")
    func fromNow() throws {
      let folder = try TemporaryFolder()
      let path = try SampleStore.make(in: folder)
      let store = try ChangeStore(at: path)
      let tail = try Following([path], in: folder)
      // Nobody can tell when it has begun, so commits are made until it shows one.
      var number = 20
      while try tail.lines.isEmpty {
        try store.applyAndWait([record(number)])
        number += 1
        Thread.sleep(forTimeInterval: 0.02)
      }
      try store.applyAndWait([record(number)])
      #expect(try tail.shows("\"id \(number)\""))
      let outcome = try tail.end(SIGINT)
      #expect(outcome.status == 0)
      #expect(outcome.lines.last?.hasPrefix("The end; next: --after ") == true)
      #expect(!outcome.output.contains("plain"), "That was there before.")
      // All of them from the first on.
      let history = try Tool.run(["history", path], in: folder).lines
      #expect(outcome.lines == history.suffix(outcome.lines.count))
      try store.close()
    }

    @Test("filters, and records that another store imports")
    func records() throws {
      let folder = try TemporaryFolder()
      let path = try SampleStore.make(in: folder)
      let store = try ChangeStore(at: path)
      let start = try #require(try store.position)
      let tail = try Following(
        [path, "--after", "\(start)", "--records", "--collection", "b", "--not-author", "other"],
        in: folder)
      try store.applyAndWait([record(20, "a"), record(21, "b")])
      try store.applyAndWait([record(22, "b")], author: "other")
      try store.applyAndWait([record(23, "b")])
      #expect(try tail.shows("content 23"))
      // Segments of the writer go while it is followed.
      try store.compact()
      try store.applyAndWait([record(24, "b")])
      #expect(try tail.shows("content 24"))
      let outcome = try tail.end(SIGTERM)
      #expect(outcome.status == 0)
      #expect(
        try DumpedRecord.read(outcome.lines) == [record(21, "b"), record(23, "b"), record(24, "b")])
      let copy = folder.path("copy")
      let lines = folder.path("lines of tail")
      #expect(try Tool.run(["import", "--create", copy, lines], in: folder).status == 0)
      try store.close()
    }

    @Test("a position of another store is refused, and a reader that goes away ends it")
    func ends() throws {
      let folder = try TemporaryFolder()
      let path = try SampleStore.make(in: folder)
      let foreign = "0123456789abcdef0123456789abcdef.1.1.0"
      let refused = try Tool.run(["tail", path, "--after", foreign], in: folder)
      #expect(refused.status == 4 && refused.output.isEmpty)
      #expect(try Tool.run(["tail", folder.path("none")], in: folder).status == 3)

      let store = try ChangeStore(at: path)
      let start = try #require(try store.position)
      let process = try Tool.process(["tail", path, "--after", "\(start)"], in: folder)
      let pipe = Pipe()
      process.standardOutput = pipe
      try process.run()
      try store.applyAndWait([record(20)])
      #expect(!pipe.fileHandleForReading.availableData.isEmpty)
      try pipe.fileHandleForReading.close()
      var number = 21
      while process.isRunning {
        try store.applyAndWait([record(number)])
        number += 1
        Thread.sleep(forTimeInterval: 0.02)
      }
      #expect(process.terminationReason == .exit && process.terminationStatus == 0)
      try store.close()
    }
  }
#endif
