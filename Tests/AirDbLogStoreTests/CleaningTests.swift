import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// What is cleaned away, and what is kept until when.
@Suite struct CleaningTests {
  /// A store in small segments, with a clock that a test moves.
  final class Home {
    let files = SimulatedFileSystem()
    let scheduler = ManualScheduler()
    var configuration = Configuration.tiny
    let store: ChangeStore
    private var stamp = 0

    init(_ change: (inout Configuration) -> Void = { _ in }) throws {
      // A reopening seals all there is.
      configuration.replayBytes = 0
      change(&configuration)
      store = try ChangeStore(
        path: "/store", configuration, platform: files, scheduler: scheduler)
    }

    /// Commits a version of each key, deletions or not.
    @discardableResult
    func write(_ keys: String, _ type: MutationType = .update) throws -> Position {
      stamp += 1
      let batch = keys.map { CleaningTests.record("\($0)", stamp, type) }
      let position = try #require(try store.applyAndWait(batch).position)
      scheduler.run()
      return position
    }

    @discardableResult
    func compact() throws -> CompactionResult {
      let result = try store.compact()
      scheduler.run()
      #expect(try store.verify().isClean)
      return result
    }

    func reopen() throws {
      try store.reopen()
      scheduler.run()
    }

    func age(seconds: Int64) { files.clock.advance(by: seconds * 1_000) }

    /// All versions in the sealed segments, as key and sequence.
    func versions() throws -> [(id: String, sequence: UInt64)] {
      let engine = try store.engine
      var result: [(id: String, sequence: UInt64)] = []
      for sealed in engine.snapshot.sealed {
        try engine.forEachFrame(of: sealed.segment) { frame throws(LogStoreError) in
          do throws(FormatError) {
            let commits = try FrameReader(frame).transactions()
            var sequences = commits.flatMap { commit in
              repeatElement(commit.sequence, count: Int(commit.recordCount))
            }[...]
            try FrameReader(frame).forEachBlock { block, _ throws(FormatError) in
              for slot in block.rows.indices {
                result.append((try block.id(slot), sequences.removeFirst()))
              }
            }
          } catch {
            throw .corrupt(error, file: "")
          }
        }
      }
      return result
    }
  }

  static func record(_ id: String, _ stamp: Int, _ type: MutationType = .update) -> ChangeRecord {
    change(id, time(stamp), type, payload: "payload of \(id) at \(stamp)")
  }

  // MARK: History

  @Test func `History younger than asked for stays until it has aged`() throws {
    let home = try Home { $0.historyRetention = .seconds(60) }
    for _ in 0..<10 { try home.write("abcd") }
    home.age(seconds: 30)
    for _ in 0..<10 { try home.write("abcd") }
    try home.reopen()
    #expect(try home.compact().recordsDropped == 0)
    #expect(try home.versions().count == 80)
    // The first half is old enough now, the rest is kept, and looked at no more.
    home.age(seconds: 40)
    #expect(try home.compact().recordsDropped == 40)
    #expect(try home.versions().count == 40)
    let before = home.files.operations.count { $0.kind.changesDisk }
    #expect(try home.compact().segments == 0)
    #expect(home.files.operations.count { $0.kind.changesDisk } == before)
    home.age(seconds: 60)
    try home.compact()
    #expect(try home.versions().count == 4)
    #expect(try home.store.changes(limit: .max).records.count == 4)
  }

  @Test func `What a pinning consumer has not seen stays, and goes when it is retired`() throws {
    let home = try Home()
    let consumer = try home.store.consumer(named: "slow", retaining: .history())
    var positions: [Position] = []
    for _ in 0..<20 { positions.append(try home.write("abcd")) }
    try home.reopen()
    try home.compact()
    #expect(try home.versions().count == 80)
    for seen in [3, 4, 11] {
      try consumer.acknowledge(positions[seen])
      try home.compact()
      let kept = try home.versions().map(\.sequence)
      #expect(kept.allSatisfy { $0 > positions[seen].sequence })
      #expect(kept.count == 4 * (19 - seen), "of every commit behind the position all is kept")
      let before = home.files.operations.count { $0.kind.changesDisk }
      #expect(try home.compact().segments == 0, "what is kept is not rewritten again")
      #expect(home.files.operations.count { $0.kind.changesDisk } == before)
      try home.reopen()
      #expect(try home.compact().segments == 0)
    }
    try home.store.consumer(named: "slow", retaining: .history()).retire()
    try home.compact()
    #expect(try home.versions().count == 4)
    #expect(try home.store.compactionEstimate().bytesFreed == 0)
  }

