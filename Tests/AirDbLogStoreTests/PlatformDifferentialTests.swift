import AirDbLogStore
import TestSupport
import Testing

/// Long random runs of the same calls on every platform: each answers what the operating system
/// answers, values and errors alike.
@Suite("Platforms against the operating system")
struct PlatformDifferentialTests {
  @Test("The same calls have the same outcomes", arguments: UInt64(0)..<24)
  func sameOutcomes(seed: UInt64) throws {
    try withTemporaryDirectory { root in
      let memory = MemoryPlatform()
      let simulated = SimulatedFileSystem(seed: seed)
      try memory.createDirectory("/root")
      try simulated.createDirectory("/root")
      var real = RandomRun(SystemPlatform(), root, seed)
      var others = [RandomRun(memory, "/root", seed), RandomRun(simulated, "/root", seed)]
      for step in 0..<600 {
        let expected = real.step()
        for index in others.indices {
          let outcome = others[index].step()
          try #require(outcome == expected, "seed \(seed), step \(step), platform \(index)")
        }
      }
    }
  }
}

/// Draws calls from a seed, carries them out on one platform, and tells each outcome as text.
private struct RandomRun {
  private let platform: any Platform
  private let root: String
  private var generator: SeededGenerator
  private var files: [FileDescriptor] = []

  init(_ platform: any Platform, _ root: String, _ seed: UInt64) {
    self.platform = platform
    self.root = root
    generator = SeededGenerator(seed: seed)
  }

  mutating func step() -> String {
    let kind = Int.random(in: 0..<16, using: &generator)
    let path = path()
    let target = self.path()
    let offset = UInt64.random(in: 0..<40_000, using: &generator)
    let count = Int.random(in: 0..<20_000, using: &generator)
    let file = files.randomElement(using: &generator)
    let bytes = generator.bytes(count)
    do throws(SystemError) {
      if kind < 8 {
        return try pathCall(kind, path, target)
      }
      guard let file else { return "no file" }
      return try "\(kind): \(fileCall(kind, file, bytes, offset))"
    } catch {
      return "\(kind) failed: \(error.errno)"
    }
  }

  private mutating func path() -> String {
    let names = ["a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a", "a/b"]
    return "\(root)/\(names.randomElement(using: &generator)!)"
  }

  private mutating func pathCall(
    _ kind: Int, _ path: String, _ target: String
  ) throws(SystemError) -> String {
    switch kind {
    case 0, 1, 2, 3:
      let modes: [OpenMode] = [.read, .readWrite, .createNew, .createIfAbsent]
      files.append(try platform.open(path, modes[kind]))
      return "opened"
    case 4:
      try platform.rename(path, to: target)
      return "renamed"
    case 5:
      // A few more entries make the run go deeper than it would by removing them.
      if files.count % 3 == 0 { try platform.remove(path) }
      return "removed"
    case 6:
      try platform.createDirectory(path)
      return "made"
    default:
      if files.count % 3 == 1 { try platform.removeDirectory(path) }
      return try platform.list(path).sorted().joined(separator: ",")
    }
  }

  private mutating func fileCall(
    _ kind: Int, _ file: FileDescriptor, _ bytes: [UInt8], _ offset: UInt64
  ) throws(SystemError) -> String {
    switch kind {
    case 8, 9:
      let (count, failure) = bytes.withUnsafeBytes { buffer in
        outcome { () throws(SystemError) in try platform.write(file, buffer, at: offset) }
      }
      if let failure { throw failure }
      return "wrote \(count)"
    case 10, 11:
      var buffer = bytes
      let (count, failure) = buffer.withUnsafeMutableBytes { buffer in
        outcome { () throws(SystemError) in try platform.read(file, into: buffer, at: offset) }
      }
      if let failure { throw failure }
      return "read \(count) \(buffer.hashValue)"
    case 12:
      try platform.truncate(file, to: offset)
      return "cut"
    case 13:
      try platform.reserve(file, offset: offset, count: UInt64(bytes.count))
      return "reserved"
    case 14:
      if bytes.count % 2 == 0 {
        return "locked \(try platform.tryLock(file))"
      }
      try platform.unlock(file)
      return "unlocked"
    default:
      if bytes.count % 3 == 0 {
        files.removeAll { $0 == file }
        try platform.close(file)
        return "closed"
      }
      _ = try platform.synchronize(file, to: .stable)
      return "synced"
    }
  }

  private func outcome(_ body: () throws(SystemError) -> Int) -> (Int, SystemError?) {
    do throws(SystemError) {
      return (try body(), nil)
    } catch {
      return (0, error)
    }
  }
}
