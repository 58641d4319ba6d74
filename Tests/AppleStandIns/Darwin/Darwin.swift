// Stands in for Apple's module Darwin: the C library of Linux, and what only Darwin has of that
// which the engine uses. It does not have Darwin's own widths of types such as `dev_t` and `mode_t`.
@_exported import CDarwin
@_exported import Glibc

/// What `fcntl(F_FULLFSYNC)` does in the stand-in: how often it was called, and the error that it
/// answers.
public struct FullSync {
  public var calls = 0
  /// The value of `errno` with which it fails; 0 if it succeeds.
  public var failure: CInt

  public init(failure: CInt = 0) {
    self.failure = failure
  }
}

/// Set by a program between its own calls, on one thread.
public nonisolated(unsafe) var fullSync = FullSync()

public func fcntl(_ descriptor: CInt, _ command: CInt) -> CInt {
  guard command == F_FULLFSYNC else { return Glibc.fcntl(descriptor, command) }
  fullSync.calls += 1
  guard fullSync.failure == 0 else {
    errno = fullSync.failure
    return -1
  }
  return fsync(descriptor)
}
