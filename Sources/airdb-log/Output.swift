import Foundation

/// A descriptor that the tool writes to.
///
/// `@unchecked Sendable`: the buffer is only touched under the lock.
final class Output: @unchecked Sendable {
  /// Results. Buffered; goes quiet when the reader of a pipe has gone.
  static let standard = Output(STDOUT_FILENO, bufferSize: 64 << 10)
  /// Messages and progress. What cannot be written is lost.
  static let errors = Output(STDERR_FILENO, bufferSize: 0)

  let isTerminal: Bool
  private let descriptor: Int32
  private let bufferSize: Int
  private let lock = NSLock()
  private var buffer: [UInt8] = []
  private var readerIsGone = false

  private init(_ descriptor: Int32, bufferSize: Int) {
    self.descriptor = descriptor
    self.bufferSize = bufferSize
    isTerminal = isatty(descriptor) == 1
  }

  /// Whether nobody reads any more, so that a command that only prints can stop.
  var isClosed: Bool { lock.withLock { readerIsGone } }

  /// Adds bytes; they are written when there are enough of them.
  func write(_ bytes: some Collection<UInt8>) throws {
    try lock.withLock {
      buffer.append(contentsOf: bytes)
      if buffer.count >= bufferSize { try drain() }
    }
  }

  /// Writes a line at once, control characters escaped: no text of a store or a file name may
  /// command the terminal.
  func printLine(_ text: String) throws {
    try write(Array(escapingControls(text).utf8) + [0x0A])
    try flush()
  }

  /// Writes a line as ``printLine(_:)`` does, if it can.
  func writeLine(_ text: String) {
    try? printLine(text)
  }

  func flush() throws {
    try lock.withLock { try drain() }
  }

  private func drain() throws {
    defer { buffer.removeAll(keepingCapacity: true) }
    var rest = buffer[...]
    while !rest.isEmpty, !readerIsGone {
      let count = rest.withUnsafeBytes { systemWrite(descriptor, $0.baseAddress, $0.count) }
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno == EPIPE {
        readerIsGone = true
      } else if errno != EINTR {
        throw ToolError(.notFound, "Could not write the output: \(systemErrorText()).")
      }
    }
  }
}

/// What `errno` says.
func systemErrorText() -> String { String(cString: strerror(errno)) }

/// `write(2)`, under a name that methods of that name do not hide.
func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
  write(descriptor, bytes, count)
}
