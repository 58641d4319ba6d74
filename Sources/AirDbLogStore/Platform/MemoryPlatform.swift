/// A file system that lives as long as this object, for stores that need none. Nothing ever waits
/// for a device, and a sync has nothing to do. Clock and randomness are the system's.
package final class MemoryPlatform: Platform {
  private let tree = Locked(FileTree())
  private let system = SystemPlatform()

  package init() {}

  // MARK: Files

  package func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> FileDescriptor {
    try tree.withLock { (tree) throws(SystemError) in try tree.open(path, mode) }
  }

  package func close(_ file: FileDescriptor) throws(SystemError) {
    try tree.withLock { (tree) throws(SystemError) in try tree.close(file) }
  }

  package func read(
    _ file: FileDescriptor, into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    try tree.withLock { (tree) throws(SystemError) in
      try tree.read(file, into: buffer, at: offset)
    }
  }

  package func write(
    _ file: FileDescriptor, _ bytes: UnsafeRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    try tree.withLock { (tree) throws(SystemError) in try tree.write(file, bytes, at: offset) }
  }

  package func synchronize(
    _ file: FileDescriptor, to level: SyncLevel
  ) throws(SystemError) -> SyncLevel {
    try tree.withLock { (tree) throws(SystemError) in
      _ = try tree.descriptor(file, for: "fsync")
    }
    return .stable
  }

  package func truncate(_ file: FileDescriptor, to size: UInt64) throws(SystemError) {
    try tree.withLock { (tree) throws(SystemError) in try tree.truncate(file, to: size) }
  }

  package func reserve(
    _ file: FileDescriptor, offset: UInt64, count: UInt64
  ) throws(SystemError) {
    try tree.withLock { (tree) throws(SystemError) in
      try tree.reserve(file, offset: offset, count: count)
    }
  }

  package func size(of file: FileDescriptor) throws(SystemError) -> UInt64 {
    try tree.withLock { (tree) throws(SystemError) in try tree.size(of: file) }
  }

  /// The device is this object, so that files of two memory platforms are never the same.
  package func identity(of file: FileDescriptor) throws(SystemError) -> FileIdentity {
    let inode = try tree.withLock { (tree) throws(SystemError) in
      try tree.descriptor(file, for: "fstat").inode
    }
    return FileIdentity(device: UInt64(UInt(bitPattern: ObjectIdentifier(self))), inode: inode)
  }

  package func tryLock(_ file: FileDescriptor) throws(SystemError) -> Bool {
    try tree.withLock { (tree) throws(SystemError) in try tree.tryLock(file) }
  }

  package func unlock(_ file: FileDescriptor) throws(SystemError) {
    try tree.withLock { (tree) throws(SystemError) in try tree.unlock(file) }
  }

  // MARK: Directories

  package func createDirectory(_ path: String) throws(SystemError) {
    try tree.withLock { (tree) throws(SystemError) in try tree.createDirectory(path) }
  }

  package func list(_ path: String) throws(SystemError) -> [String] {
    try tree.withLock { (tree) throws(SystemError) in try tree.list(path) }
  }

  package func rename(_ from: String, to target: String) throws(SystemError) {
    try tree.withLock { (tree) throws(SystemError) in try tree.rename(from, to: target) }
  }

  package func remove(_ path: String) throws(SystemError) {
    try tree.withLock { (tree) throws(SystemError) in try tree.remove(path) }
  }

  package func removeDirectory(_ path: String) throws(SystemError) {
    try tree.withLock { (tree) throws(SystemError) in try tree.removeDirectory(path) }
  }

  package func synchronizeDirectory(_ path: String) throws(SystemError) {
    try tree.withLock { (tree) throws(SystemError) in
      _ = try tree.directory(at: path, for: "open")
    }
  }

  package func setAttributes(
    _ path: String, _ attributes: DirectoryAttributes
  ) throws(SystemError) {}

  package func isExcludedFromBackup(_ path: String) throws(SystemError) -> Bool { false }

  // MARK: Clock, randomness, process

  package func wallClockMilliseconds() -> Int64 { system.wallClockMilliseconds() }

  package func uptimeNanoseconds() -> UInt64 { system.uptimeNanoseconds() }

  package func sleep(nanoseconds: UInt64) { system.sleep(nanoseconds: nanoseconds) }

  package func fillRandom(_ buffer: UnsafeMutableRawBufferPointer) throws(SystemError) {
    try system.fillRandom(buffer)
  }

  package func processIdentifier() -> Int32 { system.processIdentifier() }
}
