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

/// Failures that other engines had, by the numbers of the list that the guarantees come with. What
/// compaction could cause is not among them here.
@Suite("Failures that other engines had")
struct TwentyFailuresTests {
  private let files = SimulatedFileSystem()
  private let path = "/store"

  private func open(
    _ files: SimulatedFileSystem? = nil, at path: String? = nil,
    scheduler: ManualScheduler = .init(),
    _ change: (inout Configuration) -> Void = { _ in }
  ) throws -> ChangeStore {
    var configuration = EngineScript.smallSegments
    change(&configuration)
    return try ChangeStore(
      path: path ?? self.path, configuration, platform: files ?? self.files, scheduler: scheduler)
  }

  private func record(_ number: Int, _ payload: Int = 8) -> ChangeRecord {
    EngineScript.record("id \(number)", number, payload)
  }

  private func ids(_ store: ChangeStore) throws -> [String] {
    try store.engine.adapterPage(after: nil, limit: .max).map(\.id)
  }

  private func code(_ body: () throws -> Void) -> LogStoreError.Code? {
    do {
      try body()
      return nil
    } catch {
      return (error as? LogStoreError)?.code
    }
  }

  @Test("1: a store can be opened after a power loss right behind its first commit")
  func unsyncedDirectory() throws {
    let store = try open()
    try store.applyAndWait([record(1)])
    for rule in files.survivorRules() {
      #expect(try ids(try open(files.image(rule))) == ["id 1"])
    }
  }

  @Test("2: a full segment that is lost takes the one behind it along")
  func lostRollover() throws {
    let store = try open { $0.durability = .processCrash }
    try store.applyAndWait([record(1)])
    try store.flush(to: .powerLoss)
    try store.applyAndWait([record(2, 2_500)])
    try store.applyAndWait([record(3)])
    for rule in files.survivorRules(.sector, seededSubsets: 50) {
      let image = files.image(rule, granularity: .sector, lost: .zeros)
      let found = try ids(try open(image))
      #expect([["id 1"], ["id 1", "id 2"], ["id 1", "id 2", "id 3"]].contains(found))
    }
  }

