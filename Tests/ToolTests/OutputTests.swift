#if os(macOS) || os(Linux)
  import Foundation
  import Testing

  @Suite("Where the output goes")
  struct OutputTests {
    @Test("a reader that has enough ends dump quietly")
    func brokenPipe() throws {
      let folder = try TemporaryFolder()
      // More than any pipe holds.
      let store = try SampleStore.make(in: folder, SampleStore.manyRecords())
      let process = try Tool.process(["dump", store], in: folder)
      let pipe = Pipe()
      process.standardOutput = pipe
      try process.run()
      let first = pipe.fileHandleForReading.readData(ofLength: 14)
      try pipe.fileHandleForReading.close()
      process.waitUntilExit()
      #expect(first == Data(#"{"collection":"#.utf8))
      #expect(process.terminationReason == .exit)
      #expect(process.terminationStatus == 0)
      #expect(try Tool.text(#require(process.standardError as? FileHandle)).isEmpty)
    }

    @Test("the writer that the demo kills ends by itself when nobody hears it any more")
    func orphanedWriter() throws {
      let folder = try TemporaryFolder()
      let source = try SampleStore.make(in: folder)
      let written = folder.path("written")
      let process = try Tool.process(["write-until-killed", written, source], in: folder)
      let pipe = Pipe()
      process.standardOutput = pipe
      try process.run()
      let first = pipe.fileHandleForReading.readData(ofLength: 2)
      try pipe.fileHandleForReading.close()
      process.waitUntilExit()
      #expect(first == Data("8\n".utf8), "The first batch has eight records.")
      #expect(process.terminationReason == .exit)
      #expect(process.terminationStatus == 0)
      #expect(try Tool.run(["verify", written], in: folder).status == 0)
    }

    @Test(
      "output that cannot be written is an error",
      .enabled(
        if: FileManager.default.fileExists(atPath: "/dev/full"), "This system has no /dev/full."))
    func fullDevice() throws {
      let folder = try TemporaryFolder()
      let store = try SampleStore.make(in: folder)
      let process = try Tool.process(["dump", store], in: folder)
      process.standardOutput = FileHandle(forWritingAtPath: "/dev/full")
      try process.run()
      process.waitUntilExit()
      #expect(process.terminationStatus == 3)
    }
  }
#endif
