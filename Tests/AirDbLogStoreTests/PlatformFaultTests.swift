import AirDbLogStore
import TestSupport
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Failing calls (fault model F2), and the teeth: calls that claim to have done their work.
@Suite("Simulated faults")
struct PlatformFaultTests {
  let files = SimulatedFileSystem()

  private func makeDurableFile(_ path: String, _ text: String) throws -> FileDescriptor {
    let file = try files.open(path, .createNew)
    try files.write(text, to: file)
    _ = try files.synchronize(file, to: .stable)
    try files.synchronizeDirectory("/")
    return file
  }

  @Test("The Nth matching call fails, once or from then on")
  func occurrences() throws {
    files.inject(FaultPlan(.failing(EIO), kinds: [.create], pathSuffix: ".a", on: .only(2)))
    files.inject(FaultPlan(.failing(EMFILE), kinds: [.create], pathSuffix: ".b", on: .from(2)))
    func create(_ name: String) -> Int32? {
      errno { () throws(SystemError) in _ = try files.open("/\(name)", .createNew) }
    }
    #expect(["1.a", "1.c", "2.a", "3.a"].map(create) == [nil, nil, EIO, nil])
    #expect(["1.b", "2.b", "3.b"].map(create) == [nil, EMFILE, EMFILE])
    files.clearFaults()
    #expect(create("2.b") == nil)
    let names = files.names(in: "/")
    #expect(names == ["1.a", "1.b", "1.c", "2.b", "3.a"], "a failed call did nothing")
  }

  @Test("A plan without kinds strikes the Nth call of any kind")
  func anyCall() throws {
    files.inject(FaultPlan(.failing(EPERM), on: .only(2)))
    let file = try files.open("/file", .createNew)
    #expect(errno { () throws(SystemError) in _ = try files.size(of: file) } == EPERM)
    #expect(try files.size(of: file) == 0)
  }

  @Test("A failing close has closed")
  func failingClose() throws {
    let file = try files.open("/file", .createNew)
    files.inject(FaultPlan(.failing(EIO), kinds: [.close]))
    #expect(errno { () throws(SystemError) in try files.close(file) } == EIO)
    #expect(files.openDescriptorCount == 0)
  }

  @Test(
    "After a failed sync the pages look clean: later syncs do not write them",
    arguments: [(FailedSync.keptInCache, "new content"), (.dropped, "old content")])
  func failedSync(_ variant: FailedSync, _ readsBack: String) throws {
    let file = try makeDurableFile("/file", "old content")
    try files.write("new", to: file)
    files.inject(
      FaultPlan(.failing(EIO), kinds: [.synchronize], on: .only(1), failedSync: variant))
    #expect(
      errno { () throws(SystemError) in _ = try files.synchronize(file, to: .stable) } == EIO)
    #expect(try files.text(of: file) == readsBack)
    _ = try files.synchronize(file, to: .stable)
    let images = try files.survivorRules().map { try files.image($0).text(at: "/file") }
    #expect(Set(images) == ["old content", "new content"], "a sync that failed says nothing")