  @Test("3: commits behind a torn one survive the next opens")
  func appendingBehindTornCommit() throws {
    var files = files
    for round in 0..<4 {
      let store = try open(files)
      try store.applyAndWait([record(10 * round)])
      files.inject(FaultPlan(.failing(EIO), kinds: [.synchronize]))
      #expect(throws: LogStoreError.self) {
        try store.applyAndWait([record(10 * round + 1, 1_000)])
      }
      // The first sector of the commit has come to the medium, the others have not.
      files = files.image(.prefix(1), granularity: .sector, lost: .garbage(seed: 1))
    }
    #expect(try ids(try open(files)) == ["id 0", "id 10", "id 20", "id 30"])
  }

  @Test("4: a disk that is full in the middle of a manifest leaves the old one in force")
  func fullDiskInManifest() throws {
    let store = try open()
    files.inject(FaultPlan(.short(50), kinds: [.write], pathSuffix: "MANIFEST.new", on: .only(1)))
    files.inject(FaultPlan(.failing(ENOSPC), kinds: [.write], pathSuffix: "MANIFEST.new"))
    #expect(code { try store.applyAndWait([record(1)]) } == .noSpace)
    #expect(try ids(try open(files.image(.all))) == [])
    files.clearFaults()
    try store.applyAndWait([record(1)])
    #expect(try ids(try open(files.image(.none))) == ["id 1"])
  }

  @Test("5: damage in the middle of a log that was not closed is an error, and nothing is cut")
  func damagedMiddle() throws {
    let store = try open()
    for number in 1...3 { try store.applyAndWait([record(number)]) }
    let image = files.image(.all)
    image.damage("\(path)/0000000000000001.segment", .flipBit(byte: 100, bit: 3))
    let before = image.contentHash
    #expect(code { _ = try open(image) } == .corrupt)
    #expect(image.contentHash == before)
  }

  @Test(
    "6: a tail that is zeroed, cut between commits or missing is noticed",
    arguments: [0, 1, 2])
  func missingTail(_ kind: Int) throws {
    let store = try open()
    try store.applyAndWait([record(1)])
    let boundary = try store.engine.snapshot.end.length
    try store.applyAndWait([record(2)])
    try store.close()
    let segment = "\(path)/0000000000000001.segment"
    let image = files.image(.all)
    switch kind {
    case 0: image.damage(segment, .truncate(to: boundary))
    case 1:
      for byte in boundary..<(files.content(of: segment)?.size ?? 0) {
        image.damage(segment, .setByte(byte, to: 0))
      }
    default:
      try image.remove(segment)
    }
    #expect(code { _ = try open(image) } == .corrupt)
  }

  @Test("7: a crash in a recovery rolls no durable commit back")
  func crashInRecovery() throws {
    let script = EngineScript(
      "recovery", [.open(.powerLoss), .apply([record(1)]), .apply([record(2)])])
    let sweep = try CrashSweep(script, .least)
    let last = try #require(sweep.losses.images.last)
    #expect(last.least == 2)
    #expect(try sweep.examination.examineRecovery(last, depth: 2) > 50)
  }

  @Test("9: a reader that is closed removes nothing of a writer's")
  func closedReader() throws {
    let scheduler = ManualScheduler()
    let store = try open(scheduler: scheduler)
    try store.applyAndWait([record(1, 2_500)])
    try store.applyAndWait([record(2)])
    let before = files.contentHash
    let reader = try open { $0.isReadOnly = true }
    #expect(try ids(reader) == ["id 1", "id 2"])
    try reader.close()
    #expect(files.contentHash == before)
    scheduler.run()
    try store.applyAndWait([record(3)])
    #expect(try ids(store) == ["id 1", "id 2", "id 3"])
  }

  @Test("10: a writer that seals while a reader opens does not make it see damage")
  func sealWhileOpening() throws {
    let scheduler = ManualScheduler()
    let store = try open(scheduler: scheduler)
    try store.applyAndWait([record(1, 2_500), record(2)])
    try store.applyAndWait([EngineScript.record("id 2", 3)])
    scheduler.run()
    try store.applyAndWait([record(4, 2_500)])
    // Each of the reader's calls in turn is the one behind which the writer moves on.
    for number in 1...60 {
      try store.applyAndWait([EngineScript.record("id 2", 10 + number, 2_500)])
      let calls = Locked(0)
      files.beforeEachCall { [files] _ in
        let isDue = calls.withLock { calls in
          calls += 1
          return calls == number
        }
        guard isDue else { return }
        files.beforeEachCall(nil)
        scheduler.run()
      }
      let events = Locked(0)
      let reader = try open {
        $0.isReadOnly = true
        $0.eventHandler = { event in
          if case .repaired = event { events.withLock { $0 += 1 } }
        }
      }
      #expect(try ids(reader).sorted() == ["id 1", "id 2", "id 4"])
      #expect(events.withLock { $0 } == 0)
      files.beforeEachCall(nil)
      scheduler.run()
    }
  }

  @Test("12: a lock file left by a crash, empty or not, does not block an open")
  func staleLock() throws {
    _ = try open()
    let image = files.image(.all)
    for content in [[], [UInt8](repeating: 0xFF, count: 100)] {
      try image.install(FileBytes(content), at: "\(path)/LOCK")
      let store = try open(image)
      try store.applyAndWait([record(content.count)])
      try store.close()
    }
  }

  @Test("13: a forked child can neither write nor give the lock away")
  func forkedChild() throws {
    let store = try open()
    try store.applyAndWait([record(1)])
    files.setProcessIdentifier(2)
    #expect(code { try store.applyAndWait([record(2)]) } == .forkedProcess)
    try store.close()
    #expect(code { _ = try open() } == .storeInUse)
    #expect(try ids(try open(files.image(.all))) == ["id 1"])
  }

  @Test("15: empty keys and values, and lengths that no file can have")
  func lengths() throws {
    let store = try open()
    let empty = ChangeRecord(
      id: "", collection: "", type: .insert, payload: .init(), hlcTimestamp: "1700000000000-0",
      authorPublicKey: .init(), signature: .init())
    try store.applyAndWait([empty])
    try store.applyAndWait([record(1)])
    try store.close()
    #expect(try open(files.image(.none)).record(forKey: RecordKey(collection: "", id: "")) == empty)

    let name = "0000000000000001.segment"
    let content = try #require(files.content(of: "\(path)/\(name)"))
    // The lengths of the frame and of its block, with checksums that match.
    for (offset, width) in [(72, 8), (104, 4), (108, 4), (136, 4), (140, 4), (144, 4)] {
      let extremes: [UInt64] = [
        .max, UInt64(Int64.max), 1 << 32, (1 << 32) - 1, (1 << 31) - 1, 0,
      ]
      for value in extremes {
        var forgery = Forgery(content, named: name)
        if width == 8 {
          forgery.store(value, at: offset)
        } else {
          forgery.store(UInt32(truncatingIfNeeded: value), at: offset)
        }
        if forgery.bytes == content.bytes { continue }
        if offset < 128 { forgery.sealFrameHeader(64) }
        let image = files.image(.all)
        try image.install(forgery.content, at: "\(path)/\(name)")
        #expect(code { _ = try ids(try open(image)) } == .corrupt, "\(offset): \(value)")
      }
    }
  }

  @Test("16: commit dates never go back, whatever the clock does")
  func clockSteps() throws {
    let decade: Int64 = 10 * 365 * 86_400_000
    var dates: [Int64] = []
    for step in [0, -decade, 1_000, 2 * decade, -decade] {
      files.clock.advance(by: step)
      let store = try open()
      try store.applyAndWait([record(dates.count)])
      dates.append(try store.engine.snapshot.commitDate)
      try store.close()
    }
    #expect(dates == dates.sorted())
    #expect(dates[3] > dates[2])
  }

  @Test("17: an open that is refused changes nothing")
  func refusedOpen() throws {
    let store = try open()
    try store.applyAndWait([record(1)])
    try store.close()
    let manifest = try #require(files.content(of: "\(path)/MANIFEST"))
    var newer = Forgery(manifest, named: "MANIFEST")
    newer.store(UInt32(2), at: 12)
    newer.sealManifest()
    var feature = Forgery(manifest, named: "MANIFEST")
    feature.store(UInt64(1) << 60, at: 64)
    feature.sealManifest()
    for forgery in [newer, feature] {
      let image = files.image(.all)
      try image.install(forgery.content, at: "\(path)/MANIFEST")
      let before = image.contentHash
      for isReadOnly in [false, true] {
        #expect(
          code { _ = try open(image) { $0.isReadOnly = isReadOnly } } == .unsupportedFormat)
      }
      #expect(image.contentHash == before)
    }
    let image = files.image(.all)
    let before = image.contentHash
    #expect(
      code { _ = try open(image) { $0.timestampFormat = .utf8Order } } == .configurationMismatch)
    #expect(
      code { _ = try open(image) { $0.deletionValues = [1, 2] } } == .configurationMismatch)
    #expect(image.contentHash == before)
  }

  @Test("18: what an open replays is bounded, however often the one before was killed")
  func boundedReplay() throws {
    var files = files
    for round in 0..<30 {
      let replayed = Locked(0)
      let store = try open(files) {
        $0.eventHandler = { event in
          if case .recovered(_, _, let records) = event { replayed.withLock { $0 = records } }
        }
      }
      // Two segments of six records at most are not sealed.
      #expect(replayed.withLock { $0 } <= 12)
      for number in 0..<5 { try store.applyAndWait([record(5 * round + number)]) }
      files = files.image(.all)
    }
    #expect(try ids(try open(files)).count == 150)
  }

  @Test("19: on a full disk batches are refused with a typed error, reads go on, space helps")
  func fullDisk() throws {
    let store = try open()
    try store.applyAndWait([record(1)])
    files.capacity = files.usedBytes
    var stored = 1
    while code({ try store.applyAndWait([record(stored + 1, 1_000)]) }) == nil { stored += 1 }
    #expect(code { try store.applyAndWait([record(stored + 1, 1_000)]) } == .noSpace)
    #expect(try ids(store).count == stored)
    files.capacity = nil
    try store.applyAndWait([record(stored + 1, 1_000)])
    #expect(try ids(store).count == stored + 1)
  }

  @Test("20: foreign files, more than ten segments, a moved directory, spellings of its path")
  func surroundings() throws {
    let scheduler = ManualScheduler()
    let composed = "/caf\u{E9}"
    let decomposed = "/cafe\u{301}"
    let store = try open(at: composed, scheduler: scheduler)
    let foreign = [
      ".DS_Store", "._MANIFEST", "MANIFEST~", "1.segment", "000000000000000A.segment",
      "0000000000000001.segment.bak", "00000000000000001.segment", "0000000000000000.segment",
    ]
    for name in foreign { try files.install(FileBytes([1, 2, 3]), at: "\(composed)/\(name)") }
    for number in 0..<20 {
      try store.applyAndWait([record(number, 2_100)])
      scheduler.run()
    }
    let all = try ids(store)
    #expect(all.count == 20)
    try store.close()

    // Names that are canonically equivalent are one name here, as on Apple's file systems.
    let other = try open(at: decomposed) { $0.createsIfMissing = false }
    #expect(try ids(other) == all)
    #expect(code { _ = try open(at: composed) } == .storeInUse)
    try other.close()
    try files.createDirectory("/elsewhere")
    try files.rename(composed, to: "/elsewhere/moved")
    let moved = try open(at: "/elsewhere/moved")
    #expect(try ids(moved) == all)
    #expect(try moved.verify().isClean)
    try moved.close()
    for name in foreign {
      #expect(files.content(of: "/elsewhere/moved/\(name)")?.bytes == [1, 2, 3])
    }
  }
}
