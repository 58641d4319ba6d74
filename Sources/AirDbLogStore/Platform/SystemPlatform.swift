import CAirDbPlatform

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The operating system. Each method names its call in ``Platform``; nothing is retried here.
package struct SystemPlatform: Platform {
  /// Darwin refuses counts above `INT_MAX`, and any count may come back short anyway.
  private static let greatestTransfer = 1 << 30

  package init() {}

  // MARK: Files

  package func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> FileDescriptor {
    let flags: CInt =
      switch mode {
      case .read: O_RDONLY
      case .readWrite: O_RDWR
      case .createNew: O_RDWR | O_CREAT | O_EXCL
      case .createIfAbsent: O_RDWR | O_CREAT
      }
    return FileDescriptor(rawValue: try openDescriptor(path, flags))
  }

  package func close(_ file: FileDescriptor) throws(SystemError) {
    guard systemClose(file.rawValue) != 0 else { return }
    // POSIX leaves it to the system whether an interrupted close has closed. Linux and Darwin
    // have, so that to repeat it could close a descriptor that another thread just got.
    let error = SystemError(errno: errno, call: "close")
    guard error.isInterrupted else { throw error }
  }

  package func read(
    _ file: FileDescriptor, into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    let count = min(buffer.count, Self.greatestTransfer)
    // No file reaches so far. The system would call the argument invalid, and an offset out of a
    // damaged file is no failure of the device.
    guard let position = off_t(exactly: offset), position <= off_t.max - off_t(count) else {
      return 0
    }
    return try checked(pread(file.rawValue, buffer.baseAddress, count, position), "pread")
  }

  package func write(
    _ file: FileDescriptor, _ bytes: UnsafeRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    let position = try fileOffset(offset, "pwrite")
    let count = min(bytes.count, Self.greatestTransfer)
    return try checked(pwrite(file.rawValue, bytes.baseAddress, count, position), "pwrite")
  }

  package func synchronize(
    _ file: FileDescriptor, to level: SyncLevel
  ) throws(SystemError) -> SyncLevel {
    #if canImport(Darwin)
      return try synchronizeDarwin(file.rawValue, to: level)
    #else
      try checked(fdatasync(file.rawValue), "fdatasync")
      return .stable
    #endif
  }

  package func truncate(_ file: FileDescriptor, to size: UInt64) throws(SystemError) {
    try checked(ftruncate(file.rawValue, try fileOffset(size, "ftruncate")), "ftruncate")
  }

  package func reserve(
    _ file: FileDescriptor, offset: UInt64, count: UInt64
  ) throws(SystemError) {
    guard count > 0 else { return }
    let (end, overflow) = offset.addingReportingOverflow(count)
    guard !overflow else { throw SystemError(errno: EFBIG, call: "fallocate") }
    _ = try fileOffset(end, "fallocate")
    let status = airdb_reserve(file.rawValue, offset, count)
    switch status {
    case 0: return
    case EOPNOTSUPP, ENOSYS, EINVAL: try extendWithZeros(file, to: end)
    default: throw SystemError(errno: status, call: "fallocate")
    }
  }

  package func size(of file: FileDescriptor) throws(SystemError) -> UInt64 {
    UInt64(try status(of: file).st_size)
  }

  package func identity(of file: FileDescriptor) throws(SystemError) -> FileIdentity {
    let status = try status(of: file)
    return FileIdentity(
      device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(status.st_ino))
  }

  package func tryLock(_ file: FileDescriptor) throws(SystemError) -> Bool {
    if flock(file.rawValue, LOCK_EX | LOCK_NB) == 0 { return true }
    guard errno == EWOULDBLOCK else { throw SystemError(errno: errno, call: "flock") }
    return false
  }

  package func unlock(_ file: FileDescriptor) throws(SystemError) {
    try checked(flock(file.rawValue, LOCK_UN), "flock")
  }

  // MARK: Directories

  package func createDirectory(_ path: String) throws(SystemError) {
    try checked(mkdir(path, 0o755), "mkdir")
  }

  package func list(_ path: String) throws(SystemError) -> [String] {
    let descriptor = try openDescriptor(path, O_RDONLY | O_DIRECTORY)
    guard let stream = fdopendir(descriptor) else {
      let error = SystemError(errno: errno, call: "fdopendir")
      _ = systemClose(descriptor)
      throw error
    }
    defer { closedir(stream) }
    var names: [String] = []
    while true {
      // The end and a failure both give nil; only the failure sets errno.
      errno = 0
      guard let entry = readdir(stream) else { break }
      // The system's entry may be shorter than the declared struct, so it is not copied whole.
      let name = UnsafeRawPointer(entry) + MemoryLayout<dirent>.offset(of: \.d_name)!
      let text = String(cString: name.assumingMemoryBound(to: CChar.self))
      if text != "." && text != ".." { names.append(text) }
    }
    guard errno == 0 else { throw SystemError(errno: errno, call: "readdir") }
    return names
  }

  package func rename(_ from: String, to target: String) throws(SystemError) {
    try checked(systemRename(from, target), "rename")
  }

  package func remove(_ path: String) throws(SystemError) {
    try checked(unlink(path), "unlink")
  }

  package func removeDirectory(_ path: String) throws(SystemError) {
    try checked(rmdir(path), "rmdir")
  }

  package func synchronizeDirectory(_ path: String) throws(SystemError) {
    let descriptor = try openDescriptor(path, O_RDONLY | O_DIRECTORY)
    defer { _ = systemClose(descriptor) }
    #if canImport(Darwin)
      _ = try synchronizeDarwin(descriptor, to: .stable)
    #else
      try checked(fsync(descriptor), "fsync")
    #endif
  }

  // MARK: Clock, randomness, process

  package func wallClockMilliseconds() -> Int64 {
    var now = timespec()
    precondition(clock_gettime(CLOCK_REALTIME, &now) == 0, "the system has no wall clock")
    return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
  }

  package func uptimeNanoseconds() -> UInt64 {
    var now = timespec()
    precondition(clock_gettime(CLOCK_MONOTONIC, &now) == 0, "the system has no steady clock")
    return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
  }

  package func sleep(nanoseconds: UInt64) {
    let end = uptimeNanoseconds() &+ nanoseconds
    var now = end &- nanoseconds
    while now < end {
      let left = end - now
      var time = timespec(
        tv_sec: .init(left / 1_000_000_000), tv_nsec: .init(left % 1_000_000_000))
      // A signal ends it early.
      nanosleep(&time, nil)
      now = uptimeNanoseconds()
    }
  }

  package func fillRandom(_ buffer: UnsafeMutableRawBufferPointer) throws(SystemError) {
    guard let start = buffer.baseAddress else { return }
    #if canImport(Darwin)
      arc4random_buf(start, buffer.count)
    #else
      // getentropy fills at most 256 bytes a call, and is not interrupted.
      for offset in stride(from: 0, to: buffer.count, by: 256) {
        try checked(getentropy(start + offset, min(256, buffer.count - offset)), "getentropy")
      }
    #endif
  }

  package func processIdentifier() -> Int32 { getpid() }
}

