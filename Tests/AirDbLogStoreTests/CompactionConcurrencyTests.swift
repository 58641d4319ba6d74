import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// Reads, commits, copies and the end of a store while compactions run (G8, G9).
@Suite struct CompactionConcurrencyTests {
  private static let keys = 24

  /// Keys in groups of eight that are updated together, with one timestamp: pages end inside of them.
  private static func batch(_ round: Int) -> [ChangeRecord] {
    let group = round % (keys / 8)
    return (0..<8).map { number in
      let key = group * 8 + number
      return change(
        "\(key)", time(round), (round + key) % 5 == 0 ? .delete : .update, payload: "\(round)")
    }
  }

  private static func configuration() -> Configuration {
    var configuration = Configuration.tiny
    configuration.segmentRecords = 30
    configuration.durability = .processCrash
    configuration.cleaning = .off
    // So that files are opened, not found in a cache.
    configuration.cacheBytes = 0
    return configuration
  }

  /// Pages through everything and checks that each key was seen, in no older version than it had
  /// at the start: an update moves it behind the cursor, never before it.
  private static func sweep(_ store: ChangeStore, limit: Int, _ rounds: [Int]) throws {
    var seen: [String: Int] = [:]
    var last: String?
    var cursor: ChangeCursor?
    while true {
      let page = try store.changes(after: cursor, limit: limit)
      for record in page.records {
        if let last { #expect(HlcComparator.compare(last, record.hlcTimestamp) <= 0) }
        last = record.hlcTimestamp
        let round = Int(String(decoding: record.payload, as: UTF8.self)) ?? -1
        #expect(seen[record.id] ?? -1 < round, "a version was seen twice, or an older one later")
        seen[record.id] = round
      }
      cursor = page.next
      if page.isLast { break }
    }
    for key in 0..<keys where rounds[key / 8] >= 0 {
      #expect(seen["\(key)"] ?? -1 >= rounds[key / 8], "key \(key) was lost to a reader")
    }
  }

  @Test(arguments: [false, true])
  func `Reads see all there is while segments are replaced under them`(onDisk: Bool) throws {
    try withTemporaryDirectory { root in
      let rounds = 600
      let store =
        onDisk
        ? try ChangeStore(at: root + "/store", configuration: Self.configuration())
        : try ChangeStore.inMemory(configuration: Self.configuration())
      var model = ReferenceModel()
      for round in 0..<rounds { try model.apply(Self.batch(round)) }
      let acknowledged = Locked([Int](repeating: -1, count: Self.keys / 8))
      let isDone = Locked(false)
      let counts = Locked((compacted: 0, sweeps: 0))
      inThreads(4) { thread in
        do {
          if thread == 0 {
            defer { isDone.withLock { $0 = true } }
            for round in 0..<rounds {
              try store.applyAndWait(Self.batch(round))
              acknowledged.withLock { $0[round % (Self.keys / 8)] = round }
            }
            return
          }
          var turn = 0
          while !isDone.withLock({ $0 }) {
            turn += 1
            switch thread {
            case 1:
              let segments = try store.compact().segments
              counts.withLock { $0.compacted += segments }
            case 2:
              let rounds = acknowledged.withLock { $0 }
              try Self.sweep(store, limit: [3, 5, 100][turn % 3], rounds)
              counts.withLock { $0.sweeps += 1 }
            default:
              let key = turn % Self.keys
              let least = acknowledged.withLock { $0[key / 8] }
              let found = try store.record(forKey: RecordKey(collection: "c", id: "\(key)"))
              let round = found.map { Int(String(decoding: $0.payload, as: UTF8.self)) ?? -1 } ?? -1
              #expect(round >= least, "key \(key)")
              if turn % 16 == 0 {
                let all = try store.engine.adapterPage(after: nil, limit: .max)
                #expect(Set(all.map(\.id)).count == all.count)
              }
            }
          }
        } catch {
          isDone.withLock { $0 = true }
          Issue.record(error, "thread \(thread)")
        }
      }
      let found = counts.withLock { $0 }
      print("Reads while compacting: \(found.compacted) segments replaced, \(found.sweeps) sweeps")
      #expect(found.compacted > 0 && found.sweeps > 0)
      try store.compact()
      #expect(try store.engine.adapterPage(after: nil, limit: .max) == model.feed.records)
      #expect(try store.records(in: "c") == model.records(in: "c"))
      let report = try store.verify()
      #expect(report.isClean, "\(report.problems)")
      try store.reopen()
      #expect(try store.engine.adapterPage(after: nil, limit: .max) == model.feed.records)
      try store.close()
    }
  }

  @Test func `A cursor goes on where it was after what it points to has been compacted`() throws {
    let files = MemoryPlatform()
    let scheduler = ManualScheduler()
    let store = try ChangeStore(
      path: "/store", Self.configuration(), platform: files, scheduler: scheduler)
    for round in 0..<40 { try store.applyAndWait(Self.batch(round)) }
    scheduler.run()
    let whole = try store.changes(limit: .max).records
    var records: [ChangeRecord] = []
    var cursor: ChangeCursor?
    var round = 40
    var compacted = 0
    while true {
      let page = try store.changes(after: cursor, limit: 1)
      records += page.records
      cursor = page.next
      if page.isLast || page.records.isEmpty { break }
      if records.count < whole.count {
        // Something for the next compaction to do, in a collection of its own behind all others.
        for _ in 0..<10 {
          try store.applyAndWait((0..<4).map { change("\($0)", time(10_000 + round), in: "other") })
          round += 1
        }
        scheduler.run()
        compacted += try store.compact().segments
        scheduler.run()
      }
    }
    #expect(Array(records.prefix(whole.count)) == whole)
    #expect(compacted > 20)
  }

  // MARK: Read-only

  @Test func `A store open read-only beside a compacting writer answers rightly or says why not`()
    throws
  {
    try withTemporaryDirectory { root in
      let path = root + "/store"
      let configuration = Self.configuration()
      var readOnly = configuration
      readOnly.isReadOnly = true
      let reading = readOnly
      let writer = try ChangeStore(at: path, configuration: configuration)
      for round in 0..<60 { try writer.applyAndWait(Self.batch(round)) }
      let isDone = Locked(false)
      let turns = Locked(0)
      inThreads(2) { thread in
        do {
          if thread == 0 {
            defer { isDone.withLock { $0 = true } }
            for round in 60..<360 {
              try writer.applyAndWait(Self.batch(round))
              guard round % 10 == 0 else { continue }
              // At most two compactions fall into one turn of the reader, which can follow those.
              let turn = turns.withLock { $0 }
              try writer.compact()
              while turns.withLock({ $0 }) == turn, !isDone.withLock({ $0 }) { usleep(200) }
            }
            return
          }
          defer { isDone.withLock { $0 = true } }
          let reader = try ChangeStore(at: path, configuration: reading)
          while !isDone.withLock({ $0 }) {
            try Self.expectWhole(try reader.changes(limit: .max).records)
            #expect(try reader.record(forKey: RecordKey(collection: "c", id: "3")) != nil)
            try reader.refresh()
            turns.withLock { $0 += 1 }
          }
          try reader.close()
        } catch {
          Issue.record(error, "thread \(thread)")
        }
      }
      #expect(turns.withLock { $0 } >= 30)
      let reader = try ChangeStore(at: path, configuration: reading)
      #expect(try reader.changes(limit: .max).records == writer.changes(limit: .max).records)
      // Nothing of this has been read yet when its files go.
      let late = try ChangeStore(at: path, configuration: reading)
      for round in 360..<400 { try writer.applyAndWait(Self.batch(round)) }
      try writer.compact()
      try writer.close()
      let end = try ChangeStore(at: path, configuration: configuration)
      #expect(try late.changes(limit: .max).records == end.changes(limit: .max).records)
    }
  }

  /// All of a group is of one commit.
  private static func expectWhole(_ feed: [ChangeRecord]) throws {
    let groups = Dictionary(grouping: feed) { (Int($0.id) ?? -1) / 8 }
    #expect(groups.count == Self.keys / 8)
    for group in groups.values {
      #expect(group.count == 8 && Set(group.map(\.hlcTimestamp)).count == 1)
    }
  }

  @Test func `A reader follows a writer that compacts amid its reads, up to a number of times`()
    throws
  {
    let files = SimulatedFileSystem()
    let scheduler = ManualScheduler()
    var configuration = Self.configuration()
    let writer = try ChangeStore(
      path: "/store", configuration, platform: files, scheduler: scheduler)
    let round = Locked(0)
    // All that is sealed is superseded and replaced.
    let turn: @Sendable () throws -> Void = {
      for _ in 0..<12 {
        let number = round.withLock { round in
          round += 1
          return round
        }
        try writer.applyAndWait(Self.batch(number))
        scheduler.run()
      }
      try writer.compact()
      scheduler.run()
    }
    for _ in 0..<5 { try turn() }
    configuration.isReadOnly = true
    let reader = try ChangeStore(
      path: "/store", configuration, platform: files, scheduler: ManualScheduler())
    let state = Locked((left: 0, isBusy: false))
    files.beforeEachCall { call in
      guard call.kind == .open, call.path.hasSuffix(".index") || call.path.hasSuffix(".segment")
      else { return }
      let isDue = state.withLock { state in
        guard state.left > 0, !state.isBusy else { return false }
        state.left -= 1
        state.isBusy = true
        return true
      }
      guard isDue else { return }
      do {
        try turn()
      } catch {
        Issue.record(error)
      }
      state.withLock { $0.isBusy = false }
    }
    for count in [0, 1, 2, 7] {
      // From here on the files of what it shows are not open.
      try reader.refresh()
      state.withLock { $0.left = count }
      try Self.expectWhole(try reader.changes(limit: .max).records)
      #expect(state.withLock { $0.left } == 0)
      let feed = try reader.changes(limit: .max).records
      #expect(try feed == writer.changes(limit: .max).records)
      try turn()
    }
    try reader.refresh()
    state.withLock { $0.left = 1_000 }
    #expect {
      try reader.changes(limit: .max)
    } throws: { error in
      (error as? LogStoreError)?.code == .staleReader
    }
    state.withLock { $0.left = 0 }
    #expect(try reader.changes(limit: .max).records == writer.changes(limit: .max).records)
    files.beforeEachCall(nil)
  }

