#if os(macOS) || os(Linux)
  import Foundation
  import Testing

  /// A terminal without a screen.
  final class PseudoTerminal {
    /// What a process writes to. It stays open here, so that what was written can still be read.
    let slave: FileHandle
    private let master: Int32

    init() throws {
      var descriptors: (master: Int32, slave: Int32) = (-1, -1)
      try #require(openpty(&descriptors.master, &descriptors.slave, nil, nil, nil) == 0)
      master = descriptors.master
      slave = FileHandle(fileDescriptor: descriptors.slave, closeOnDealloc: true)
      _ = fcntl(master, F_SETFL, O_NONBLOCK)
    }

    deinit { close(master) }

    /// What has been written so far.
    func output() -> String {
      var bytes: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 4_096)
      while true {
        let count = read(master, &buffer, buffer.count)
        guard count > 0 else { break }
        bytes.append(contentsOf: buffer[..<count])
      }
      return String(decoding: bytes, as: UTF8.self)
    }
  }
#endif
