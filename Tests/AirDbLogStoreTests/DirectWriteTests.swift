import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// Changes that the store stamps itself: what they do, what they refuse, and in which states.
@Suite struct DirectWriteTests {
  private static let key = RecordKey(collection: "c", id: "a")

  private static func data(_ text: String) -> Data { Data(text.utf8) }

  @Test(arguments: StoreHome.allCases)
  func `A put inserts, then updates; a deletion deletes what is there`(home: StoreHome)
    async throws
  {
    try await home.withStore { subject in
      let key = Self.key
      var stamps: [String] = []
      #expect(try await subject.store.delete(key) == nil)
      #expect(try subject.store.position == nil)
      for (number, type) in [MutationType.insert, .update, .update].enumerated() {
        let put = try await subject.store.put(Self.data("\(number)"), forKey: key)
        #expect(put.type == type && put.payload == Self.data("\(number)"))
        try subject.step()
        #expect(try subject.store.record(forKey: key) == put)
        stamps.append(put.hlcTimestamp)
      }
      let deletion = try #require(try await subject.store.delete(key))
      #expect(deletion.type == .delete && deletion.payload.isEmpty)
      stamps.append(deletion.hlcTimestamp)
      try subject.step()
      #expect(try subject.store.record(forKey: key) == deletion)
      let end = try subject.store.position
      #expect(try await subject.store.delete(key) == nil)
      #expect(try subject.store.position == end)
      let again = try await subject.store.put(Data(), forKey: key)
      #expect(again.type == .insert)
      stamps.append(again.hlcTimestamp)
      for (before, after) in zip(stamps, stamps.dropFirst()) {
        #expect(HlcComparator.compare(before, after) < 0)
      }
      #expect(try subject.store.verify().isClean)
    }
  }

