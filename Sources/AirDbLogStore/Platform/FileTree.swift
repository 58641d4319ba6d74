#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A file system as a value: directories, files, open descriptors and locks, with the semantics
/// and the errors of POSIX as far as ``Platform`` can tell. Copying it is cheap.
///
/// A file has one name at most, since the seam has no hard links; one without a name lives until
/// its last descriptor closes. Relative paths start at the root.
package struct FileTree: Sendable {
  package typealias Inode = UInt64

  package static let root: Inode = 1

  package struct Descriptor: Sendable {
    package let inode: Inode
    package let isWritable: Bool
  }

  /// Where a path leads: the directory that would hold the last name, that name, and what it
  /// names there. The root has no name.
  package struct Place: Sendable {
    package let directory: Inode
    package let name: String?
    package let inode: Inode?
  }

  package private(set) var files: [Inode: FileBytes] = [:]
  package private(set) var directories: [Inode: [String: Inode]] = [Self.root: [:]]
  private var nextInode: Inode = Self.root + 1

  private var descriptors: [FileDescriptor: Descriptor] = [:]
  private var freeDescriptors: [Int32] = []
  private var lockHolders: [Inode: FileDescriptor] = [:]

  package init() {}

  /// A file system with this content and nothing open. What cannot be reached from the root is
  /// left out.
  package init(files: [Inode: FileBytes], directories: [Inode: [String: Inode]]) {
    self.directories = [:]
    var unvisited = [Self.root]
    while let inode = unvisited.popLast() {
      if let entries = directories[inode] {
        self.directories[inode] = entries
        unvisited.append(contentsOf: entries.values)
        nextInode = max(nextInode, inode + 1)
      } else if let bytes = files[inode] {
        self.files[inode] = bytes
        nextInode = max(nextInode, inode + 1)
      }
    }
  }

  // MARK: Paths

  /// Walks a path as the system does: `ENOENT` where a directory on the way is absent, `ENOTDIR`
  /// where it is a file. The last name need not exist.
  package func place(of path: String, for call: String) throws(SystemError) -> Place {
    guard !path.isEmpty else { throw SystemError(errno: ENOENT, call: call) }
    var parents: [Inode] = []
    var place = Place(directory: Self.root, name: nil, inode: Self.root)
    for component in path.split(separator: "/") where component != "." {
      guard let directory = place.inode else { throw SystemError(errno: ENOENT, call: call) }
      guard let entries = directories[directory] else {
        throw SystemError(errno: ENOTDIR, call: call)
      }
      if component == ".." {
        place = Place(directory: Self.root, name: nil, inode: parents.popLast() ?? Self.root)
      } else {
        parents.append(directory)
        let name = String(component)
        place = Place(directory: directory, name: name, inode: entries[name])
      }
    }
    return place
  }

  /// What a path names; `ENOENT` if nothing.
  package func inode(at path: String, for call: String) throws(SystemError) -> Inode {
    guard let inode = try place(of: path, for: call).inode else {
      throw SystemError(errno: ENOENT, call: call)
    }
    return inode
  }

  /// The directory that a path names; `ENOTDIR` if it names a file.
  package func directory(at path: String, for call: String) throws(SystemError) -> Inode {
    let inode = try inode(at: path, for: call)
    guard directories[inode] != nil else { throw SystemError(errno: ENOTDIR, call: call) }
    return inode
  }
}

// MARK: - Descriptors

extension FileTree {
  /// Opens a file, creating it as the mode says. The lowest free descriptor is used, as POSIX
  /// demands, so that a use after close meets another file in tests as it would in life.
  package mutating func open(
    _ path: String, _ mode: OpenMode
  ) throws(SystemError) -> FileDescriptor {
    let place = try place(of: path, for: "open")
    let inode: Inode
    if let existing = place.inode {
      guard mode != .createNew else { throw SystemError(errno: EEXIST, call: "open") }
      let isDirectory = directories[existing] != nil
      guard !isDirectory || mode == .read else { throw SystemError(errno: EISDIR, call: "open") }
      inode = existing
    } else {
      guard mode == .createNew || mode == .createIfAbsent, let name = place.name else {
        throw SystemError(errno: ENOENT, call: "open")
      }
      guard !path.hasSuffix("/") else { throw SystemError(errno: EISDIR, call: "open") }
      inode = makeInode()
      files[inode] = FileBytes()
      directories[place.directory]?[name] = inode
    }
    // 0, 1 and 2 are never a file of the engine.
    let file = FileDescriptor(
      rawValue: freeDescriptors.popLast() ?? Int32(3 + descriptors.count))
    descriptors[file] = Descriptor(inode: inode, isWritable: mode != .read)
    return file
  }