  // MARK: Ending

  enum End: CaseIterable {
    case close, suspend, reopen
  }

  @Test(arguments: End.allCases)
  func `Ending a store cancels the compaction under way, which changes nothing`(end: End) throws {
    var cancelled = 0
    for _ in 0..<4 {
      let files = SimulatedFileSystem()
      let store = try ChangeStore(
        path: "/store", Self.configuration(), platform: files, scheduler: nil)
      for round in 0..<60 { try store.applyAndWait(Self.batch(round)) }
      let before = try store.changes(limit: .max).records
      // The compaction, not who prepares the next segment, waits at its first file until the store is
      // about to end.
      let compacting = Locked<ObjectIdentifier?>(nil)
      let isAtWork = Locked(false)
      let isEnding = Locked(false)
      files.beforeEachCall { call in
        guard call.kind == .create, call.path.hasSuffix(".segment"),
          compacting.withLock({ $0 }) == ObjectIdentifier(Thread.current),
          !isAtWork.withLock({ old in
            defer { old = true }
            return old
          })
        else { return }
        while !isEnding.withLock({ $0 }) { usleep(500) }
        // Until the other thread has asked for the end; later is as good, but less to the point.
        usleep(50_000)
      }
      let code = Locked<LogStoreError.Code?>(nil)
      inThreads(2) { thread in
        do {
          if thread == 0 {
            compacting.withLock { $0 = ObjectIdentifier(Thread.current) }
            do throws(LogStoreError) {
              try store.compact()
            } catch {
              code.withLock { $0 = error.code }
            }
            return
          }
          while !isAtWork.withLock({ $0 }) { usleep(500) }
          isEnding.withLock { $0 = true }
          switch end {
          case .close: try store.close()
          case .suspend: try store.suspend()
          case .reopen: try store.reopen()
          }
        } catch {
          Issue.record(error)
        }
      }
      files.beforeEachCall(nil)
      let found = code.withLock { $0 }
      #expect(found == nil || found == .cancelled)
      if found == .cancelled { cancelled += 1 }
      if end == .suspend { try store.resume() }
      var current: ChangeStore? = store
      if end == .close {
        current = try ChangeStore(path: "/store", Self.configuration(), platform: files)
      }
      let open = try #require(current)
      #expect(try open.changes(limit: .max).records == before)
      try expectOnlyUsedFiles(open, files)
      try open.compact()
      #expect(try open.changes(limit: .max).records == before)
      #expect(try open.verify().isClean)
      try open.close()
    }
    #expect(cancelled > 0)
  }

