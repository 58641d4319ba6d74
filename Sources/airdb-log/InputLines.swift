import Foundation

/// The lines of a file or of standard input, one after the other, with their numbers.
struct InputLines {
  /// No record has a longer line: a payload of 256 MiB, each byte of it escaped.
  static let longestLine = 7 * (256 << 20)

  private let descriptor: Int32
  private let name: String
  private var buffer: [UInt8] = []
  private var start = 0
  private var isAtEnd = false
  /// The number of the line that was read last, from 1 on.
  private(set) var number = 0
  /// Bytes that have been read.
  private(set) var bytesRead: UInt64 = 0
  /// Bytes of the whole; nil if that is not a file.
  let byteCount: UInt64?

  /// Opens a file, or takes standard input for "-".
  init(_ path: String) throws(ToolError) {
    if path == "-" {
      descriptor = STDIN_FILENO
      name = "standard input"
    } else {
      descriptor = open(path, O_RDONLY | O_CLOEXEC)
      name = path
      guard descriptor >= 0 else {
        throw ToolError(.notFound, "Could not open \(path): \(systemErrorText()).")
      }
    }
    var status = stat()
    let isFile = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    byteCount = isFile ? UInt64(clamping: status.st_size) : nil
  }

  func close() {
    if descriptor != STDIN_FILENO { _ = Foundation.close(descriptor) }
  }

  /// The next line, without its end; nil behind the last. A last line need not be ended.
  mutating func next() throws(ToolError) -> ArraySlice<UInt8>? {
    var searched = start
    while true {
      if let end = buffer[searched...].firstIndex(of: 0x0A) {
        number += 1
        defer { start = end + 1 }
        return buffer[start..<end]
      }
      searched = buffer.count
      guard buffer.count - start <= Self.longestLine else {
        throw ToolError(.damage, "Line \(number + 1) of \(name) is longer than a record can be.")
      }
      if isAtEnd {
        guard start < buffer.count else { return nil }
        number += 1
        defer { start = buffer.count }
        return buffer[start...]
      }
      searched -= start
      buffer.removeFirst(start)
      start = 0
      try fill()
    }
  }

  private mutating func fill() throws(ToolError) {
    // Long lines in large pieces, so that reading one does not take the square of its length.
    let size = max(256 << 10, buffer.count)
    let filled = buffer.count
    buffer.append(contentsOf: repeatElement(0, count: size))
    var count: Int
    repeat {
      count = buffer.withUnsafeMutableBytes { bytes in
        read(descriptor, bytes.baseAddress! + filled, size)
      }
    } while count < 0 && errno == EINTR
    guard count >= 0 else {
      throw ToolError(.notFound, "Could not read \(name): \(systemErrorText()).")
    }
    buffer.removeLast(size - count)
    bytesRead += UInt64(count)
    isAtEnd = count == 0
  }
}
