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

@Suite("Open files")
struct PlatformOpenFileTests {
  let files = SimulatedFileSystem()

  private func read(_ file: OpenFile, _ count: Int, at offset: UInt64 = 0) throws -> [UInt8] {
    var buffer = [UInt8](repeating: 0xFF, count: count)
    let got = try buffer.withUnsafeMutableBytes { try file.readExactly(into: $0, at: offset) }
    return Array(buffer[..<got])
  }

  @Test("Transfers that come short are carried to their end", arguments: 1...5)
  func shortTransfers(_ limit: Int) throws {
    files.inject(FaultPlan(.short(limit), kinds: [.read, .write]))
    let file = try OpenFile("/file", .createNew, on: files)
    let bytes = [UInt8](1...23)
    try bytes.withUnsafeBytes { try file.writeAll($0, at: 2) }
    #expect(try read(file, 25) == [0, 0] + bytes)
    #expect(try read(file, 23, at: 2) == bytes)
    #expect(try read(file, 100, at: 20) == bytes.suffix(5), "fewer only at the end of the file")
    #expect(try read(file, 10, at: 25) == [])
    #expect(try read(file, 0) == [])
  }

  private static let repeated: [SimulatedCall.Kind] = [
    .open, .create, .read, .write, .synchronize, .truncate, .reserve, .size, .identity, .lock,
    .unlock,
  ]

  @Test("Interrupted calls are repeated", arguments: repeated)
  func interrupted(_ kind: SimulatedCall.Kind) throws {
    try callAll()
    let callCount = files.callCount
    try files.remove("/file")
    files.inject(FaultPlan(.failing(EINTR), kinds: [kind], on: .only(1)))
    try callAll()
    #expect(files.callCount == 2 * callCount + 2, "one call more, and the removal")
  }

  private func callAll() throws {
    let created = try OpenFile("/file", .createNew, on: files)
    try [1, 2, 3].withUnsafeBytes { try created.writeAll($0, at: 0) }
    try created.close()
    let file = try OpenFile("/file", .readWrite, on: files)
    try file.reserve(offset: 0, count: 100)
    try file.truncate(to: 3)
    #expect(try file.synchronize() == .stable)
    #expect(try file.tryLock())
    try file.unlock()
    #expect(try file.size() == 3)
    _ = try file.identity()
    #expect(try read(file, 10).count == 3)
    try file.close()
  }

  @Test("A failed sync is not repeated")
  func failedSync() throws {
    let file = try OpenFile("/file", .createNew, on: files)
    files.inject(FaultPlan(.failing(EIO), kinds: [.synchronize], on: .only(1)))
    #expect(errno { () throws(SystemError) in try file.synchronize() } == EIO)
    #expect(files.operations.count { $0.kind == .synchronize } == 1)
    // A later one, by whomever, would claim that all is well.
    #expect(errno { () throws(SystemError) in try file.synchronize() } == EIO)
    #expect(files.operations.count { $0.kind == .synchronize } == 1)
  }

  @Test("A write that makes no progress fails instead of spinning")
  func noProgress() throws {
    let file = try OpenFile("/file", .createNew, on: files)
    files.inject(FaultPlan(.short(0), kinds: [.write]))
    #expect(throws: SystemError(errno: EIO, call: "pwrite")) {
      try [1, 2, 3].withUnsafeBytes { try file.writeAll($0, at: 0) }
    }
  }

  @Test("Closing reports failure once; calls after it are refused")
  func close() throws {
    let file = try OpenFile("/file", .createNew, on: files)
    files.inject(FaultPlan(.failing(EIO), kinds: [.close]))
    #expect(errno { () throws(SystemError) in try file.close() } == EIO)
    try file.close()
    #expect(files.openDescriptorCount == 0)
    // The number is another file's by now.
    let other = try OpenFile("/other", .createNew, on: files)
    #expect(errno { () throws(SystemError) in try file.truncate(to: 9) } == EBADF)
    #expect(try other.size() == 0)
  }

  @Test("The last reference closes; a forgotten file leaks no descriptor")
  func forgotten() throws {
    do {
      let file = try OpenFile("/file", .createNew, on: files)
      #expect(try file.tryLock())
    }
    #expect(files.openDescriptorCount == 0)
    let next = try OpenFile("/file", .readWrite, on: files)
    #expect(try next.tryLock(), "its lock is gone too")
  }

  @Test("A failing open leaves nothing open")
  func failingOpen() {
    #expect(throws: SystemError(errno: ENOENT, call: "open")) {
      try OpenFile("/absent", .read, on: files)
    }
    #expect(files.openDescriptorCount == 0)
  }
}

@Suite("System errors")
struct PlatformSystemErrorTests {
  @Test("An error says which call, why, and the number")
  func description() {
    let error = SystemError(errno: ENOSPC, call: "pwrite")
    #expect(error.description == "pwrite: No space left on device (errno \(ENOSPC))")
    #expect(!SystemError(errno: 99_999, call: "x").reason.isEmpty)
  }

  @Test("Each predicate holds for its errors only")
  func predicates() {
    let errors = [
      ENOENT, EEXIST, ENOTDIR, ENOTEMPTY, ENOSPC, EDQUOT, EPERM, EACCES, EMFILE, ENFILE, EROFS,
      EINTR, EIO, EBADF,
    ].map { SystemError(errno: $0, call: "x") }
    func matching(_ predicate: (SystemError) -> Bool) -> [Int32] {
      errors.filter(predicate).map(\.errno)
    }
    #expect(matching(\.isNotFound) == [ENOENT])
    #expect(matching(\.isAlreadyThere) == [EEXIST])
    #expect(matching(\.isNotADirectory) == [ENOTDIR])
    #expect(matching(\.isDirectoryNotEmpty) == [EEXIST, ENOTEMPTY])
    #expect(matching(\.isNoSpace) == [ENOSPC, EDQUOT])
    #expect(matching(\.isPermission) == [EPERM, EACCES])
    #expect(matching(\.isTooManyFiles) == [EMFILE, ENFILE])
    #expect(matching(\.isReadOnlyFileSystem) == [EROFS])
    #expect(matching(\.isInterrupted) == [EINTR])
    #expect(matching(\.isInputOutput) == [EIO])
    #expect(matching(\.isBadDescriptor) == [EBADF])
  }
}
