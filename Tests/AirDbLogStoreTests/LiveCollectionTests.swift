import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// Live values: all there is at once, then what has changed, together, and never anything wrong.
@Suite(.timeLimit(.minutes(5))) struct LiveCollectionTests {
  private static func key(_ id: String, in collection: String = "c") -> RecordKey {
    RecordKey(collection: collection, id: id)
  }

  private static func put(_ store: ChangeStore, _ id: String, _ text: String = "") async throws {
    try await store.put(Data(text.utf8), forKey: key(id))
  }

  private static func untilWaiting(_ store: ChangeStore) async {
    while store.signal.waiterCount == 0 { await Task.yield() }
  }

  /// The ids and payloads of an element.
  private static func text(_ records: [ChangeRecord]?) -> String? {
    records.map { records in
      records.map { $0.id + ":" + String(decoding: $0.payload, as: UTF8.self) }
        .joined(separator: " ")
    }
  }

  @Test(arguments: StoreHome.allCases)
  func `The first comes at once, then local changes and those of peers`(home: StoreHome)
    async throws
  {
    try await home.withStore { subject in
      let store = subject.store
      var live = store.liveRecords(in: "c").makeAsyncIterator()
      #expect(Self.text(try await live.next()) == "")
      try await Self.put(store, "b", "1")
      #expect(Self.text(try await live.next()) == "b:1")
      try await store.applyChanges([
        change("a", "9999999999998-0-peer", payload: "2"),
        change("b", "9999999999998-1-peer", payload: "3"),
        change("z", "9999999999998-2-peer", in: "other"),
      ])
      #expect(Self.text(try await live.next()) == "a:2 b:3")
      // Another observer begins with all of it.
      var late = store.liveRecords(in: "c", idPrefix: "b").makeAsyncIterator()
      #expect(Self.text(try await late.next()) == "b:3")
      try await store.apply([change("b", "9999999999998-3-peer", .delete)])
      #expect(Self.text(try await live.next()) == "a:2")
      #expect(Self.text(try await late.next()) == "")
    }
  }

  @Test func `Ids are ordered, compared and cut by their bytes`() async throws {
    let store = try ChangeStore.inMemory()
    let ids = ["e\u{301}", "\u{E9}", "z", "", "a", "\u{10000}", "\u{FFFD}"]
    var live = store.liveRecords(in: "c").makeAsyncIterator()
    _ = try await live.next()
    for id in ids { try await Self.put(store, id) }
    let sorted = ids.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    let shown = try #require(try await live.next())
    #expect(shown.map { Array($0.id.utf8) } == sorted.map { Array($0.utf8) })
    try await store.delete(Self.key("\u{E9}"))
    #expect(try await live.next()?.count == 6)
    var prefixed = store.liveRecords(in: "c", idPrefix: "e").makeAsyncIterator()
    #expect(try await prefixed.next()?.map(\.id.unicodeScalars.count) == [2])
  }

  @Test func `What is of no concern wakes nobody up for it`() async throws {
    let store = try ChangeStore.inMemory()
    let live = store.liveRecords(in: "c", idPrefix: "x")
    let task = Task {
      var seen: [String] = []
      for try await records in live { seen.append(Self.text(records)!) }
      return seen
    }
    await Self.untilWaiting(store)
    for id in ["a", "b"] {
      try await Self.put(store, id)
      await Self.untilWaiting(store)
    }
    try await store.put(Data(), forKey: Self.key("x", in: "d"))
    await Self.untilWaiting(store)
    try await Self.put(store, "x", "1")
    await Self.untilWaiting(store)
    try await store.apply([change("x", time(1), payload: "stale")])
    await Self.untilWaiting(store)
    try store.close()
    #expect(try await task.value == ["", "x:1"])
  }

  @Test func `Whoever does not look holds nothing up, and sees the newest`() async throws {
    let store = try ChangeStore.inMemory()
    var live = store.liveRecords(in: "c").makeAsyncIterator()
    _ = try await live.next()
    for index in 0..<300 { try await Self.put(store, "\(index % 3)", "\(index)") }
    #expect(Self.text(try await live.next()) == "0:297 1:298 2:299")
  }

  @Test func `One that is far behind reads the collection anew`() async throws {
    var configuration = Configuration()
    configuration.cleaning = .off
    let store = try ChangeStore.inMemory(configuration: configuration)
    var live = store.liveRecords(in: "c").makeAsyncIterator()
    _ = try await live.next()
    for index in 0..<8_300 {
      try store.applyAndWait([change("\(index % 5)", time(index), payload: "\(index)")])
    }
    #expect(Self.text(try await live.next()) == "0:8295 1:8296 2:8297 3:8298 4:8299")
  }

  @Test func `It ends with the store, with the task, and keeps neither`() async throws {
    var store: ChangeStore? = try ChangeStore.inMemory()
    let live = try #require(store).liveRecords(in: "c")
    let signal = try #require(store).signal
    func observe() -> Task<Int, any Error> {
      Task {
        var count = 0
        for try await _ in live { count += 1 }
        return count
      }
    }
    let cancelled = observe()
    while signal.waiterCount < 1 { await Task.yield() }
    cancelled.cancel()
    #expect(try await cancelled.value == 1)
    let other = observe()
    while signal.waiterCount < 1 { await Task.yield() }
    weak let gone = store
    store = nil
    #expect(gone == nil)
    #expect(try await other.value == 1)
    #expect(try await observe().value == 0)

    let closed = try ChangeStore.inMemory()
    var iterator = closed.liveRecords(in: "c").makeAsyncIterator()
    _ = try await iterator.next()
    try await Self.put(closed, "a")
    try closed.close()
    #expect(try await iterator.next() == nil)
  }

  @Test func `With every hint but one dropped it is right all the same`() async throws {
    let store = try ChangeStore.inMemory()
    var live = store.liveRecords(in: "c").makeAsyncIterator()
    _ = try await live.next()
    try #require(try store.writerIfAny).publishHook = nil
    for index in 0..<50 { try await Self.put(store, "\(index % 4)", "\(index)") }
    try await store.delete(Self.key("2"))
    let waiting = Task { [live] in
      var live = live
      return try await live.next()
    }
    // It looked before it waited: no hint is needed for what is there.
    #expect(Self.text(try await waiting.value) == "0:48 1:49 3:47")
    _ = try await live.next()
    let later = Task { [live] in
      var live = live
      return try await live.next()
    }
    await Self.untilWaiting(store)
    for index in 50..<60 { try await Self.put(store, "\(index % 4)", "\(index)") }
    #expect(store.signal.waiterCount == 1)
    store.signal.notify()
    #expect(Self.text(try await later.value) == "0:56 1:57 2:58 3:59")
  }

  @Test func `It lasts through suspending, resuming, reopening and restoring`() async throws {
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      let store = try ChangeStore(at: path)
      var live = store.liveRecords(in: "c").makeAsyncIterator()
      try await Self.put(store, "a", "1")
      #expect(Self.text(try await live.next()) == "a:1")
      try store.suspend()
      // Meanwhile another one writes.
      let other = try ChangeStore(at: path)
      try await Self.put(other, "b", "2")
      try await other.delete(Self.key("a"))
      try other.close()
      let waiting = Task { [live] in
        var live = live
        return (try await live.next(), live)
      }
      await Self.untilWaiting(store)
      try store.resume()
      let shown: [ChangeRecord]?
      (shown, live) = try await waiting.value
      #expect(Self.text(shown) == "b:2")
      try store.reopen()
      try await Self.put(store, "b", "3")
      #expect(Self.text(try await live.next()) == "b:3")
      // Another store in its place: the log cannot be followed.
      try store.suspend()
      try ChangeStore.destroy(at: path)
      let restored = try ChangeStore(at: path)
      try await Self.put(restored, "z", "9")
      try restored.close()
      try store.resume()
      #expect(Self.text(try await live.next()) == "z:9")
    }
  }

  @Test func `That of a read-only store moves on with a refresh`() async throws {
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      let writer = try ChangeStore(at: path, configuration: .tiny)
      var configuration = Configuration.tiny
      configuration.isReadOnly = true
      let reader = try ChangeStore(at: path, configuration: configuration)
      var live = reader.liveRecords(in: "c").makeAsyncIterator()
      #expect(Self.text(try await live.next()) == "")
      for round in 0..<3 {
        for index in 0..<20 { try await Self.put(writer, "\(index % 2)", "\(round).\(index)") }
        try writer.compact()
        try reader.refresh()
        #expect(Self.text(try await live.next()) == "0:\(round).18 1:\(round).19")
      }
      try reader.close()
      try writer.close()
    }
  }

  @Test func `After a failed sync it shows what was published, and goes on when reopened`()
    async throws
  {
    let files = SimulatedFileSystem()
    let store = try ChangeStore(
      path: "/store", .tiny, platform: files, scheduler: ManualScheduler())
    var live = store.liveRecords(in: "c").makeAsyncIterator()
    try await Self.put(store, "a", "1")
    files.inject(
      FaultPlan(.failing(EIO), kinds: [.synchronize], pathSuffix: ".segment", on: .only(1)))
    let lost = try? await store.put(Data("2".utf8), forKey: Self.key("a"))
    #expect(lost == nil)
    #expect(Self.text(try await live.next()) == "a:1")
    try store.reopen()
    // Either outcome is right; then what comes is seen.
    try await Self.put(store, "b", "3")
    let kept = Self.text(try store.records(in: "c"))
    #expect(Self.text(try await live.next()) == kept)
    #expect(kept?.hasSuffix("b:3") == true)
  }

  @Test func `What is committed while the first is read comes next`() async throws {
    let files = SimulatedFileSystem()
    let store = try ChangeStore(
      path: "/store", .tiny, platform: files, scheduler: ManualScheduler())
    try store.applyAndWait([change("a", time(1), payload: "1")])
    var live = store.liveRecords(in: "c").makeAsyncIterator()
    files.beforeEachCall { call in
      guard call.kind == .read else { return }
      files.beforeEachCall(nil)
      #expect(throws: Never.self) {
        try store.applyAndWait([change("b", time(2), payload: "2")])
      }
    }
    #expect(Self.text(try await live.next()) == "a:1")
    try await store.apply([change("c", time(3), payload: "3")])
    #expect(Self.text(try await live.next()) == "a:1 b:2 c:3")
  }

  @Test func `An error is thrown, and the next call tries again`() async throws {
    let files = SimulatedFileSystem()
    let store = try ChangeStore(
      path: "/store", .tiny, platform: files, scheduler: ManualScheduler())
    var live = store.liveRecords(in: "c").makeAsyncIterator()
    try await store.put(Data(count: 200_000), forKey: Self.key("a"))
    files.inject(FaultPlan(.failing(EIO), kinds: [.read]))
    #expect(await storeError { _ = try await live.next() }?.code == .inputOutput)
    files.clearFaults()
    #expect(try await live.next()?.map(\.payload.count) == [200_000])
  }

  // MARK: Properties

  @Test(arguments: 0..<16 as Range<UInt64>)
  func `Each element is what a model has`(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let files = SimulatedFileSystem()
    var configuration = Configuration.tiny
    configuration.tombstoneRetention = seed % 2 == 0 ? .zero : nil
    let store = try ChangeStore(
      path: "/store", configuration, platform: files, scheduler: ManualScheduler())
    var model = ReferenceModel()
    let prefix = ["", "a", "b"][Int(seed % 3)]
    var live = store.liveRecords(in: "c", idPrefix: prefix).makeAsyncIterator()
    var shown = try await live.next()
    #expect(shown == [])
    for step in 0..<200 {
      files.clock.advance(by: 10)
      let id = ["a", "b", "c"][Int(random.next() % 3)] + "\(random.next() % 6)"
      let key = Self.key(id, in: random.next() % 5 == 0 ? "d" : "c")
      switch random.next() % 12 {
      case 0: try store.reopen()
      case 1:
        try store.suspend()
        try store.resume()
      case 2, 3: try store.compact()
      case 4...6:
        if let record = try await store.delete(key) { try model.apply([record]) }
      case 7:
        let record = change(
          id, "\(files.clock.milliseconds)-\(step)-peer", .update, payload: "\(step)")
        try await store.apply([record])
        try model.apply([record])
      default:
        try model.apply([try await store.put(Data("\(step)".utf8), forKey: key)])
      }
      guard random.next() % 3 == 0 else { continue }
      let expected = model.records(in: "c", idPrefix: prefix).filter { $0.type != .delete }
      // Where nothing has changed there is nothing to wait for.
      if expected != shown {
        shown = try await live.next()
        #expect(shown == expected, "seed \(seed), step \(step)")
      }
    }
  }

  @Test func `Writers, peers and observers at the same time come to one end`() async throws {
    for _ in 0..<4 {
      let store = try ChangeStore.inMemory(configuration: .tiny)
      let observers = (0..<3).map { _ in
        Task { [live = store.liveRecords(in: "c")] in
          var last: [ChangeRecord] = []
          for try await records in live {
            #expect(zip(records, records.dropFirst()).allSatisfy { $0.id < $1.id })
            // Versions do not go back.
            for record in records {
              if let before = last.first(where: { $0.id == record.id }) {
                #expect(HlcComparator.compare(before.hlcTimestamp, record.hlcTimestamp) <= 0)
              }
            }
            last = records
          }
          return last
        }
      }
      try await withThrowingTaskGroup { group in
        for writer in 0..<3 {
          group.addTask {
            for index in 0..<25 {
              let id = "\((writer + index) % 5)"
              if index % 6 == 5 {
                try await store.delete(Self.key(id))
              } else {
                try await Self.put(store, id, "\(writer).\(index)")
              }
              if index % 10 == 9 { try store.compact() }
            }
          }
        }
        try await group.waitForAll()
      }
      let end = try store.records(in: "c").filter { $0.type != .delete }
      while store.signal.waiterCount < 3 { await Task.yield() }
      try store.close()
      for observer in observers { #expect(try await observer.value == end) }
    }
  }
}