  @Test func `Files of a compaction go after a close that came before them`() throws {
    let files = SimulatedFileSystem()
    let scheduler = ManualScheduler()
    let store = try ChangeStore(
      path: "/store", Self.configuration(), platform: files, scheduler: scheduler)
    for round in 0..<60 {
      try store.applyAndWait(Self.batch(round))
      scheduler.run()
    }
    let names = Set(try files.list("/store"))
    try store.compact()
    try store.close()
    // The lock has been given back: nothing may be removed any more.
    let left = Set(try files.list("/store"))
    scheduler.run()
    #expect(Set(try files.list("/store")) == left)
    #expect(!left.isDisjoint(with: names.filter { $0.hasSuffix(".segment") }))
    let reopened = try ChangeStore(
      path: "/store", Self.configuration(), platform: files, scheduler: scheduler)
    try expectOnlyUsedFiles(reopened, files)
    #expect(try reopened.verify().isClean)
  }

  // MARK: Copies

  @Test func `A copy made at any moment of a compaction is the store`() throws {
    let files = SimulatedFileSystem()
    let scheduler = ManualScheduler()
    let store = try ChangeStore(
      path: "/store", Self.configuration(), platform: files, scheduler: scheduler)
    var model = ReferenceModel()
    for round in 0..<24 {
      try model.apply(Self.batch(round))
      try store.applyAndWait(Self.batch(round))
      scheduler.run()
    }
    // Whoever looks first reads the file, and others wait for that.
    #expect(try store.consumers().isEmpty)
    let copies = Locked<[String]>([])
    let isCopying = Locked(false)
    let failures = Locked<[String]>([])
    files.beforeEachCall { call in
      // A copy waits for a sync of the log that is under way: on one thread it would wait for ever.
      guard call.kind != .synchronize,
        call.kind.changesDisk || call.kind == .open, !isCopying.withLock({ $0 })
      else { return }
      isCopying.withLock { $0 = true }
      defer { isCopying.withLock { $0 = false } }
      let path = copies.withLock { copies in
        copies.append("/copy\(copies.count)")
        return copies[copies.count - 1]
      }
      do {
        try store.backUp(to: path)
      } catch {
        failures.withLock { $0.append("before \(call): \(error)") }
      }
    }
    let result = try store.compact()
    scheduler.run()
    files.beforeEachCall(nil)
    #expect(result.segments > 1)
    #expect(failures.withLock { $0 } == [])
    #expect(copies.withLock { $0.count } > 10)
    for path in copies.withLock({ $0 }) {
      let copy = try ChangeStore(
        path: path, Self.configuration(), platform: files, scheduler: ManualScheduler())
      #expect(try copy.engine.adapterPage(after: nil, limit: .max) == model.feed.records, "\(path)")
      let report = try copy.verify()
      #expect(report.isClean, "\(path): \(report.problems)")
      try copy.applyAndWait(Self.batch(100))
      try copy.close()
    }
    print("Copies in a compaction: \(copies.withLock { $0.count })")
  }
}
