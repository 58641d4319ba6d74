#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// An open file of a ``Platform``: owns the descriptor, repeats interrupted calls, and carries
/// partial reads and writes to their end.
///
/// Usable from any thread. Whoever calls ``close()`` sees to it that no other call is under way;
/// calls after it fail with `EBADF`. Dropping the last reference closes too, silently.
package final class OpenFile: Sendable {
  package let path: String
  private let platform: any Platform
  private let descriptor: FileDescriptor
  private let isOpen = Locked(true)
  private let knownIdentity = Locked<FileIdentity?>(nil)
  /// One sync at a time, so that whoever comes after one that failed knows of it.
  private let syncing = Monitor()
  private let failedSync = Locked<SystemError?>(nil)

  /// Opens the file. See ``Platform/open(_:_:)``.
  package init(
    _ path: String, _ mode: OpenMode, on platform: any Platform
  ) throws(SystemError) {
    self.path = path
    self.platform = platform
    descriptor = try uninterrupted { () throws(SystemError) in try platform.open(path, mode) }
  }

  deinit {
    // Nobody is left to hear of a failure. Those who must know call close().
    try? close()
  }

  /// Closes the file and reports what the system says about it. The descriptor is gone whatever
  /// the outcome; a second call does nothing.
  package func close() throws(SystemError) {
    let wasOpen = isOpen.withLock { isOpen in
      defer { isOpen = false }
      return isOpen
    }
    if wasOpen { try platform.close(descriptor) }
  }

  // MARK: Content

  /// Fills the buffer from `offset` on, as far as the file goes. Answers the number of bytes got:
  /// fewer than the buffer holds only at the end of the file.
  package func readExactly(
    into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    var done = 0
    while done < buffer.count {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
      let position = offset + UInt64(done)
      let count = try call { (file) throws(SystemError) in
        try platform.read(file, into: rest, at: position)
      }
      if count == 0 { break }
      done += count
    }
    return done
  }

  /// Writes all bytes at `offset`. When it throws, any part of them may have been written.
  package func writeAll(
    _ bytes: UnsafeRawBufferPointer, at offset: UInt64
  ) throws(SystemError) {
    var done = 0
    while done < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
      let position = offset + UInt64(done)
      let count = try call { (file) throws(SystemError) in
        try platform.write(file, rest, at: position)
      }
      // POSIX leaves open that nothing is written without an error; that must not spin.
      guard count > 0 else { throw SystemError(errno: EIO, call: "pwrite") }
      done += count
    }
  }

  /// Makes the content survive, and answers the level reached. After a failure the content is
  /// unknown: later calls fail in the same way, without asking the system, which would say that all
  /// is well. See ``Platform/synchronize(_:to:)``.
  @discardableResult
  package func synchronize(to level: SyncLevel = .stable) throws(SystemError) -> SyncLevel {
    // Asked for now, since a device that fails a sync may answer nothing afterwards.
    let identity = try identity()
    return try syncing.withLock { () throws(SystemError) in
      if let failure = failedSync.withLock({ $0 }) { throw failure }
      do throws(SystemError) {
        return try call { (file) throws(SystemError) in try platform.synchronize(file, to: level) }
      } catch {
        // Of a file that has been closed nothing was asked.
        if !error.isBadDescriptor {
          failedSync.withLock { $0 = error }
          FailedSyncs.insert(identity)
        }
        throw error
      }
    }
  }

  /// Sets the size of the file. See ``Platform/truncate(_:to:)``.
  package func truncate(to size: UInt64) throws(SystemError) {
    try call { (file) throws(SystemError) in try platform.truncate(file, to: size) }
  }

  /// Allocates a range of the file. See ``Platform/reserve(_:offset:count:)``.
  package func reserve(offset: UInt64, count: UInt64) throws(SystemError) {
    try call { (file) throws(SystemError) in
      try platform.reserve(file, offset: offset, count: count)
    }
  }

  // MARK: The file itself

  /// The size of the file in bytes.
  package func size() throws(SystemError) -> UInt64 {
    try call { (file) throws(SystemError) in try platform.size(of: file) }
  }

  /// What makes the file the same file under another path.
  package func identity() throws(SystemError) -> FileIdentity {
    if let known = knownIdentity.withLock({ $0 }) { return known }
    let identity = try call { (file) throws(SystemError) in try platform.identity(of: file) }
    knownIdentity.withLock { $0 = identity }
    return identity
  }

  /// Takes the lock of the file, or answers false when another descriptor holds it.
  package func tryLock() throws(SystemError) -> Bool {
    try call { (file) throws(SystemError) in try platform.tryLock(file) }
  }

  /// Releases the lock taken with ``tryLock()``.
  package func unlock() throws(SystemError) {
    try call { (file) throws(SystemError) in try platform.unlock(file) }
  }

  private func call<Result>(
    _ body: (FileDescriptor) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    guard isOpen.withLock({ $0 }) else { throw SystemError(errno: EBADF, call: "closed file") }
    return try uninterrupted { () throws(SystemError) in try body(descriptor) }
  }
}
