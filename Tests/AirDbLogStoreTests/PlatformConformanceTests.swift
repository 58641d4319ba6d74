import AirDbLogStore
import TestSupport
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The real file system, the one in memory and the simulated one behave alike: what is shown on
/// one holds for a store on another.
@Suite("Platform conformance")
struct PlatformConformanceTests {
  @Test("Modes: which create, which demand a file", arguments: PlatformKind.allCases)
  func openModes(_ kind: PlatformKind) throws {
    try withPlatform(kind) { platform, root in
      let path = "\(root)/file"
      for mode in [OpenMode.read, .readWrite] {
        #expect(errno { () throws(SystemError) in _ = try platform.open(path, mode) } == ENOENT)
      }
      let created = try platform.open(path, .createNew)
      #expect(errno { () throws(SystemError) in _ = try platform.open(path, .createNew) } == EEXIST)
      try platform.write("content", to: created)
      for mode in [OpenMode.read, .readWrite, .createIfAbsent] {
        let file = try platform.open(path, mode)
        #expect(try platform.text(of: file) == "content", "opening must not cut")
        try platform.close(file)
      }
      try platform.close(created)
      let other = try platform.open("\(root)/other", .createIfAbsent)
      #expect(try platform.size(of: other) == 0)
      try platform.close(other)
    }
  }