  // MARK: Tombstones

  @Test func `Tombstones stay for ever unless purging is asked for`() throws {
    let home = try Home()
    try home.write("abcdefgh")
    try home.write("abcd", .delete)
    home.age(seconds: 1_000_000_000)
    for _ in 0..<3 { try home.write("xyz") }
    #expect(try home.compact().tombstonesPurged == 0)
    let found = try home.store.record(forKey: RecordKey(collection: "c", id: "a"))
    #expect(found?.type == .delete)
  }

  @Test func `A tombstone goes when it is old and seen, and older versions stay out`() throws {
    let home = try Home { $0.tombstoneRetention = .seconds(100) }
    let consumer = try home.store.consumer(named: "reader")
    try home.write("abcdefgh")
    let deletion = try home.write("abcd", .delete)
    try home.write("xyz")
    #expect(try home.compact().tombstonesPurged == 0, "it is too young")
    home.age(seconds: 200)
    let end = try home.write("xyz")
    #expect(try home.compact().tombstonesPurged == 0, "a consumer has not seen it")
    try consumer.acknowledge(deletion)
    #expect(try home.store.compactionEstimate().segments > 0)
    #expect(try home.compact().tombstonesPurged == 4)
    #expect(try home.compact().segments == 0)
    try consumer.acknowledge(end)
    let latest = try home.store.latestTimestamp
    for _ in 0..<2 {
      for id in ["a", "b", "c", "d"] {
        #expect(try home.store.record(forKey: RecordKey(collection: "c", id: id)) == nil)
      }
      #expect(try home.store.changes(limit: .max).records.map(\.id).sorted().joined() == "efghxyz")
      #expect(try home.store.latestTimestamp == latest)
      let horizon = try home.store.engine.manifest.value.retentionHorizon
      #expect(horizon == deletion.sequence)
      // One from before the horizon is kept out; one from behind it is a new record.
      let old = try home.store.applyAndWait([Self.record("a", 1), Self.record("new", 2)])
      #expect(old.accepted == 0 && old.superseded == 2 && old.possibleResurrections == 2)
      #expect(old.position == nil)
      try home.reopen()
    }
    let mixed = try home.store.applyAndWait([Self.record("b", 1), Self.record("b", 500)])
    #expect(mixed.accepted == 1 && mixed.superseded == 1 && mixed.possibleResurrections == 1)
    #expect(try home.store.record(forKey: RecordKey(collection: "c", id: "b")) != nil)
  }

  @Test func `A possible resurrection is accepted if that is asked for, and counted`() throws {
    let home = try Home {
      $0.tombstoneRetention = .zero
      $0.resurrections = .accept
    }
    try home.write("abcdefgh")
    try home.write("abcd", .delete)
    home.age(seconds: 1)
    try home.write("xyz")
    #expect(try home.compact().tombstonesPurged == 4)
    let result = try home.store.applyAndWait([Self.record("a", 1), Self.record("q", 900)])
    #expect(result.accepted == 2 && result.possibleResurrections == 1)
    #expect(try home.store.verify().isClean)
  }

  @Test func `A tombstone that was the last record leaves the greatest timestamp behind`() throws {
    let home = try Home { $0.tombstoneRetention = .zero }
    try home.write("abcdefgh")
    try home.write("abcdefgh", .delete)
    let latest = try home.store.latestTimestamp
    home.age(seconds: 1)
    #expect(try home.compact().tombstonesPurged == 8)
    #expect(try home.store.statistics().sealedSegments == 0)
    try home.reopen()
    #expect(try home.store.latestTimestamp == latest)
    #expect(try home.store.changes(limit: .max).records.isEmpty)
    try home.write("m")
    try home.reopen()
    #expect(try home.store.changes(limit: .max).records.map(\.id) == ["m"])
  }

