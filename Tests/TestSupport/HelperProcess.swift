#if os(macOS) || os(Linux)
  import Foundation

  /// The executable target `CrashWriter`, in a process of its own.
  ///
  /// It answers on its standard output, a line at a time; standard error goes to the test's.
  package final class HelperProcess {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private var pending = Data()

    /// Built beside the tests.
    private static var executable: URL {
      let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }
      let tests = bundle?.bundleURL ?? URL(fileURLWithPath: CommandLine.arguments[0])
      return tests.deletingLastPathComponent().appendingPathComponent("CrashWriter")
    }

    package init(_ arguments: [String]) throws {
      process.executableURL = Self.executable
      process.arguments = arguments
      process.standardInput = input
      process.standardOutput = output
      try process.run()
    }

    /// The next line of output, or nil when there is no more. Waits for it.
    package func readLine() -> String? {
      while true {
        if let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
          let line = String(decoding: pending[..<end], as: UTF8.self)
          pending = Data(pending[(end + 1)...])
          return line
        }
        let more = output.fileHandleForReading.availableData
        // A line that death cut short was not said.
        if more.isEmpty { return nil }
        pending += more
      }
    }

    /// All lines until the end.
    package func readLines() -> [String] {
      var lines: [String] = []
      while let line = readLine() { lines.append(line) }
      return lines
    }

    /// Lets a helper go on that waits for its standard input to end.
    package func endInput() { try? input.fileHandleForWriting.close() }

    /// Ends it with SIGKILL; it cannot do anything about that.
    package func kill() { _ = Foundation.kill(process.processIdentifier, SIGKILL) }

    /// Waits for its end, and answers its exit status, or nil if a signal ended it.
    @discardableResult
    package func wait() -> Int32? {
      process.waitUntilExit()
      return process.terminationReason == .exit ? process.terminationStatus : nil
    }
  }
#endif