  @Test("A file open for reading cannot be changed", arguments: PlatformKind.allCases)
  func readOnlyDescriptor(_ kind: PlatformKind) throws {
    try withPlatform(kind) { platform, root in
      try platform.makeFile("\(root)/file", "content")
      let file = try platform.open("\(root)/file", .read)
      let byte: [UInt8] = [1]
      byte.withUnsafeBytes { bytes in
        #expect(
          errno { () throws(SystemError) in _ = try platform.write(file, bytes, at: 0) } == EBADF)
      }
      #expect(errno { () throws(SystemError) in try platform.truncate(file, to: 0) } == EINVAL)
      #expect(
        errno { () throws(SystemError) in try platform.reserve(file, offset: 0, count: 9) }
          == EBADF)
      #expect(try platform.text(of: file) == "content")
      try platform.close(file)
    }
  }

  @Test("Reads stop at the end of the file", arguments: PlatformKind.allCases)
  func shortReads(_ kind: PlatformKind) throws {
    try withPlatform(kind) { platform, root in
      let file = try platform.open("\(root)/file", .createNew)
      try platform.write("0123456789", to: file)
      #expect(try platform.text(of: file, at: 7) == "789")
      #expect(try platform.text(of: file, at: 2, limit: 3) == "234")
      #expect(try platform.text(of: file, at: 10) == "")
      for offset in [1 << 40, UInt64(Int64.max) - 1, UInt64(Int64.max), .max] {
        #expect(try platform.text(of: file, at: offset) == "")
      }
      try platform.close(file)
    }
  }

  @Test("A gap that was never written reads as zeros", arguments: PlatformKind.allCases)
  func sparseWrites(_ kind: PlatformKind) throws {
    try withPlatform(kind) { platform, root in
      let file = try platform.open("\(root)/file", .createNew)
      try platform.write("a", to: file)
      try platform.write("z", to: file, at: 5)
      #expect(try platform.text(of: file) == "a....z")
      try platform.write("far", to: file, at: 1 << 33)
      #expect(try platform.size(of: file) == (1 << 33) + 3)
      #expect(try platform.text(of: file, at: (1 << 33) - 2) == "..far")
      #expect(try platform.text(of: file, at: 1 << 20, limit: 4) == "....")
      try platform.close(file)
    }
  }

  @Test("A write of nothing past the end does not grow the file", arguments: PlatformKind.allCases)
  func emptyWrite(_ kind: PlatformKind) throws {
    try withPlatform(kind) { platform, root in
      let file = try platform.open("\(root)/file", .createNew)
      try platform.write("", to: file, at: 100)
      #expect(try platform.size(of: file) == 0)
      try platform.close(file)
    }
  }

  @Test("Growing after a cut shows zeros, not what was cut off", arguments: PlatformKind.allCases)
  func truncate(_ kind: PlatformKind) throws {
    try withPlatform(kind) { platform, root in
      let file = try platform.open("\(root)/file", .createNew)
      try platform.write("0123456789", to: file)
      try platform.truncate(file, to: 4)
      #expect(try platform.text(of: file) == "0123")
      try platform.truncate(file, to: 8)
      #expect(try platform.text(of: file) == "0123....")
      try platform.truncate(file, to: 0)
      try platform.write("x", to: file, at: 2)
      #expect(try platform.text(of: file) == "..x")
      try platform.close(file)
    }
  }

  @Test("Reserving grows with zeros and keeps what is there", arguments: PlatformKind.allCases)
  func reserve(_ kind: PlatformKind) throws {
    try withPlatform(kind) { platform, root in
      let file = try platform.open("\(root)/file", .createNew)
      try platform.write("content", to: file)
      try platform.reserve(file, offset: 3, count: 7)
      #expect(try platform.text(of: file) == "content...")
      try platform.reserve(file, offset: 0, count: 5)
      #expect(try platform.size(of: file) == 10, "within the file nothing changes")
      try platform.reserve(file, offset: 100, count: 0)
      #expect(try platform.size(of: file) == 10)
      #expect(
        errno { () throws(SystemError) in
          try platform.reserve(file, offset: .max, count: 2)
        } == EFBIG)
      try platform.close(file)
    }
  }

  @Test("A rename replaces its target; who has it open keeps it", arguments: PlatformKind.allCases)
  func renameOverOpenFile(_ kind: PlatformKind) throws {
    try withPlatform(kind) { platform, root in
      try platform.makeFile("\(root)/old", "old")
      try platform.makeFile("\(root)/new", "new")
      let old = try platform.open("\(root)/old", .readWrite)
      let new = try platform.open("\(root)/new", .readWrite)
      try platform.rename("\(root)/new", to: "\(root)/old")
      #expect(try platform.list(root) == ["old"])
      #expect(try platform.text(of: old) == "old")
      try platform.write("OLD", to: old)
      #expect(try platform.text(of: new) == "new")
      try platform.write("NEW", to: new)
      #expect(try platform.text(at: "\(root)/old") == "NEW")
      #expect(try platform.identity(of: old) != platform.identity(of: new))
      try platform.close(old)
      try platform.close(new)
      #expect(
        errno { () throws(SystemError) in
          try platform.rename("\(root)/new", to: "\(root)/old")
        } == ENOENT)
    }
  }

  @Test("A removed file lives until it is closed", arguments: PlatformKind.allCases)
  func removeOpenFile(_ kind: PlatformKind) throws {
    try withPlatform(kind) { platform, root in
      try platform.makeFile("\(root)/file", "first")
      let first = try platform.open("\(root)/file", .readWrite)
      try platform.remove("\(root)/file")
      #expect(try platform.list(root) == [])
      #expect(errno { () throws(SystemError) in try platform.remove("\(root)/file") } == ENOENT)
      try platform.makeFile("\(root)/file", "second")
      try platform.write("FIRST", to: first)
      #expect(try platform.text(of: first) == "FIRST")
      #expect(try platform.text(at: "\(root)/file") == "second")
      _ = try platform.synchronize(first, to: .stable)
      try platform.close(first)
    }
  }

  @Test("One descriptor holds the lock until it lets go", arguments: PlatformKind.allCases)
  func locks(_ kind: PlatformKind) throws {
    try withPlatform(kind) { platform, root in
      let first = try platform.open("\(root)/file", .createNew)
      let second = try platform.open("\(root)/file", .read)
      #expect(try platform.tryLock(first))
      #expect(try platform.tryLock(first), "who has it may take it again")
      #expect(try !platform.tryLock(second), "also within one process")
      try platform.unlock(second)
      #expect(try !platform.tryLock(second), "only the holder can let go")
      try platform.unlock(first)
      #expect(try platform.tryLock(second))
      #expect(try !platform.tryLock(first))
      try platform.close(second)
      #expect(try platform.tryLock(first))
      try platform.remove("\(root)/file")
      let other = try platform.open("\(root)/file", .createNew)
      #expect(try platform.tryLock(other), "the lock is on the file, not on its name")
      try platform.close(first)
      try platform.close(other)
    }
  }

  @Test("Directories: made, listed, removed when empty", arguments: PlatformKind.allCases)
  func directories(_ kind: PlatformKind) throws {
    try withPlatform(kind) { platform, root in
      let directory = "\(root)/directory"
      try platform.createDirectory(directory)
      #expect(
        errno { () throws(SystemError) in try platform.createDirectory(directory) } == EEXIST)
      try platform.makeFile("\(directory)/a", "")
      try platform.makeFile("\(directory)/ä", "")
      #expect(Set(try platform.list(directory)) == ["a", "ä"])
      try platform.synchronizeDirectory(directory)
      #expect(
        errno { () throws(SystemError) in try platform.removeDirectory(directory) } == ENOTEMPTY)
      try platform.remove("\(directory)/a")
      try platform.remove("\(directory)/ä")
      try platform.removeDirectory(directory)
      #expect(try platform.list(root) == [])
    }
  }

  @Test("Paths through absent directories and through files", arguments: PlatformKind.allCases)
  func pathErrors(_ kind: PlatformKind) throws {
    try withPlatform(kind) { platform, root in
      try platform.makeFile("\(root)/file", "")
      try platform.createDirectory("\(root)/directory")
      for (path, expected) in [("\(root)/absent/x", ENOENT), ("\(root)/file/x", ENOTDIR)] {
        #expect(
          errno { () throws(SystemError) in _ = try platform.open(path, .createNew) } == expected)
        #expect(errno { () throws(SystemError) in try platform.createDirectory(path) } == expected)
        #expect(errno { () throws(SystemError) in _ = try platform.list(path) } == expected)
        #expect(errno { () throws(SystemError) in try platform.remove(path) } == expected)
        #expect(errno { () throws(SystemError) in try platform.removeDirectory(path) } == expected)
        #expect(
          errno { () throws(SystemError) in try platform.synchronizeDirectory(path) } == expected)
        #expect(
          errno { () throws(SystemError) in
            try platform.rename("\(root)/file", to: path)
          } == expected)
      }
      #expect(errno { () throws(SystemError) in _ = try platform.list("\(root)/file") } == ENOTDIR)
      #expect(
        errno { () throws(SystemError) in
          _ = try platform.open("\(root)/directory", .readWrite)
        } == EISDIR)
      #expect(errno { () throws(SystemError) in _ = try platform.open("", .read) } == ENOENT)
    }
  }

  @Test("The same file under another path has the same identity", arguments: PlatformKind.allCases)
  func identity(_ kind: PlatformKind) throws {
    try withPlatform(kind) { platform, root in
      let first = try platform.open("\(root)/file", .createNew)
      let second = try platform.open("\(root)/../\(root.split(separator: "/").last!)/./file", .read)
      let other = try platform.open("\(root)/other", .createNew)
      #expect(try platform.identity(of: first) == platform.identity(of: second))
      #expect(try platform.identity(of: first) != platform.identity(of: other))
      for file in [first, second, other] { try platform.close(file) }
    }
  }

  @Test("A closed descriptor is refused", arguments: [PlatformKind.memory, .simulated])
  func closedDescriptor(_ kind: PlatformKind) throws {
    // Not on the system, where another test may have been given the same number.
    try withPlatform(kind) { platform, root in
      let file = try platform.open("\(root)/file", .createNew)
      try platform.close(file)
      #expect(errno { () throws(SystemError) in try platform.close(file) } == EBADF)
      #expect(errno { () throws(SystemError) in _ = try platform.size(of: file) } == EBADF)
      #expect(
        errno { () throws(SystemError) in _ = try platform.synchronize(file, to: .stable) }
          == EBADF)
    }
  }

  @Test("Random bytes differ from call to call", arguments: PlatformKind.allCases)
  func random(_ kind: PlatformKind) throws {
    try withPlatform(kind) { platform, _ in
      var (first, second) = ([UInt8](repeating: 0, count: 600), [UInt8](repeating: 0, count: 600))
      try first.withUnsafeMutableBytes { try platform.fillRandom($0) }
      try second.withUnsafeMutableBytes { try platform.fillRandom($0) }
      #expect(first != second)
      #expect(first.suffix(50).contains { $0 != 0 }, "filled to its end")
    }
  }
}