  @Test(arguments: [StoreHome.memory, .reopenedInTinySegments])
  func `An update sees what is there, and writes only what has changed`(home: StoreHome)
    async throws
  {
    try await home.withStore { subject in
      let key = Self.key
      func update(_ transform: @Sendable (inout Data?) throws -> Void) async throws -> Data? {
        defer { try! subject.step() }
        return try await subject.store.update(key, transform)
      }
      var unchanged: Data?
      unchanged = try await update { seen in #expect(seen == nil) }
      #expect(unchanged == nil)
      #expect(try subject.store.position == nil)
      #expect(try await update { $0 = Self.data("1") } == Self.data("1"))
      #expect(try await update { $0?.append(contentsOf: [0x32]) } == Self.data("12"))
      let end = try subject.store.position
      unchanged = try await update { seen in #expect(seen == Self.data("12")) }
      #expect(unchanged == Self.data("12"))
      #expect(try subject.store.position?.sequence == end?.sequence)
      #expect(try await update { $0 = nil } == nil)
      #expect(try subject.store.record(forKey: key)?.type == .delete)
      // A deletion that a peer sent with a payload is no payload.
      try await subject.apply(change("a", "9999999999999-0", .delete, payload: "x"))
      unchanged = try await update { seen in #expect(seen == nil) }
      #expect(unchanged == nil)
      struct Refusal: Error {}
      let before = try subject.store.position
      await #expect(throws: Refusal.self) {
        _ = try await update {
          $0 = Self.data("never")
          throw Refusal()
        }
      }
      #expect(try subject.store.position?.sequence == before?.sequence)
    }
  }

  @Test func `What comes between the read and the write is not lost`() async throws {
    let store = try ChangeStore.inMemory()
    let key = Self.key
    try await store.put(Self.data("0"), forKey: key)
    // A put, a change of a peer, a deletion, each while the update is under way.
    let calls = Locked<[Data?]>([])
    let result = try await store.update(key) { payload in
      let count = calls.withLock { calls in
        calls.append(payload)
        return calls.count
      }
      let stamp = try #require(try store.latestTimestamp)
      switch count {
      case 1:
        try store.applyAndWait([change("a", stamp + "1", payload: "peer")])
        // Of another record: that does not matter.
        try store.applyAndWait([change("b", stamp + "2")])
      case 2: try store.applyAndWait([change("a", stamp + "3", .delete)])
      case 3: try store.applyAndWait([change("b", stamp + "4")])
      default: Issue.record("called too often")
      }
      payload = (payload ?? Data()) + Self.data("+")
    }
    #expect(calls.withLock { $0 } == [Self.data("0"), Self.data("peer"), nil])
    #expect(result == Self.data("+"))
    #expect(try store.record(forKey: key)?.payload == Self.data("+"))
    #expect(try store.record(forKey: key)?.type == .insert)
  }

  @Test func `A redelivery and a stale change do not disturb an update`() async throws {
    let store = try ChangeStore.inMemory()
    let peer = change("a", time(5), payload: "peer")
    try await store.apply([peer])
    let calls = Locked(0)
    try await store.update(Self.key) { payload in
      calls.withLock { $0 += 1 }
      try store.applyAndWait([peer, change("a", time(4), payload: "old")])
      payload = Self.data("new")
    }
    #expect(calls.withLock { $0 } == 1)
  }

  @Test func `A cancelled update ends`() async throws {
    let store = try ChangeStore.inMemory()
    let task = Task {
      // Without end: each time there is something new.
      try await store.update(Self.key) { payload in
        withUnsafeCurrentTask { $0?.cancel() }
        let stamp = try store.latestTimestamp.map { $0 + "0" } ?? time(1)
        try store.applyAndWait([change("a", stamp)])
        payload = Self.data("never")
      }
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try store.record(forKey: Self.key)?.payload == Data())
  }

  @Test func `A batch is whole; of one record the last change counts`() async throws {
    let store = try ChangeStore.inMemory()
    func key(_ id: String) -> RecordKey { RecordKey(collection: "c", id: id) }
    #expect(try await store.write([]).isEmpty)
    try await store.put(Self.data("old"), forKey: key("gone"))
    let records = try await store.write(
      [
        .put(Self.data("1"), forKey: key("a")), .put(Self.data("2"), forKey: key("b")),
        .delete(key("absent")), .put(Self.data("3"), forKey: key("a")), .delete(key("gone")),
        .put(Self.data("4"), forKey: key("never")), .delete(key("never")),
      ], author: "x")
    #expect(records.map(\.id) == ["b", "a", "gone"])
    #expect(records.map(\.payload) == [Self.data("2"), Self.data("3"), Data()])
    #expect(zip(records, records.dropFirst()).allSatisfy { $0.hlcTimestamp < $1.hlcTimestamp })
    let last = try #require(try store.commits(limit: 10).commits.last)
    #expect(last.author == "x" && last.changes.map(\.key.id) == ["b", "a", "gone"])
    // Two spellings of one text are two ids.
    let spellings = try await store.write([
      .put(Data(), forKey: key("e\u{301}")), .put(Data(), forKey: key("\u{E9}")),
    ])
    #expect(spellings.count == 2)
    // Nothing of a batch of which something is refused.
    let end = try store.position
    let error = await storeError {
      try await store.write([
        .put(Data(), forKey: key("z")),
        .put(Data(), forKey: key(String(repeating: "z", count: 65_537))),
      ])
    }
    #expect(error?.code == .limitExceeded && error?.recordIndex == 1)
    #expect(try store.position == end)
  }

  // MARK: Refusals

  private static let calls: [@Sendable (ChangeStore) async throws -> Void] = [
    { try await $0.put(Data(), forKey: key) }, { try await $0.delete(key) },
    { try await $0.update(key) { $0 = Data() } }, { try await $0.write([]) },
    { try $0.putAndWait(Data(), forKey: key) }, { try $0.deleteAndWait(key) },
    { try $0.updateAndWait(key) { $0 = Data() } }, { try $0.writeAndWait([]) },
  ]

  private static func expect(_ code: LogStoreError.Code, _ store: ChangeStore) async {
    for call in calls { #expect(await storeError { try await call(store) }?.code == code) }
  }

  @Test func `Read-only, suspended and closed stores refuse`() async throws {
    try await withTemporaryDirectory { root in
      let store = try ChangeStore(at: root + "/store")
      try await store.put(Data(), forKey: Self.key)
      var configuration = Configuration()
      configuration.isReadOnly = true
      let reader = try ChangeStore(at: root + "/store", configuration: configuration)
      await Self.expect(.readOnly, reader)
      try store.suspend()
      await Self.expect(.suspended, store)
      try store.resume()
      try await store.put(Data(), forKey: Self.key)
      try store.close()
      await Self.expect(.closed, store)
    }
  }

  // MARK: Callers that wait

  /// One and the same script by the calls that suspend, and by those that wait.
  @Test func `The calls that wait do what the others do`() async throws {
    struct Value: Codable, Equatable { var text: String }
    let (first, second) = (try ChangeStore.inMemory(), try ChangeStore.inMemory())
    let (some, others) = (
      first.collection("v", of: Value.self), second.collection("v", of: Value.self)
    )
    let other = RecordKey(collection: "c", id: "other")
    for round in 0..<3 {
      let data = Self.data("\(round)")
      #expect(
        try await first.put(data, forKey: Self.key).type
          == second.putAndWait(data, forKey: Self.key).type)
      let changed = try await first.update(Self.key) { $0?.append(7) }
      #expect(try second.updateAndWait(Self.key) { $0?.append(7) } == changed)
      #expect(changed == data + [7])
      let written = try await first.write([.put(data, forKey: other), .delete(Self.key)])
      let waited = try second.writeAndWait([.put(data, forKey: other), .delete(Self.key)])
      #expect(written.map(\.type) == waited.map(\.type))
      #expect(try await first.delete(Self.key) == nil)
      #expect(try second.deleteAndWait(Self.key) == nil)
      #expect(
        try await first.delete(other, author: "x")?.type
          == second.deleteAndWait(other, author: "x")?.type)

      let value = Value(text: "\(round)")
      try await some.put(value, forId: "1")
      try others.putAndWait(value, forId: "1")
      try await some.update("1") { $0?.text += "!" }
      #expect(try others.updateAndWait("1") { $0?.text += "!" }?.text == "\(round)!")
      try await some.delete("1")
      #expect(try others.deleteAndWait("1") != nil)
    }
    let (all, waited) = (try first.history(), try second.history())
    #expect(all.map(\.author) == waited.map(\.author))
    #expect(all.map { $0.records.map(\.id) } == waited.map { $0.records.map(\.id) })
    let contents = try [first, second].map { try $0.changes(limit: .max).records }
    #expect(contents[0].map(\.payload) == contents[1].map(\.payload))
  }

  @Test func `An update that waits begins again when it was overtaken, and ends by its closure`()
    throws
  {
    struct Stop: Error {}
    let store = try ChangeStore.inMemory()
    var calls = 0
    try store.updateAndWait(Self.key) { payload in
      calls += 1
      if calls < 3 { try store.putAndWait(Self.data("\(calls)"), forKey: Self.key) }
      payload = (payload ?? Data()) + Self.data("+")
    }
    #expect(calls == 3)
    #expect(try store.record(forKey: Self.key)?.payload == Self.data("2+"))
    #expect(throws: Stop.self) { try store.updateAndWait(Self.key) { _ in throw Stop() } }
  }

  @Test(arguments: [nil, [7], [0, 9]] as [Set<Int>?])
  func `A deletion is what the store has recorded as one`(values: Set<Int>?) throws {
    var configuration = Configuration()
    configuration.deletionValues = values
    let platform = MemoryPlatform()
    let store = try ChangeStore(path: "/store", configuration, platform: platform)
    try store.close()
    // Another opening takes them from the store.
    let again = try ChangeStore(path: "/store", Configuration(), platform: platform)
    try again.close()
    for raw in [-1, 0, 1, 2, 7, 9, .max, .min] {
      let type = try #require(MutationType(rawValue: raw))
      #expect(store.isDeletion(type) == (values ?? [2]).contains(raw))
      #expect(again.isDeletion(type) == store.isDeletion(type))
    }
  }

  @Test func `After a failed sync nothing is written until the store is reopened`() async throws {
    let files = SimulatedFileSystem()
    let store = try ChangeStore(
      path: "/store", .tiny, platform: files, scheduler: ManualScheduler())
    let first = try await store.put(Self.data("1"), forKey: Self.key)
    files.inject(
      FaultPlan(.failing(EIO), kinds: [.synchronize], pathSuffix: ".segment", on: .only(1)))
    #expect(
      await storeError { try await store.put(Self.data("2"), forKey: Self.key) }?.code
        == .outcomeUnknown)
    await Self.expect(.outcomeUnknown, store)
    #expect(try store.record(forKey: Self.key) == first)
    try store.reopen()
    let next = try await store.put(Self.data("3"), forKey: Self.key)
    #expect(HlcComparator.compare(next.hlcTimestamp, first.hlcTimestamp) > 0)
    #expect(try store.record(forKey: Self.key) == next)
  }

