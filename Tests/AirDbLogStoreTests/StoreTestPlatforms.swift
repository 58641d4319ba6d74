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

  func uptimeNanoseconds() -> UInt64 { wrapped.uptimeNanoseconds() }

  func sleep(nanoseconds: UInt64) { wrapped.sleep(nanoseconds: nanoseconds) }

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

/// Runs each job where it is scheduled, so that it comes before everything that follows; those that
/// are to come later never come.
struct ImmediateScheduler: Scheduler {
  func schedule(_ job: @escaping @Sendable () -> Void) { job() }
  func schedule(afterMilliseconds delay: Int, _ job: @escaping @Sendable () -> Void) {}
  func help() -> Bool { false }
}

/// Memory in which one file is longer than what was written to it: the rest is a hole.
final class SparsePlatform: WrappedPlatform {
  let wrapped: MemoryPlatform
  private let name: String
  private let state: Locked<(files: Set<FileDescriptor>, size: UInt64, greatestRead: Int)>

  init(_ wrapped: MemoryPlatform, name: String, size: UInt64) {
    self.wrapped = wrapped
    self.name = name
    state = Locked((files: [], size: size, greatestRead: 0))
  }

  /// The most bytes that one call asked for.
  var greatestRead: Int { state.withLock { $0.greatestRead } }

  func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> FileDescriptor {
    let file = try wrapped.open(path, mode)
    state.withLock { state in
      if path.hasSuffix(name) { state.files.insert(file) } else { state.files.remove(file) }
    }
    return file
  }

  func size(of file: FileDescriptor) throws(SystemError) -> UInt64 {
    let size = try wrapped.size(of: file)
    return state.withLock { $0.files.contains(file) ? max(size, $0.size) : size }
  }

  func truncate(_ file: FileDescriptor, to size: UInt64) throws(SystemError) {
    try wrapped.truncate(file, to: size)
    state.withLock { if $0.files.contains(file) { $0.size = size } }
  }

  func read(
    _ file: FileDescriptor, into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    let count = try wrapped.read(file, into: buffer, at: offset)
    let size = try self.size(of: file)
    state.withLock { $0.greatestRead = max($0.greatestRead, buffer.count) }
    guard count == 0, offset < size else { return count }
    let hole = Int(min(UInt64(buffer.count), size - offset))
    UnsafeMutableRawBufferPointer(rebasing: buffer[..<hole]).initializeMemory(
      as: UInt8.self, repeating: 0)
    return hole
  }
}

/// Memory that counts the bytes that are read.
final class ReadCountingPlatform: WrappedPlatform {
  let wrapped = MemoryPlatform()
  private let count = Locked(0)

  func read(
    _ file: FileDescriptor, into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    let got = try wrapped.read(file, into: buffer, at: offset)
    count.withLock { $0 += got }
    return got
  }

  /// The bytes since the last call.
  func take() -> Int {
    count.withLock { count in
      defer { count = 0 }
      return count
    }
  }
}
