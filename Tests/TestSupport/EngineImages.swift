import AirDbLogStore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// What a crash may leave of a run: one image of the disk, with the bounds that the trace sets it.
package struct CrashImage: Sendable, CustomStringConvertible {
  package let files: SimulatedFileSystem
  /// The run up to the crash.
  package var trace: EngineTrace
  /// The commits that must be there, at least.
  package var least: Int
  /// The commits that may be there, at most.
  package var most: Int
  /// Where the first crash was that left it.
  package let origin: String

  package var description: String { origin }
}

/// The images that the crashes of one run leave. Many crashes leave the same: it is kept once, with
/// the strictest bounds.
package struct CrashImages: Sendable {
  /// What is tried at each crash point.
  package struct Effort: Sendable {
    package var granularity = Granularity.sector
    package var exhaustiveLimit = SurvivorRule.exhaustiveLimit
    package var seededSubsets = 200
    /// What is found where a write was lost, besides the old content.
    package var losses: [LostContent] = [.zeros, .garbage(seed: 1), .mixed(seed: 2)]

    package init() {}

    /// All that the fault model asks for, in a long run; else less of everything.
    package static var standard: Effort {
      var effort = Effort()
      if isLongRun { return effort }
      effort.exhaustiveLimit = 6
      effort.seededSubsets = 16
      return effort
    }

    /// One image for each of a few rules.
    package static var least: Effort {
      var effort = Effort()
      effort.granularity = .operation
      effort.exhaustiveLimit = 2
      effort.seededSubsets = 2
      effort.losses = []
      return effort
    }
  }

  package private(set) var images: [CrashImage] = []
  package private(set) var points = 0
  /// All images, equal ones included.
  package private(set) var imageCount = 0
  private var places: [Key: Int] = [:]

  /// The same bytes mean something else after commits have been lost.
  private struct Key: Hashable {
    let digest: Int
    let losses: Int
  }

  private let effort: Effort

  package init(_ effort: Effort = Effort()) { self.effort = effort }

  /// A loss of power at this moment.
  package mutating func add(_ files: SimulatedFileSystem, _ trace: EngineTrace, _ origin: String) {
    points += 1
    let rules = files.survivorRules(
      effort.granularity, exhaustiveLimit: effort.exhaustiveLimit,
      seededSubsets: effort.seededSubsets)
    let hasPending = files.pendingCount(effort.granularity) > 0
    for lost in hasPending ? [.old] + effort.losses : [.old] {
      for rule in rules {
        let image = files.image(rule, granularity: effort.granularity, lost: lost)
        add(image, trace, least: trace.durable, "\(origin), \(rule), \(lost)")
      }
    }
  }

  /// The death of the process at this moment: everything is there, but not all of it is durable.
  package mutating func addProcessDeath(
    _ files: SimulatedFileSystem, _ trace: EngineTrace, _ origin: String
  ) {
    points += 1
    add(files.afterProcessDeath(), trace, least: trace.visible, origin)
  }

  private mutating func add(
    _ image: SimulatedFileSystem, _ trace: EngineTrace, least: Int, _ origin: String
  ) {
    imageCount += 1
    let key = Key(digest: image.digest, losses: trace.losses)
    if let place = places[key] {
      images[place].least = max(images[place].least, least)
      images[place].most = min(images[place].most, trace.commits.count)
      // The later one of two of the same life goes on from the earlier one.
      images[place].trace = trace
      return
    }
    places[key] = images.count
    images.append(
      CrashImage(
        files: image, trace: trace, least: least, most: trace.commits.count, origin: origin))
  }
}

/// Whether the suites are to try everything, however long it takes.
package let isLongRun = getenv("AIRDB_LONG_TESTS") != nil

extension SimulatedFileSystem {
  /// A hash over all names and contents on the disk, and over what is pending by its number.
  package var digest: Int {
    let (live, pendingCount) = state.withLock { ($0.disk.live, $0.disk.pending.count) }
    var hasher = Hasher()
    hasher.combine(pendingCount)
    var buffer = [UInt8](repeating: 0, count: FileBytes.chunkSize)
    func hash(_ directory: FileTree.Inode) {
      for (name, inode) in (live.directories[directory] ?? [:]).sorted(by: { $0.key < $1.key }) {
        hasher.combine(name)
        if let file = live.files[inode] {
          hash(file)
        } else {
          hash(inode)
        }
      }
      hasher.combine(0)
    }
    func hash(_ file: FileBytes) {
      hasher.combine(file.size)
      buffer.withUnsafeMutableBytes { buffer in
        var offset: UInt64 = 0
        while offset < file.size {
          let count = file.read(into: buffer, at: offset)
          let chunk = UnsafeRawBufferPointer(rebasing: buffer[..<count])
          // Reserved space is mostly zeros, which need no hashing.
          if !chunk.isZero {
            hasher.combine(offset)
            hasher.combine(bytes: chunk)
          }
          offset += UInt64(count)
        }
      }
    }
    hash(FileTree.root)
    return hasher.finalize()
  }
}
