package import AirDbLogStore

/// A change that running code sees and that a power loss may undo.
package struct PendingOperation: Sendable {
  package typealias Inode = FileTree.Inode

  package enum Effect: Sendable {
    /// Content, apart from the size: it shows only as far as the size reaches.
    case write(Inode, offset: UInt64, bytes: [UInt8])
    case resize(Inode, to: UInt64)
    case link(Entry, Inode)
    case unlink(Entry, Inode)
    case rename(from: Entry, to: Entry, Inode)
  }

  package struct Entry: Sendable {
    package let directory: Inode
    package let name: String
  }

  package enum Fate: Sendable {
    /// The next sync makes it durable; until then a crash decides.
    case open
    /// A sync of it failed: no later one makes it durable, though it may be.
    case abandoned
    /// Durable, but later than something whose fate is open.
    case durable
  }

  package let effect: Effect
  package var fate = Fate.open

  /// The file or the directories whose sync makes this durable.
  var objects: [Inode] {
    switch effect {
    case .write(let inode, _, _), .resize(let inode, _): [inode]
    case .link(let entry, _), .unlink(let entry, _): [entry.directory]
    case .rename(let from, let to, _): [from.directory, to.directory]
    }
  }

  /// The file or directory that this is about.
  var subject: Inode {
    switch effect {
    case .write(let inode, _, _), .resize(let inode, _): inode
    case .link(_, let inode), .unlink(_, let inode), .rename(_, _, let inode): inode
    }
  }

  var isWrite: Bool {
    if case .write = effect { return true }
    return false
  }

  /// The parts that survive a crash independently of each other. Only writes have more than one.
  func units(_ granularity: Granularity) -> [Effect] {
    guard case .write(let inode, let offset, let bytes) = effect else { return [effect] }
    let unit: UInt64
    switch granularity {
    case .operation: return [effect]
    case .sector: unit = Granularity.sectorSize
    case .byte(let limit): unit = bytes.count <= limit ? 1 : Granularity.sectorSize
    }
    var units: [Effect] = []
    var start = 0
    while start < bytes.count {
      let position = offset + UInt64(start)
      let end = min(bytes.count, start + Int(unit - position % unit))
      units.append(.write(inode, offset: position, bytes: Array(bytes[start..<end])))
      start = end
    }
    return units
  }
}

/// What is on the medium.
struct Medium: Sendable {
  typealias Inode = FileTree.Inode

  struct File: Sendable {
    /// May go on past the size: data that has come before its size change.
    var content = FileBytes()
    var size: UInt64 = 0

    /// The content as far as the file goes.
    var visible: FileBytes {
      var visible = content
      visible.truncate(to: size)
      return visible
    }
  }

  var files: [Inode: File] = [:]
  var directories: [Inode: [String: Inode]] = [FileTree.root: [:]]

  init() {}

  init(_ tree: FileTree) {
    files = tree.files.mapValues { File(content: $0, size: $0.size) }
    directories = tree.directories
  }

  mutating func apply(_ effect: PendingOperation.Effect) {
    switch effect {
    case .write(let inode, let offset, let bytes):
      bytes.withUnsafeBytes { files[inode, default: File()].content.write($0, at: offset) }
    case .resize(let inode, let size):
      let file = files[inode] ?? File()
      // Growing again later must not bring back what was cut off here.
      if size < file.size { files[inode]?.content.truncate(to: min(size, file.content.size)) }
      files[inode, default: File()].size = size
    case .link(let entry, let inode):
      directories[entry.directory]?[entry.name] = inode
    case .unlink(let entry, let inode):
      // An entry that never reached the medium cannot be taken from it.
      if directories[entry.directory]?[entry.name] == inode {
        directories[entry.directory]?[entry.name] = nil
      }
    case .rename(let from, let to, let inode):
      // By inode, since the rename before this one may not have survived: one file, one name.
      for directory in [from.directory, to.directory] {
        for (name, named) in directories[directory] ?? [:] where named == inode {
          directories[directory]?[name] = nil
        }
      }
      directories[to.directory]?[to.name] = inode
    }
  }

  /// Leaves what is found where a write was lost. Nothing else leaves a trace.
  mutating func lose(_ effect: PendingOperation.Effect, _ content: LostContent, unit: Int) {
    guard case .write(let inode, let offset, let bytes) = effect else { return }
    let found: [UInt8]
    switch content {
    case .old:
      return
    case .zeros:
      found = [UInt8](repeating: 0, count: bytes.count)
    case .garbage(let seed):
      var generator = SeededGenerator(seed: seed ^ UInt64(unit) &* 0x9E37_79B9)
      found = generator.bytes(bytes.count)
    case .mixed(let seed):
      var generator = SeededGenerator(seed: seed &+ UInt64(unit))
      let choices: [LostContent] = [.old, .zeros, .garbage(seed: generator.next())]
      return lose(effect, choices[Int(generator.next() % 3)], unit: unit)
    }
    apply(.write(inode, offset: offset, bytes: found))
  }

  /// The file system that is mounted after the power is back.
  var tree: FileTree {
    FileTree(files: files.mapValues(\.visible), directories: directories)
  }
}
