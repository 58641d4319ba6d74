#if os(macOS) || os(Linux)
  import Foundation

  /// A process of ours, with its output as a stream, and its input if that is asked for.
  ///
  /// `@unchecked Sendable`: `kill(_:)` may come from the thread that handles signals; all else is
  /// called by the owner.
  final class ChildProcess: @unchecked Sendable {
    private let process = Process()
    private let input: Pipe?
    private let pipe = Pipe()
    private let interruption: Interruption
    private var isFinished = false
    var output: ByteReader

    /// - Parameter errors: A file that takes what the process writes to its error output. A pipe that
    ///   nobody reads would stop a process that has much to say.
    init(
      _ executable: URL, _ arguments: [String], environment: [String: String],
      hasInput: Bool = false, errors: FileHandle, _ interruption: Interruption
    ) throws {
      input = hasInput ? Pipe() : nil
      self.interruption = interruption
      output = ByteReader(pipe.fileHandleForReading.fileDescriptor)
      process.executableURL = executable
      process.arguments = arguments
      process.environment = environment
      process.standardInput = input ?? FileHandle.nullDevice
      process.standardOutput = pipe
      process.standardError = errors
      try interruption.check()
      do {
        try process.run()
      } catch {
        throw ToolError(
          .notFound, "Could not run \(executable.path): \(error.localizedDescription)")
      }
      interruption.add(self)
    }

    /// Writes to the input. The caller sees to it that the process reads.
    ///
    /// - Returns: False if the process has ended.
    func write(_ bytes: [UInt8]) throws -> Bool {
      guard let descriptor = input?.fileHandleForWriting.fileDescriptor else { return false }
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = rest.withUnsafeBytes { systemWrite(descriptor, $0.baseAddress, $0.count) }
        if count >= 0 {
          rest = rest.dropFirst(count)
        } else if errno == EPIPE {
          return false
        } else if errno != EINTR {
          throw ToolError(.notFound, "Could not write to a process: \(systemErrorText()).")
        }
      }
      return true
    }

    /// Closes the input and waits for the end. A second call only answers again.
    ///
    /// - Returns: The exit status, or the negated number of the signal that ended the process.
    func finish() -> Int32 {
      if !isFinished {
        isFinished = true
        try? input?.fileHandleForWriting.close()
        process.waitUntilExit()
        interruption.remove(self)
        try? pipe.fileHandleForReading.close()
      }
      return process.terminationReason == .exit
        ? process.terminationStatus : -process.terminationStatus
    }

    /// Sends a signal, if the process has not ended.
    func kill(_ signal: Int32) {
      if process.isRunning { Foundation.kill(process.processIdentifier, signal) }
    }

    /// Ends the process, whatever it does.
    func stop() {
      kill(SIGKILL)
      _ = finish()
    }
  }
#endif
