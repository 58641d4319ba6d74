import AirDbLogStore

/// What happens to the writes whose sync failed. Real systems mark the pages clean either way, so
/// that the next sync succeeds without writing them.
package enum FailedSync: Sendable, Hashable, CaseIterable {
  /// They still read back, from the cache.
  case keptInCache
  /// The old content reads back.
  case dropped
}

/// The two views of a simulated file system, as a value: the live one that running code sees, and
/// the medium with the operations that have not reached it yet.
///
/// Invariants: the live view is the medium with every pending operation applied in order (but for
/// writes dropped by a failed sync); an operation leaves the list for the medium only when nothing
/// before it on the same file or directory is left in the list.
struct SimulatedDisk: Sendable {
  typealias Inode = FileTree.Inode

  private(set) var live = FileTree()
  private var medium = Medium()
  private(set) var pending: [PendingOperation] = []
  private var delayedSyncs: Set<Inode> = []

  init() {}

  /// A disk with this content, all of it durable, and nothing open.
  init(_ tree: FileTree) {
    live = tree
    medium = Medium(tree)
  }

  // MARK: Content

  mutating func write(
    _ file: FileDescriptor, _ bytes: UnsafeRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    let inode = try live.descriptor(file, for: "pwrite").inode
    let sizeBefore = try live.size(of: file)
    let count = try live.write(file, bytes, at: offset)
    guard count > 0 else { return 0 }
    let end = offset + UInt64(count)
    if end > sizeBefore { append(.resize(inode, to: end)) }
    append(.write(inode, offset: offset, bytes: Array(bytes)))
    return count
  }

  mutating func truncate(_ file: FileDescriptor, to size: UInt64) throws(SystemError) {
    try resizing(file) { (live) throws(SystemError) in try live.truncate(file, to: size) }
  }

  mutating func reserve(
    _ file: FileDescriptor, offset: UInt64, count: UInt64
  ) throws(SystemError) {
    try resizing(file) { (live) throws(SystemError) in
      try live.reserve(file, offset: offset, count: count)
    }
  }

  private mutating func resizing(
    _ file: FileDescriptor, _ body: (inout FileTree) throws(SystemError) -> Void
  ) throws(SystemError) {
    let sizeBefore = try live.size(of: file)
    try body(&live)
    let size = try live.size(of: file)
    guard size != sizeBefore else { return }
    append(.resize(try live.descriptor(file, for: "ftruncate").inode, to: size))
  }

  func read(
    _ file: FileDescriptor, into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    try live.read(file, into: buffer, at: offset)
  }

  // MARK: Entries

  mutating func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> FileDescriptor {
    let before = try live.place(of: path, for: "open")
    let file = try live.open(path, mode)
    if before.inode == nil, let name = before.name {
      let inode = try live.descriptor(file, for: "open").inode
      medium.files[inode] = Medium.File()
      append(.link(.init(directory: before.directory, name: name), inode))
    }
    return file
  }

  mutating func close(_ file: FileDescriptor) throws(SystemError) { try live.close(file) }

  mutating func tryLock(_ file: FileDescriptor) throws(SystemError) -> Bool {
    try live.tryLock(file)
  }

  mutating func unlock(_ file: FileDescriptor) throws(SystemError) { try live.unlock(file) }

  mutating func createDirectory(_ path: String) throws(SystemError) {
    try live.createDirectory(path)
    let place = try live.place(of: path, for: "mkdir")
    if let name = place.name, let inode = place.inode {
      medium.directories[inode] = [:]
      append(.link(.init(directory: place.directory, name: name), inode))
    }
  }

  mutating func rename(_ from: String, to target: String) throws(SystemError) {
    let source = try live.place(of: from, for: "rename")
    try live.rename(from, to: target)
    let destination = try live.place(of: target, for: "rename")
    guard let sourceName = source.name, let name = destination.name, let inode = source.inode,
      source.directory != destination.directory || sourceName != name
    else { return }
    append(
      .rename(
        from: .init(directory: source.directory, name: sourceName),
        to: .init(directory: destination.directory, name: name), inode))
  }

  mutating func remove(_ path: String) throws(SystemError) {
    let place = try live.place(of: path, for: "unlink")
    try live.remove(path)
    unlink(place)
  }

  mutating func removeDirectory(_ path: String) throws(SystemError) {
    let place = try live.place(of: path, for: "rmdir")
    try live.removeDirectory(path)
    unlink(place)
  }

  private mutating func unlink(_ place: FileTree.Place) {
    guard let name = place.name, let inode = place.inode else { return }
    append(.unlink(.init(directory: place.directory, name: name), inode))
  }

  private mutating func append(_ effect: PendingOperation.Effect) {
    pending.append(PendingOperation(effect: effect))
  }