  package mutating func close(_ file: FileDescriptor) throws(SystemError) {
    let inode = try descriptor(file, for: "close").inode
    try unlock(file)
    descriptors[file] = nil
    freeDescriptors.append(file.rawValue)
    freeDescriptors.sort(by: >)
    forgetIfUnreachable(inode)
  }

  /// The open file behind a descriptor; `EBADF` if it is closed.
  package func descriptor(
    _ file: FileDescriptor, for call: String
  ) throws(SystemError) -> Descriptor {
    guard let descriptor = descriptors[file] else { throw SystemError(errno: EBADF, call: call) }
    return descriptor
  }

  /// The inode behind a descriptor that is open for writing; else fails with `denied`.
  package func writableInode(
    _ file: FileDescriptor, for call: String, denied: CInt = EBADF
  ) throws(SystemError) -> Inode {
    let descriptor = try descriptor(file, for: call)
    guard descriptor.isWritable else { throw SystemError(errno: denied, call: call) }
    return descriptor.inode
  }

  package var openDescriptorCount: Int { descriptors.count }

  /// Takes the lock of a file. A lock belongs to the descriptor: a second one of the same file is
  /// refused, also within the process.
  package mutating func tryLock(_ file: FileDescriptor) throws(SystemError) -> Bool {
    let inode = try descriptor(file, for: "flock").inode
    if let holder = lockHolders[inode] { return holder == file }
    lockHolders[inode] = file
    return true
  }

  package mutating func unlock(_ file: FileDescriptor) throws(SystemError) {
    let inode = try descriptor(file, for: "flock").inode
    if lockHolders[inode] == file { lockHolders[inode] = nil }
  }

  private mutating func makeInode() -> Inode {
    defer { nextInode += 1 }
    return nextInode
  }

  private mutating func forgetIfUnreachable(_ inode: Inode) {
    guard files[inode] != nil, !descriptors.values.contains(where: { $0.inode == inode }) else {
      return
    }
    if !directories.values.contains(where: { $0.values.contains(inode) }) { files[inode] = nil }
  }
}

// MARK: - Content

extension FileTree {
  package func read(
    _ file: FileDescriptor, into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    let inode = try descriptor(file, for: "pread").inode
    guard let bytes = files[inode] else { throw SystemError(errno: EISDIR, call: "pread") }
    return bytes.read(into: buffer, at: offset)
  }

  package mutating func write(
    _ file: FileDescriptor, _ bytes: UnsafeRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    let inode = try writableInode(file, for: "pwrite")
    try Self.checkEnd(offset, UInt64(bytes.count), "pwrite")
    files[inode]?.write(bytes, at: offset)
    return bytes.count
  }

  package mutating func truncate(_ file: FileDescriptor, to size: UInt64) throws(SystemError) {
    let inode = try writableInode(file, for: "ftruncate", denied: EINVAL)
    try Self.checkEnd(size, 0, "ftruncate")
    files[inode]?.truncate(to: size)
  }

  package mutating func reserve(
    _ file: FileDescriptor, offset: UInt64, count: UInt64
  ) throws(SystemError) {
    let inode = try writableInode(file, for: "fallocate")
    guard count > 0, let size = files[inode]?.size else { return }
    let end = try Self.checkEnd(offset, count, "fallocate")
    if end > size { files[inode]?.truncate(to: end) }
  }

  package func size(of file: FileDescriptor) throws(SystemError) -> UInt64 {
    files[try descriptor(file, for: "fstat").inode]?.size ?? 0
  }

