package import AirDbLogStore

// What tests do to a file system at rest: look into it, damage it, copy it. Not by calls on the
// seam, where nothing else is said.
extension SimulatedFileSystem {
  /// The names in a directory, sorted; none if there is no such directory.
  package func names(in directory: String) -> [String] {
    state.withLock { (try? $0.disk.live.list(directory)) ?? [] }
  }

  /// The content of a file, or nil if there is none.
  package func content(of path: String) -> FileBytes? {
    state.withLock {
      guard let inode = try? $0.disk.live.inode(at: path, for: "open") else { return nil }
      return $0.disk.live.files[inode]
    }
  }

  /// A hash over all names and contents, equal for equal images within a process: crash points
  /// leave many images, and few different ones.
  package var contentHash: Int {
    let live = state.withLock { $0.disk.live }
    var hasher = Hasher()
    func hash(_ directory: FileTree.Inode) {
      for (name, inode) in (live.directories[directory] ?? [:]).sorted(by: { $0.key < $1.key }) {
        hasher.combine(name)
        if let file = live.files[inode] {
          hasher.combine(file.bytes)
        } else {
          hash(inode)
        }
      }
      hasher.combine(0)
    }
    hash(FileTree.root)
    return hasher.finalize()
  }

  /// Another file system with the same content, all of it durable. Costs next to nothing: the two
  /// share their bytes until one of them writes.
  package func copy() -> SimulatedFileSystem { image(.all) }

  /// A copy in which one file is damaged.
  package func damaged(_ path: String, _ rot: Rot) -> SimulatedFileSystem {
    let copy = copy()
    copy.damage(path, rot)
    return copy
  }

  /// Damages a file on the medium. Only for an image that nothing has written to.
  package func damage(_ path: String, _ rot: Rot) {
    state.withLock { state in
      do {
        try state.disk.damage(path) { rot.apply(to: &$0) }
      } catch {
        preconditionFailure("\(path): \(error)")
      }
    }
  }

  /// Makes `path` a file with this content, durably, by calls on the seam.
  package func install(_ content: FileBytes, at path: String) throws {
    let file = try OpenFile(path, .createIfAbsent, on: self)
    try file.truncate(to: 0)
    try content.bytes.withUnsafeBytes { try file.writeAll($0, at: 0) }
    try file.synchronize()
    try file.close()
    let components = path.split(separator: "/")
    try synchronizeDirectory("/" + components.dropLast().joined(separator: "/"))
  }
}

/// Copies a directory with all it holds from one platform to another, for instance an image to a
/// real directory where other tools can read it. The target must not exist yet.
package func copyDirectory(
  _ source: String, on platform: some Platform, to target: String, on other: some Platform
) throws {
  try other.createDirectory(target)
  for name in try platform.list(source) {
    let (from, to) = ("\(source)/\(name)", "\(target)/\(name)")
    if isDirectory(from, on: platform) {
      try copyDirectory(from, on: platform, to: to, on: other)
    } else {
      try copyFile(from, on: platform, to: to, on: other)
    }
  }
  try other.synchronizeDirectory(target)
}

private func copyFile(
  _ source: String, on platform: some Platform, to target: String, on other: some Platform
) throws {
  let input = try OpenFile(source, .read, on: platform)
  let output = try OpenFile(target, .createNew, on: other)
  var buffer = [UInt8](repeating: 0, count: 1 << 16)
  try buffer.withUnsafeMutableBytes { buffer in
    var offset: UInt64 = 0
    while true {
      let count = try input.readExactly(into: buffer, at: offset)
      if count == 0 { break }
      try output.writeAll(.init(rebasing: buffer[..<count]), at: offset)
      offset += UInt64(count)
    }
  }
  try output.synchronize()
  try output.close()
  try input.close()
}

/// Removes a directory with all it holds.
package func removeDirectoryTree(
  _ path: String, on platform: some Platform
) throws(SystemError) {
  for name in try platform.list(path) {
    let child = "\(path)/\(name)"
    if isDirectory(child, on: platform) {
      try removeDirectoryTree(child, on: platform)
    } else {
      try platform.remove(child)
    }
  }
  try platform.removeDirectory(path)
}

private func isDirectory(_ path: String, on platform: some Platform) -> Bool {
  (try? platform.list(path)) != nil
}