  // MARK: Syncs

  /// Makes content and size of a file durable. Its entry is another matter.
  mutating func synchronize(_ file: FileDescriptor) throws(SystemError) {
    settle([try live.descriptor(file, for: "fdatasync").inode])
  }

  /// Makes the entries of a directory durable, and then what ``delaySynchronize(_:)`` has put off.
  mutating func synchronizeDirectory(_ path: String) throws(SystemError) {
    settle([try live.directory(at: path, for: "open")])
    settle(delayedSyncs)
    delayedSyncs = []
    forgetUnreachable()
  }

  /// Claims success, and syncs the file only behind the next sync of a directory: the order that a
  /// rename before its sync would have.
  mutating func delaySynchronize(_ file: FileDescriptor) throws(SystemError) {
    delayedSyncs.insert(try live.descriptor(file, for: "fdatasync").inode)
  }

  mutating func failSynchronize(
    _ file: FileDescriptor, _ failure: FailedSync
  ) throws(SystemError) {
    let inode = try live.descriptor(file, for: "fdatasync").inode
    // Sizes are metadata: the journal of the file system still has them.
    abandon { $0.isWrite && $0.subject == inode }
    guard failure == .dropped else { return }
    var kept = medium
    for operation in pending where operation.subject == inode && operation.fate != .abandoned {
      kept.apply(operation.effect)
    }
    if let file = kept.files[inode] { live.replaceContent(of: inode, with: file.visible) }
  }

  mutating func failSynchronizeDirectory(_ path: String) throws(SystemError) {
    let directory = try live.directory(at: path, for: "open")
    abandon { $0.objects.contains(directory) && !$0.isWrite }
  }

  private mutating func abandon(_ isAbandoned: (PendingOperation) -> Bool) {
    for index in pending.indices where pending[index].fate == .open && isAbandoned(pending[index]) {
      pending[index].fate = .abandoned
    }
  }

  private mutating func settle(_ objects: Set<Inode>) {
    guard !objects.isEmpty else { return }
    var left: [PendingOperation] = []
    var blocked: Set<Inode> = []
    for var operation in pending {
      if operation.fate == .open && !objects.isDisjoint(with: operation.objects) {
        operation.fate = .durable
      }
      if operation.fate == .durable && blocked.isDisjoint(with: operation.objects) {
        medium.apply(operation.effect)
      } else {
        blocked.formUnion(operation.objects)
        left.append(operation)
      }
    }
    pending = left
  }

  private mutating func forgetUnreachable() {
    var reachable = Set(live.files.keys)
    reachable.formUnion(live.directories.keys)
    for operation in pending { reachable.insert(operation.subject) }
    for entries in medium.directories.values { reachable.formUnion(entries.values) }
    medium.files = medium.files.filter { reachable.contains($0.key) }
    medium.directories = medium.directories.filter { reachable.contains($0.key) }
  }

  // MARK: Crashes

  /// The parts of the pending operations that a crash decides about.
  func pendingCount(_ granularity: Granularity) -> Int {
    pending.reduce(0) { $0 + ($1.fate == .durable ? 0 : $1.units(granularity).count) }
  }

  /// The disk after the power is back. The same arguments give the same disk.
  func afterPowerLoss(
    _ rule: SurvivorRule, _ granularity: Granularity, _ lost: LostContent
  ) -> SimulatedDisk {
    var medium = medium
    let survivors = rule.survivors(of: pendingCount(granularity))
    var unit = 0
    for operation in pending {
      if operation.fate == .durable {
        medium.apply(operation.effect)
        continue
      }
      for effect in operation.units(granularity) {
        if survivors[unit] {
          medium.apply(effect)
        } else {
          medium.lose(effect, lost, unit: unit)
        }
        unit += 1
      }
    }
    return SimulatedDisk(medium.tree)
  }

  /// The disk after the process was killed: nothing is open or locked, and what was pending is
  /// pending still.
  func afterProcessDeath() -> SimulatedDisk {
    var disk = self
    disk.live = FileTree(files: live.files, directories: live.directories)
    return disk
  }

  // MARK: Damage

  /// Changes the content of a file on the medium, as rot does.
  mutating func damage(
    _ path: String, _ body: (inout FileBytes) -> Void
  ) throws(SystemError) {
    precondition(pending.isEmpty, "damage an image, not a disk in use")
    let inode = try live.inode(at: path, for: "damage")
    guard var bytes = live.files[inode] else { preconditionFailure("\(path) is a directory") }
    body(&bytes)
    live.replaceContent(of: inode, with: bytes)
    medium.files[inode] = Medium.File(content: bytes, size: bytes.size)
  }
}
