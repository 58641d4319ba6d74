import AirDbLogStore
import TestSupport
import Testing

/// The platforms that must behave alike.
enum PlatformKind: CaseIterable, Sendable {
  case system, memory, simulated
}

/// Runs `body` on a platform with the path of an empty directory there.
func withPlatform(
  _ kind: PlatformKind, _ body: (_ platform: any Platform, _ root: String) throws -> Void
) throws {
  switch kind {
  case .system:
    try withTemporaryDirectory { try body(SystemPlatform(), $0) }
  case .memory:
    let platform = MemoryPlatform()
    try platform.createDirectory("/root")
    try body(platform, "/root")
  case .simulated:
    let platform = SimulatedFileSystem()
    try platform.createDirectory("/root")
    try body(platform, "/root")
  }
}

/// The errno that `body` fails with, or nil if it does not fail.
func errno(_ body: () throws(SystemError) -> Void) -> Int32? {
  do {
    try body()
    return nil
  } catch {
    return error.errno
  }
}

extension Platform {
  /// Writes text at an offset, and expects it to be written in one go.
  func write(_ text: String, to file: FileDescriptor, at offset: UInt64 = 0) throws {
    var text = text
    let count = try text.withUTF8 { try write(file, UnsafeRawBufferPointer($0), at: offset) }
    #expect(count == text.utf8.count)
  }

  /// What one read of up to `limit` bytes gets, zeros shown as dots.
  func text(
    of file: FileDescriptor, at offset: UInt64 = 0, limit: Int = 100
  ) throws(SystemError) -> String {
    var buffer = [UInt8](repeating: 0xFF, count: limit)
    let (count, failure): (Int, SystemError?) = buffer.withUnsafeMutableBytes { buffer in
      do throws(SystemError) {
        return (try read(file, into: buffer, at: offset), nil)
      } catch {
        return (0, error)
      }
    }
    if let failure { throw failure }
    let shown = buffer[..<count].map { $0 == 0 ? UInt8(ascii: ".") : $0 }
    return String(decoding: shown, as: UTF8.self)
  }

  /// Makes a file with this content and closes it. Nothing is synced.
  func makeFile(_ path: String, _ text: String) throws {
    let file = try open(path, .createNew)
    try write(text, to: file)
    try close(file)
  }

  /// The content of a file, zeros shown as dots, or nil if there is no such file.
  func text(at path: String) throws -> String? {
    do throws(SystemError) {
      let file = try open(path, .read)
      let text = try text(of: file)
      try close(file)
      return text
    } catch {
      guard error.isNotFound else { throw error }
      return nil
    }
  }
}