  @Test func `A refused commit is not there, and can be tried again`() async throws {
    let files = SimulatedFileSystem()
    let store = try ChangeStore(
      path: "/store", .tiny, platform: files, scheduler: ManualScheduler())
    try await store.put(Self.data("1"), forKey: Self.key)
    files.inject(FaultPlan(.failing(ENOSPC), kinds: [.reserve]))
    // Which does not shrink.
    var random = SeededGenerator(seed: 1)
    let large = Data((0..<100_000).map { _ in UInt8(truncatingIfNeeded: random.next()) })
    #expect(await storeError { try await store.put(large, forKey: Self.key) }?.code == .noSpace)
    files.clearFaults()
    #expect(try store.record(forKey: Self.key)?.payload == Self.data("1"))
    try await store.put(large, forKey: Self.key)
    #expect(try store.record(forKey: Self.key)?.payload == large)
  }

  @Test func `Opaque timestamps cannot be made, and the error says so`() async throws {
    var configuration = Configuration()
    configuration.timestampFormat = .utf8Order
    let store = try ChangeStore.inMemory(configuration: configuration)
    try await store.apply([change("a", "opaque", payload: "x")])
    await Self.expect(.clockUnavailable, store)
    #expect(try store.record(forKey: Self.key)?.payload == Self.data("x"))
  }

  @Test func `Types that the store takes for deletions are not used for anything else`()
    async throws
  {
    var configuration = Configuration()
    configuration.deletionValues = []
    let without = try ChangeStore.inMemory(configuration: configuration)
    try await without.put(Data(), forKey: Self.key)
    #expect(await storeError { try await without.delete(Self.key) }?.code == .configurationMismatch)
    configuration.deletionValues = [1]
    let strange = try ChangeStore.inMemory(configuration: configuration)
    #expect(
      await storeError { try await strange.put(Data(), forKey: Self.key) }?.code
        == .configurationMismatch)
    configuration.deletionValues = [7, -3]
    let other = try ChangeStore.inMemory(configuration: configuration)
    try await other.put(Data(), forKey: Self.key)
    #expect(try await other.delete(Self.key)?.type.rawValue == -3)
    #expect(try await other.delete(Self.key) == nil)
  }
}
