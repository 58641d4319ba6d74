import AirDbLogStore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A platform that behaves like another one but in what a conforming type overrides.
protocol WrappedPlatform: Platform {
  associatedtype Wrapped: Platform
  var wrapped: Wrapped { get }
}

extension WrappedPlatform {
  func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> FileDescriptor {
    try wrapped.open(path, mode)
  }

  func close(_ file: FileDescriptor) throws(SystemError) { try wrapped.close(file) }

  func read(
    _ file: FileDescriptor, into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    try wrapped.read(file, into: buffer, at: offset)
  }

  func write(
    _ file: FileDescriptor, _ bytes: UnsafeRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    try wrapped.write(file, bytes, at: offset)
  }

  func synchronize(
    _ file: FileDescriptor, to level: SyncLevel
  ) throws(SystemError) -> SyncLevel {
    try wrapped.synchronize(file, to: level)
  }

  func truncate(_ file: FileDescriptor, to size: UInt64) throws(SystemError) {
    try wrapped.truncate(file, to: size)
  }

  func reserve(_ file: FileDescriptor, offset: UInt64, count: UInt64) throws(SystemError) {
    try wrapped.reserve(file, offset: offset, count: count)
  }

  func size(of file: FileDescriptor) throws(SystemError) -> UInt64 { try wrapped.size(of: file) }

  func identity(of file: FileDescriptor) throws(SystemError) -> FileIdentity {
    try wrapped.identity(of: file)
  }

  func tryLock(_ file: FileDescriptor) throws(SystemError) -> Bool { try wrapped.tryLock(file) }

  func unlock(_ file: FileDescriptor) throws(SystemError) { try wrapped.unlock(file) }

  func createDirectory(_ path: String) throws(SystemError) { try wrapped.createDirectory(path) }

  func list(_ path: String) throws(SystemError) -> [String] { try wrapped.list(path) }

  func rename(_ from: String, to target: String) throws(SystemError) {
    try wrapped.rename(from, to: target)
  }

  func remove(_ path: String) throws(SystemError) { try wrapped.remove(path) }

  func removeDirectory(_ path: String) throws(SystemError) { try wrapped.removeDirectory(path) }

  func synchronizeDirectory(_ path: String) throws(SystemError) {
    try wrapped.synchronizeDirectory(path)
  }

  func setAttributes(_ path: String, _ attributes: DirectoryAttributes) throws(SystemError) {
    try wrapped.setAttributes(path, attributes)
  }

  func isExcludedFromBackup(_ path: String) throws(SystemError) -> Bool {
    try wrapped.isExcludedFromBackup(path)
  }

  func wallClockMilliseconds() -> Int64 { wrapped.wallClockMilliseconds() }

  func fillRandom(_ buffer: UnsafeMutableRawBufferPointer) throws(SystemError) {
    try wrapped.fillRandom(buffer)
  }

  func processIdentifier() -> Int32 { wrapped.processIdentifier() }
}

/// Memory in which every lock succeeds.
struct LenientLockPlatform: WrappedPlatform {
  let wrapped = MemoryPlatform()
  func tryLock(_ file: FileDescriptor) throws(SystemError) -> Bool { true }
  func unlock(_ file: FileDescriptor) throws(SystemError) {}
}

/// The system, which can run out of descriptors for the lock file.
final class BlockedPlatform: WrappedPlatform {
  let wrapped = SystemPlatform()
  private let state = Locked(false)

  var blocks: Bool {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }

  func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> FileDescriptor {
    if blocks, path.hasSuffix("/LOCK") { throw SystemError(errno: EMFILE, call: "open") }
    return try wrapped.open(path, mode)
  }
}