@Suite("System platform")
struct SystemPlatformTests {
  @Test(
    "Descriptors do not reach a child that executes",
    arguments: [OpenMode.createNew, .createIfAbsent, .readWrite, .read])
  func closeOnExec(_ mode: OpenMode) throws {
    try withTemporaryDirectory { root in
      let platform = SystemPlatform()
      if mode != .createNew { try platform.makeFile("\(root)/file", "") }
      let file = try platform.open("\(root)/file", mode)
      let flags = fcntl(file.rawValue, F_GETFD)
      #expect(flags != -1 && flags & FD_CLOEXEC != 0)
      try platform.close(file)
    }
  }

  @Test("Listing and syncing directories leave no descriptor behind, also when they fail")
  func descriptorsAreReturned() throws {
    try withTemporaryDirectory { root in
      let platform = SystemPlatform()
      let first = try platform.open("\(root)/file", .createNew)
      for _ in 0..<100 {
        _ = try platform.list(root)
        try platform.synchronizeDirectory(root)
        #expect(
          errno { () throws(SystemError) in _ = try platform.list("\(root)/file") } == ENOTDIR)
      }
      // The lowest free number; tests that run beside this one have some of them.
      let second = try platform.open("\(root)/file", .read)
      #expect(second.rawValue < first.rawValue + 90)
      try platform.close(first)
      try platform.close(second)
    }
  }

  @Test("Where the file system cannot allocate, zeros are written behind the end only")
  func reserveByWriting() throws {
    try withTemporaryDirectory { root in
      let platform = SystemPlatform()
      let file = try platform.open("\(root)/file", .createNew)
      try platform.write("content", to: file)
      try platform.extendWithZeros(file, to: 3)
      #expect(try platform.text(of: file) == "content")
      try platform.extendWithZeros(file, to: 200_000)
      #expect(try platform.size(of: file) == 200_000)
      #expect(try platform.text(of: file, limit: 10) == "content...")
      #expect(try platform.text(of: file, at: 199_998) == "..")
      try platform.close(file)
      #if os(Linux)
        let full = try platform.open("/dev/full", .readWrite)
        #expect(
          errno { () throws(SystemError) in try platform.extendWithZeros(full, to: 1) } == ENOSPC)
        try platform.close(full)
      #endif
    }
  }

  @Test("A sync says what it reached")
  func syncLevel() throws {
    try withTemporaryDirectory { root in
      let platform = SystemPlatform()
      let file = try platform.open("\(root)/file", .createNew)
      #if canImport(Darwin)
        #expect(try platform.synchronize(file, to: .device) == .device)
        #expect(try platform.synchronize(file, to: .stable) >= .device)
      #else
        #expect(try platform.synchronize(file, to: .stable) == .stable)
      #endif
      try platform.close(file)
    }
  }

  @Test("The clock counts milliseconds since 1970")
  func clock() {
    let now = SystemPlatform().wallClockMilliseconds()
    #expect(now > 1_700_000_000_000 && now < 4_000_000_000_000)
    #expect(abs(now / 1000 - Int64(time(nil))) <= 2)
  }
}