  /// Gives a file another content, whoever has it open.
  package mutating func replaceContent(of inode: Inode, with bytes: FileBytes) {
    precondition(files[inode] != nil, "not a file")
    files[inode] = bytes
  }

  /// The end of a range; `EFBIG` where a signed 64-bit offset cannot reach it.
  @discardableResult
  package static func checkEnd(
    _ offset: UInt64, _ count: UInt64, _ call: String
  ) throws(SystemError) -> UInt64 {
    let (end, overflow) = offset.addingReportingOverflow(count)
    guard !overflow, end <= UInt64(Int64.max) else { throw SystemError(errno: EFBIG, call: call) }
    return end
  }
}

// MARK: - Entries

extension FileTree {
  package mutating func createDirectory(_ path: String) throws(SystemError) {
    let place = try place(of: path, for: "mkdir")
    guard place.inode == nil, let name = place.name else {
      throw SystemError(errno: EEXIST, call: "mkdir")
    }
    let inode = makeInode()
    directories[inode] = [:]
    directories[place.directory]?[name] = inode
  }

  /// The names in a directory, sorted.
  package func list(_ path: String) throws(SystemError) -> [String] {
    (directories[try directory(at: path, for: "open")] ?? [:]).keys.sorted()
  }

  package mutating func rename(_ from: String, to target: String) throws(SystemError) {
    let source = try place(of: from, for: "rename")
    let target = try place(of: target, for: "rename")
    guard let moved = source.inode else { throw SystemError(errno: ENOENT, call: "rename") }
    guard let sourceName = source.name, let targetName = target.name else {
      throw SystemError(errno: EBUSY, call: "rename")
    }
    guard !contains(target.directory, in: moved) else {
      throw SystemError(errno: EINVAL, call: "rename")
    }
    guard moved != target.inode else { return }
    if let replaced = target.inode {
      guard !contains(source.directory, in: replaced) else {
        throw SystemError(errno: ENOTEMPTY, call: "rename")
      }
      let movesDirectory = directories[moved] != nil
      if let entries = directories[replaced] {
        guard movesDirectory else { throw SystemError(errno: EISDIR, call: "rename") }
        guard entries.isEmpty else { throw SystemError(errno: ENOTEMPTY, call: "rename") }
        directories[replaced] = nil
      } else if movesDirectory {
        throw SystemError(errno: ENOTDIR, call: "rename")
      }
    }
    directories[source.directory]?[sourceName] = nil
    directories[target.directory]?[targetName] = moved
    if let replaced = target.inode { forgetIfUnreachable(replaced) }
  }

  package mutating func remove(_ path: String) throws(SystemError) {
    let place = try place(of: path, for: "unlink")
    guard let inode = place.inode else { throw SystemError(errno: ENOENT, call: "unlink") }
    guard let name = place.name, files[inode] != nil else {
      #if canImport(Darwin)
        throw SystemError(errno: EPERM, call: "unlink")
      #else
        throw SystemError(errno: EISDIR, call: "unlink")
      #endif
    }
    directories[place.directory]?[name] = nil
    forgetIfUnreachable(inode)
  }

  package mutating func removeDirectory(_ path: String) throws(SystemError) {
    let place = try place(of: path, for: "rmdir")
    guard let inode = place.inode else { throw SystemError(errno: ENOENT, call: "rmdir") }
    guard let entries = directories[inode] else { throw SystemError(errno: ENOTDIR, call: "rmdir") }
    guard let name = place.name else { throw SystemError(errno: EBUSY, call: "rmdir") }
    guard entries.isEmpty else { throw SystemError(errno: ENOTEMPTY, call: "rmdir") }
    directories[place.directory]?[name] = nil
    directories[inode] = nil
  }

  /// Whether a directory is `ancestor` or lies below it.
  private func contains(_ directory: Inode, in ancestor: Inode) -> Bool {
    if directory == ancestor { return true }
    guard let entries = directories[ancestor] else { return false }
    return entries.values.contains { directories[$0] != nil && contains(directory, in: $0) }
  }
}