    try files.write("NEWER", to: file)
    _ = try files.synchronize(file, to: .stable)
    let latest = try files.survivorRules().map { try files.image($0).text(at: "/file") }
    #expect(Set(latest) == ["NEWERontent"], "what came later stays on top")
  }

  @Test("What a failed sync dropped keeps its size")
  func failedSyncOfGrowth() throws {
    let file = try makeDurableFile("/file", "ab")
    try files.write("cd", to: file, at: 2)
    files.inject(FaultPlan(.failing(EIO), kinds: [.synchronize], failedSync: .dropped))
    #expect(errno { () throws(SystemError) in _ = try files.synchronize(file, to: .stable) } == EIO)
    #expect(try files.text(of: file) == "ab..")
  }

  @Test("A failed sync of a directory leaves entries that no later sync makes durable")
  func failedDirectorySync() throws {
    try files.makeFile("/file", "")
    files.inject(FaultPlan(.failing(EIO), kinds: [.synchronizeDirectory], on: .only(1)))
    #expect(errno { () throws(SystemError) in try files.synchronizeDirectory("/") } == EIO)
    try files.synchronizeDirectory("/")
    #expect(files.image(.none).names(in: "/") == [])
    #expect(files.image(.all).names(in: "/") == ["file"])
    #expect(files.names(in: "/") == ["file"])
  }

  @Test("An interrupted sync has lost nothing")
  func interruptedSync() throws {
    let file = try makeDurableFile("/file", "old")
    try files.write("new", to: file)
    files.inject(FaultPlan(.failing(EINTR), kinds: [.synchronize], on: .only(1)))
    #expect(
      errno { () throws(SystemError) in _ = try files.synchronize(file, to: .stable) } == EINTR)
    _ = try files.synchronize(file, to: .stable)
    #expect(try files.image(.none).text(at: "/file") == "new")
  }

  @Test("Reads and writes come short")
  func shortTransfers() throws {
    let file = try makeDurableFile("/file", "content")
    files.inject(FaultPlan(.short(3), kinds: [.read, .write]))
    #expect(try files.text(of: file) == "con")
    let bytes: [UInt8] = Array("CONTENT".utf8)
    #expect(try bytes.withUnsafeBytes { try files.write(file, $0, at: 0) } == 3)
    files.clearFaults()
    #expect(try files.text(of: file) == "CONtent")
  }

  @Test("A full disk refuses growth, not writes into reserved space, until space is freed")
  func fullDisk() throws {
    let other = try makeDurableFile("/other", "0123456789")
    let file = try makeDurableFile("/file", "")
    files.capacity = 20
    try files.reserve(file, offset: 0, count: 10)
    #expect(
      errno { () throws(SystemError) in try files.reserve(file, offset: 10, count: 1) } == ENOSPC)
    try files.write("reserved!!", to: file)
    let byte: [UInt8] = [1]
    byte.withUnsafeBytes { bytes in
      #expect(
        errno { () throws(SystemError) in _ = try files.write(file, bytes, at: 10) } == ENOSPC)
    }
    try files.remove("/other")
    #expect(
      errno { () throws(SystemError) in try files.reserve(file, offset: 10, count: 1) } == ENOSPC,
      "an open file holds its space")
    try files.close(other)
    try files.reserve(file, offset: 10, count: 10)
    #expect(files.usedBytes == 20)
  }

  @Test("Out of descriptors: nothing more opens until one is closed")
  func descriptorLimit() throws {
    let first = try files.open("/1", .createNew)
    files.descriptorLimit = 2
    _ = try files.list("/")
    _ = try files.open("/2", .createNew)
    #expect(errno { () throws(SystemError) in _ = try files.open("/3", .createNew) } == EMFILE)
    #expect(errno { () throws(SystemError) in _ = try files.list("/") } == EMFILE)
    #expect(errno { () throws(SystemError) in try files.synchronizeDirectory("/") } == EMFILE)
    #expect(files.names(in: "/") == ["1", "2"])
    try files.close(first)
    try files.synchronizeDirectory("/")
    _ = try files.open("/3", .createNew)
  }

  // MARK: Teeth

  @Test("An ignored sync claims success and makes nothing durable")
  func ignoredSync() throws {
    files.inject(FaultPlan(.ignored, kinds: [.synchronize], pathSuffix: "/file"))
    let file = try makeDurableFile("/file", "content")
    #expect(try files.synchronize(file, to: .stable) == .stable)
    #expect(try files.image(.none).text(at: "/file") == "")
    _ = try makeDurableFile("/other", "content")
    #expect(try files.image(.none).text(at: "/other") == "content")
  }

  @Test("An ignored sync of a directory leaves its entries to chance")
  func ignoredDirectorySync() throws {
    files.inject(FaultPlan(.ignored, kinds: [.synchronizeDirectory]))
    _ = try makeDurableFile("/file", "content")
    #expect(files.image(.none).names(in: "/") == [])
  }

  @Test("A delayed sync comes behind the rename that it was to go before")
  func delayedSync() throws {
    _ = try makeDurableFile("/file", "old")
    files.inject(FaultPlan(.delayed, kinds: [.synchronize], pathSuffix: ".new"))
    let file = try files.open("/file.new", .createNew)
    try files.write("new", to: file)
    _ = try files.synchronize(file, to: .stable)
    try files.rename("/file.new", to: "/file")
    let images = try files.survivorRules().map { try files.image($0).text(at: "/file") }
    #expect(Set(images) == ["old", "", "...", "new"])
    try files.synchronizeDirectory("/")
    #expect(try files.image(.none).text(at: "/file") == "new")
  }

  @Test("An ignored lock is no lock")
  func ignoredLock() throws {
    let first = try files.open("/file", .createNew)
    let second = try files.open("/file", .read)
    files.inject(FaultPlan(.ignored, kinds: [.lock]))
    #expect(try files.tryLock(first))
    #expect(try files.tryLock(second))
  }

  // MARK: Replay

  @Test("The same seed gives the same random bytes, listings and clock")
  func replay() throws {
    func run(_ seed: UInt64) throws -> [String] {
      let files = SimulatedFileSystem(seed: seed)
      for name in 0..<20 { try files.makeFile("/\(name)", "") }
      var random = [UInt8](repeating: 0, count: 16)
      try random.withUnsafeMutableBytes { try files.fillRandom($0) }
      return try files.list("/") + ["\(random)", "\(files.wallClockMilliseconds())"]
    }
    #expect(try run(1) == run(1))
    #expect(try run(1) != run(2))
    files.clock.milliseconds = 5
    files.clock.advance(by: -7)
    #expect(files.wallClockMilliseconds() == -2)
  }
}
