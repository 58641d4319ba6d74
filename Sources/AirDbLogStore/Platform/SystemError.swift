#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

// What the engine asks of a failed call, so that no other file compares errno values.
extension SystemError {
  /// `ENOENT`: no such file, or a directory on the way to it is absent.
  package var isNotFound: Bool { errno == ENOENT }

  /// `EEXIST`.
  package var isAlreadyThere: Bool { errno == EEXIST }

  /// `ENOTDIR`: something on the path is a file.
  package var isNotADirectory: Bool { errno == ENOTDIR }

  /// `ENOTEMPTY`, which POSIX also lets a system report as `EEXIST`.
  package var isDirectoryNotEmpty: Bool { errno == ENOTEMPTY || errno == EEXIST }

  /// `ENOSPC` or `EDQUOT`: freeing space helps.
  package var isNoSpace: Bool { errno == ENOSPC || errno == EDQUOT }

  /// `EPERM` or `EACCES`: not allowed, or the file is protected while the device is locked.
  package var isPermission: Bool { errno == EPERM || errno == EACCES }

  /// `EMFILE` or `ENFILE`: the process or the system is out of descriptors.
  package var isTooManyFiles: Bool { errno == EMFILE || errno == ENFILE }

  /// The system had no space, no descriptor or no permission to give: nothing has been done, and
  /// another attempt may succeed. Not so for a sync, which can fail with the same numbers for what was
  /// written before.
  package var isRefusal: Bool { isNoSpace || isTooManyFiles || isPermission }

  /// `EROFS`.
  package var isReadOnlyFileSystem: Bool { errno == EROFS }

  /// `EINTR`: a signal came first and nothing was done.
  package var isInterrupted: Bool { errno == EINTR }

  /// `EIO`: the device failed.
  package var isInputOutput: Bool { errno == EIO }

  /// `EBADF`: the descriptor is closed, or not open for this.
  package var isBadDescriptor: Bool { errno == EBADF }
}

extension SystemError: CustomStringConvertible {
  /// The call, what the system says about the error, and its number.
  package var description: String { "\(call): \(reason) (errno \(errno))" }

  /// What the system says about the error.
  package var reason: String {
    // strerror reuses a buffer only for numbers that the system does not know.
    guard let text = strerror(errno) else { return "unknown error" }
    return String(cString: text)
  }
}

/// Repeats a call until it ends otherwise than by a signal. For the calls that do nothing when
/// they are interrupted, which is all of ``Platform`` but `close`.
///
/// This holds for `fsync` too: an interrupted one has not consumed a pending write error, so that
/// the repeated call still reports it. A sync that failed otherwise must not be repeated.
package func uninterrupted<Result: ~Copyable>(
  _ call: () throws(SystemError) -> Result
) throws(SystemError) -> Result {
  while true {
    do {
      return try call()
    } catch {
      guard error.isInterrupted else { throw error }
    }
  }
}