  @Test(arguments: 0..<16 as Range<UInt64>)
  func `Whatever is purged when, nothing deleted comes back`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let home = try Home {
      $0.tombstoneRetention = .seconds(5)
      $0.historyRetention = seed % 3 == 0 ? .seconds(3) : .zero
      $0.segmentRecords = 5
    }
    var model = ReferenceModel()
    var purged: UInt64 = 0
    for stamp in 1...160 {
      let key = String(UnicodeScalar(UInt8(97 + random.next() % 24)))
      let batch = [Self.record(key, stamp, random.next() % 2 == 0 ? .delete : .update)]
      try model.apply(batch)
      let result = try home.store.applyAndWait(batch)
      #expect(result.accepted == 1 && result.possibleResurrections == 0)
      if random.next() % 2 == 0 { home.scheduler.run() }
      home.age(seconds: Int64(random.next() % 3))
      switch random.next() % 10 {
      case 0: purged += try home.compact().tombstonesPurged
      case 1, 2: try home.reopen()
      default: break
      }
      if stamp % 20 == 0 {
        let stale = try home.store.applyAndWait(
          model.entries.values.filter { $0.record.type == .delete }.map {
            Self.record($0.record.id, 0)
          })
        #expect(stale.accepted == 0, "seed \(seed): what was deleted is back")
      }
    }
    home.age(seconds: 100)
    purged += try home.compact().tombstonesPurged
    let live = model.feed.records.filter { $0.type != .delete }
    #expect(try home.store.changes(limit: .max).records.filter { $0.type != .delete } == live)
    #expect(try home.store.latestTimestamp == model.latest?.text)
    #expect(purged > 0, "seed \(seed)")
  }

  @Test func `A full check counts the commits in a packed frame one by one`() throws {
    let home = try Home()
    for keys in ["ab", "bc", "cd"] { try home.write(keys) }
    try home.reopen()
    #expect(try home.store.verify().checkedCommits == 3)
    #expect(try home.compact().recordsDropped == 2)
    #expect(try home.store.verify().checkedCommits == 3)
  }

  // MARK: Nothing in vain

  @Test func `Opening, closing and compacting a clean store writes not a byte`() throws {
    try withTemporaryDirectory { root in
      let path = root + "/store"
      var configuration = Configuration.tiny
      configuration.cleaning = .automatic
      configuration.cleaning.idleDelay = .zero
      let store = try ChangeStore(at: path, configuration: configuration)
      for stamp in 1...60 {
        try store.applyAndWait("abcdefgh".map { Self.record("\($0)", stamp) })
      }
      try store.compact()
      try store.close()
      // Twice: a close that comes soon leaves files that were replaced to the next open.
      for _ in 0..<2 {
        let settled = try ChangeStore(at: path, configuration: configuration)
        try settled.compact()
        try settled.close()
      }
      let before = try DirectoryContents(path)
      for _ in 0..<(isLongRun ? 1_000 : 40) {
        let again = try ChangeStore(at: path, configuration: configuration)
        #expect(try again.compact().segments == 0)
        try again.close()
      }
      let after = try DirectoryContents(path)
      #expect(after == before, "changed: \(after.changes(since: before))")
    }
  }

  // MARK: Space

  @Test func `On a full disk a compaction does what fits, and ends with the same`() throws {
    let home = try Home {
      $0.segmentRecords = 16
      $0.segmentBytes = 1 << 20
    }
    // Half of each segment is superseded by later ones.
    var random = SeededGenerator(seed: 4)
    for round in 0..<24 {
      let batch = (0..<16).map { number in
        let key = number % 2 == 0 ? "updated \(number)" : "\(round) \(number)"
        return ChangeRecord(
          id: key, collection: "c", type: .update, payload: Data(random.bytes(6_000)),
          hlcTimestamp: time(round))
      }
      try home.store.applyAndWait(batch)
      home.scheduler.run()
    }
    let live = try home.store.changes(limit: .max).records
    let estimate = try home.store.compactionEstimate()
    #expect(estimate.segments > 4 && estimate.bytesFreed > estimate.scratchBytes)
    let used = home.files.usedBytes
    // Too little for all at once, and each time less, as long as anything can be done.
    var room = estimate.scratchBytes + 4_096
    var steps = 0
    var stepwise = 0
    let image = home.files
    while room > 4_096 {
      let files = image.image(.all, granularity: .sector, lost: .zeros)
      let events = Locked(0)
      var configuration = home.configuration
      configuration.eventHandler = { event in
        if case .compacted = event { events.withLock { $0 += 1 } }
      }
      let scheduler = ManualScheduler()
      let store = try ChangeStore(
        path: "/store", configuration, platform: files, scheduler: scheduler)
      files.capacity = files.usedBytes + room
      do throws(LogStoreError) {
        try store.compact()
        scheduler.run()
        #expect(files.usedBytes < used, "\(room) bytes of room")
        if events.withLock({ $0 }) > 1 { stepwise += 1 }
        steps += 1
      } catch {
        #expect(error.code == .noSpace, "\(error)")
        scheduler.run()
        #expect(files.usedBytes <= used, "an attempt that failed leaves nothing behind")
      }
      #expect(try store.changes(limit: .max).records == live)
      try expectOnlyUsedFiles(store, files)
      files.capacity = nil
      try store.compact()
      #expect(try store.verify().isClean)
      room = room * 3 / 4
    }
    #expect(steps > 1 && stepwise > 0, "\(steps) succeeded, \(stepwise) in more than one step")
  }

  @Test func `What was overwritten or deleted is in no file after a compaction`() throws {
    for durability in [Durability.powerLoss, .processCrash] {
      try withTemporaryDirectory { root in
        let path = root + "/store"
        var configuration = Configuration()
        configuration.durability = durability
        configuration.cleaning = .off
        let store = try ChangeStore(at: path, configuration: configuration)
        let secret = "a secret that is to go 4711"
        try store.applyAndWait([change("1", time(1), payload: secret), change("2", time(1))])
        try store.applyAndWait([change("1", time(2), .delete)])
        #expect(try holds(path, secret))
        try store.compact()
        // Files go off this thread.
        try store.close()
        let again = try ChangeStore(at: path, configuration: configuration)
        #expect(try !holds(path, secret))
        #expect(try again.changes(limit: .max).records.count == 2)
        try again.close()
      }
    }
  }

  private func holds(_ path: String, _ text: String) throws -> Bool {
    try DirectoryContents(path).files.values.contains { file in
      Data(file.bytes).range(of: Data(text.utf8)) != nil
    }
  }

  @Test(.enabled(if: ChangeStream.isPresent, "the recorded stream is not there"))
  func `Committed one by one a stream ends as large as in bulk`() throws {
    let records = Array(try ChangeStream.batches().joined())
    func size(_ batch: Int) throws -> UInt64 {
      var configuration = Configuration()
      configuration.durability = .processCrash
      configuration.cleaning = .off
      let store = try ChangeStore.inMemory(configuration: configuration)
      for start in stride(from: 0, to: records.count, by: batch) {
        try store.applyAndWait(Array(records[start..<min(start + batch, records.count)]))
      }
      try store.compact()
      let statistics = try store.statistics()
      return statistics.segmentBytes + statistics.indexBytes + statistics.unsealedBytes
    }
    let bulk = try size(1_000)
    let single = try size(1)
    print("The stream after a compaction: \(bulk) bytes from bulk, \(single) from single commits")
    #expect(Double(single) < 1.1 * Double(bulk))
  }

  // MARK: Reopening

  @Test func `Reads go on while the store is reopened and compacted under them`() throws {
    try withTemporaryDirectory { root in
      var configuration = Configuration.tiny
      configuration.durability = .processCrash
      // So that files are opened when they are needed.
      configuration.cacheBytes = 0
      let store = try ChangeStore(at: root + "/store", configuration: configuration)
      for stamp in 1...40 {
        try store.applyAndWait("abcdefgh".map { Self.record("\($0)", stamp) })
      }
      let isDone = Locked(false)
      let reads = Locked(0)
      inThreads(3) { thread in
        do {
          if thread == 0 {
            defer { isDone.withLock { $0 = true } }
            for round in 0..<30 {
              for stamp in 0..<4 {
                try store.applyAndWait(
                  "abcdefgh".map { Self.record("\($0)", 100 + round * 4 + stamp) })
              }
              try store.compact()
              try store.reopen()
            }
            return
          }
          while !isDone.withLock({ $0 }) {
            let page = try store.changes(limit: .max).records
            #expect(Set(page.map(\.id)).count == 8 && page.count == 8)
            let key = RecordKey(collection: "c", id: "d")
            #expect(try store.record(forKey: key) != nil)
            if thread == 2 { #expect(try store.verify().isClean) }
            reads.withLock { $0 += 1 }
          }
        } catch {
          isDone.withLock { $0 = true }
          Issue.record(error, "thread \(thread)")
        }
      }
      #expect(reads.withLock { $0 } > 0)
      try store.close()
    }
  }
}