// MARK: - Pieces

/// Opens with `O_CLOEXEC`, always.
private func openDescriptor(_ path: String, _ flags: CInt) throws(SystemError) -> CInt {
  try checked(systemOpen(path, flags | O_CLOEXEC, 0o644), "open")
}

private func status(of file: FileDescriptor) throws(SystemError) -> stat {
  var status = stat()
  try checked(fstat(file.rawValue, &status), "fstat")
  return status
}

/// An offset or size as the system takes it; `off_t` is signed.
private func fileOffset(_ value: UInt64, _ call: String) throws(SystemError) -> off_t {
  guard let offset = off_t(exactly: value) else { throw SystemError(errno: EFBIG, call: call) }
  return offset
}

extension SystemPlatform {
  /// What reserving is on file systems that cannot allocate. Bytes before the end of the file are
  /// left alone, since zeros would overwrite content there. After a failure the file has its old
  /// size again, if the system lets it.
  package func extendWithZeros(_ file: FileDescriptor, to end: UInt64) throws(SystemError) {
    let start = try size(of: file)
    let zeros = [UInt8](repeating: 0, count: 1 << 16)
    var position = start
    while position < end {
      let count = Int(min(UInt64(zeros.count), end - position))
      let written = pwrite(file.rawValue, zeros, count, try fileOffset(position, "pwrite"))
      guard written > 0 else {
        let error = SystemError(errno: written < 0 ? errno : EIO, call: "pwrite")
        _ = ftruncate(file.rawValue, try fileOffset(start, "ftruncate"))
        throw error
      }
      position += UInt64(written)
    }
  }
}

#if canImport(Darwin)
  /// `fsync` hands the content to a drive that may keep it in a volatile cache; `F_FULLFSYNC` makes
  /// the drive write it too, where the file system knows it: SMB answers `ENOTSUP`, others `ENOTTY`.
  private func synchronizeDarwin(
    _ descriptor: CInt, to level: SyncLevel
  ) throws(SystemError) -> SyncLevel {
    if level == .stable {
      if fcntl(descriptor, F_FULLFSYNC) != -1 { return .stable }
      guard errno == ENOTSUP || errno == ENOTTY else {
        throw SystemError(errno: errno, call: "fcntl(F_FULLFSYNC)")
      }
    }
    try checked(fsync(descriptor), "fsync")
    return .device
  }
#endif

/// Throws what `errno` holds when the result of a call is negative.
@discardableResult
private func checked<Result: SignedInteger>(
  _ result: Result, _ call: String
) throws(SystemError) -> Result {
  guard result >= 0 else { throw SystemError(errno: errno, call: call) }
  return result
}

// MARK: - Calls that share their name with a method

private func systemOpen(_ path: String, _ flags: CInt, _ mode: mode_t) -> CInt {
  open(path, flags, mode)
}

private func systemClose(_ descriptor: CInt) -> CInt { close(descriptor) }

private func systemRename(_ from: String, _ target: String) -> CInt { rename(from, target) }
