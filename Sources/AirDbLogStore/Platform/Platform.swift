/// The one seam between the engine and the world: every system call, the clock and randomness.
///
/// The engine never calls the operating system in another way, so that a simulated platform can
/// lose power at any operation, fail any call, and replay a run from a seed. One method is one
/// system call: partial reads and writes and interrupted calls come through as they are, and
/// ``OpenFile`` copes with them above the seam.
///
/// Paths are plain strings with "/" separators, passed to the system as UTF-8 bytes.
/// All methods may be called from any thread.
package protocol Platform: Sendable {
  // MARK: Files

  /// `open(2)`, always with `O_CLOEXEC`. `ENOENT` if the file is absent and the mode does not
  /// create it; `EEXIST` for `.createNew` on an existing file.
  func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> FileDescriptor

  /// `close(2)`. The descriptor is gone whatever the outcome.
  func close(_ file: FileDescriptor) throws(SystemError)

  /// `pread(2)`: the number of bytes read, 0 at or past the end of the file; may be short.
  func read(
    _ file: FileDescriptor, into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int

  /// `pwrite(2)`: the number of bytes written; may be short.
  func write(
    _ file: FileDescriptor, _ bytes: UnsafeRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int

  /// Makes the file's content survive what `level` names, and answers the level reached.
  /// The entry of the file in its directory is *not* covered.
  func synchronize(_ file: FileDescriptor, to level: SyncLevel) throws(SystemError) -> SyncLevel

  /// `ftruncate(2)`; growing gives zeros.
  func truncate(_ file: FileDescriptor, to size: UInt64) throws(SystemError)

  /// Allocates the range, so that a later write into it does not fail for lack of space. Extends
  /// the file where the range passes its end; the new bytes read as zeros. Bytes that were there
  /// keep their content.
  func reserve(_ file: FileDescriptor, offset: UInt64, count: UInt64) throws(SystemError)

  /// The size of the file in bytes.
  func size(of file: FileDescriptor) throws(SystemError) -> UInt64

  /// What makes the file the same file under another path.
  func identity(of file: FileDescriptor) throws(SystemError) -> FileIdentity

  /// `flock(2)`, exclusive and non-blocking: false if another descriptor holds the lock.
  func tryLock(_ file: FileDescriptor) throws(SystemError) -> Bool

  /// Releases the lock taken with ``tryLock(_:)``; closing the descriptor does so too.
  func unlock(_ file: FileDescriptor) throws(SystemError)

  // MARK: Directories

  /// `mkdir(2)`. `EEXIST` if it exists.
  func createDirectory(_ path: String) throws(SystemError)

  /// The names in a directory, without "." and "..", in no particular order.
  func list(_ path: String) throws(SystemError) -> [String]

  /// `rename(2)`: atomic, replaces the target.
  func rename(_ from: String, to target: String) throws(SystemError)

  /// `unlink(2)`.
  func remove(_ path: String) throws(SystemError)

  /// `rmdir(2)`.
  func removeDirectory(_ path: String) throws(SystemError)

  /// Makes the entries of a directory survive a power loss.
  func synchronizeDirectory(_ path: String) throws(SystemError)

  /// Sets what a directory has beyond POSIX on Apple platforms; elsewhere it does nothing.
  func setAttributes(_ path: String, _ attributes: DirectoryAttributes) throws(SystemError)

  /// Whether backups of the device leave the directory out; false where there are none.
  func isExcludedFromBackup(_ path: String) throws(SystemError) -> Bool

  // MARK: Clock, randomness, process

  /// Milliseconds since 1970 by the wall clock, which may jump either way.
  func wallClockMilliseconds() -> Int64

  /// Nanoseconds since some moment, by a clock that never goes back.
  func uptimeNanoseconds() -> UInt64

  /// Blocks this thread for at least so long, by the clock of ``uptimeNanoseconds()``.
  func sleep(nanoseconds: UInt64)

  /// Fills the buffer with bytes that cannot be predicted.
  func fillRandom(_ buffer: UnsafeMutableRawBufferPointer) throws(SystemError)

  /// The process, to notice that a handle was carried into a forked child.
  func processIdentifier() -> Int32
}

/// How a file is opened. Every mode is close-on-exec.
package enum OpenMode: Sendable, Equatable {
  /// For reading; must exist.
  case read
  /// For reading and writing; must exist.
  case readWrite
  /// For reading and writing; must not exist.
  case createNew
  /// For reading and writing; created when absent.
  case createIfAbsent
}

/// What content survives after ``Platform/synchronize(_:to:)``.
package enum SyncLevel: Int, Sendable, Comparable {
  /// Handed to the device, which may still hold it in a volatile cache: `fsync` on Apple
  /// platforms, where that is the fallback on file systems without `F_FULLFSYNC`.
  case device = 1
  /// On stable storage: `fdatasync` on Linux, `F_FULLFSYNC` on Apple platforms.
  case stable = 2

  package static func < (a: SyncLevel, b: SyncLevel) -> Bool { a.rawValue < b.rawValue }
}

/// An open file of a platform.
package struct FileDescriptor: Sendable, Hashable {
  package let rawValue: Int32
  package init(rawValue: Int32) { self.rawValue = rawValue }
}

/// Device and inode.
package struct FileIdentity: Sendable, Hashable {
  package let device: UInt64
  package let inode: UInt64
  package init(device: UInt64, inode: UInt64) {
    self.device = device
    self.inode = inode
  }
}

/// A failed system call.
package struct SystemError: Error, Sendable, Equatable {
  /// The value of `errno`.
  package let errno: Int32
  /// The name of the call, as in its manual page.
  package let call: String

  package init(errno: Int32, call: String) {
    self.errno = errno
    self.call = call
  }
}
