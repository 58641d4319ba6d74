import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// Deletions that are forgotten, and consumers.
@Suite struct PurgeTests {
  @Test(arguments: [
    Consumer.Retention.history(maximumBytes: 1), .history(maximumAge: .zero), .history(),
    .latestVersions,
  ])
  func `A deletion that a consumer has not seen stays, whatever the consumer's cap`(
    retention: Consumer.Retention
  ) throws {
    let home = try CleaningTests.Home { $0.tombstoneRetention = .zero }
    let consumer = try home.store.consumer(named: "late", retaining: retention)
    try home.write("abcdefgh")
    try home.write("abcdefgh")
    let deletion = try home.write("abcd", .delete)
    let end = try home.write("xyz")
    home.age(seconds: 1_000)
    try home.reopen()
    let result = try home.compact()
    #expect(result.tombstonesPurged == 0)
    // Beyond its cap it is like one that follows the latest versions; without one all is there.
    #expect((result.recordsDropped > 0) == (retention != .history()))
    let status = try #require(try home.store.consumers().first)
    #expect(
      status.isBeyondCap
        == (retention == .history(maximumBytes: 1) || retention == .history(maximumAge: .zero)))
    let seen = try home.store.commits(after: consumer.position(), limit: .max).commits
    #expect(
      seen.flatMap(\.changes).filter { $0.type == .delete }.map(\.key.id).sorted()
        == ["a", "b", "c", "d"])
    // Up to the commit before is not far enough.
    let before = try #require(
      try home.store.commits(limit: .max).commits.last {
        $0.position.sequence < deletion.sequence
      }?.position)
    try consumer.acknowledge(before)
    #expect(try home.compact().tombstonesPurged == 0)
    try consumer.acknowledge(deletion)
    #expect(try home.compact().tombstonesPurged == 4)
    #expect(try home.store.retentionReport().horizon == deletion.sequence)
    let rest = try home.store.commits(after: consumer.position(), limit: 9).commits
    #expect(rest.map(\.position) == [end])
  }

  @Test func `From before a purge there is an error that names the gap, and rebuilding leads back`()
    async throws
  {
    let home = try CleaningTests.Home { $0.tombstoneRetention = .zero }
    let consumer = try home.store.consumer(named: "x")
    // What the consumer feeds has all of it up to the second commit.
    let target = try ChangeStore.inMemory()
    try home.write("abcdefgh")
    let early = try home.write("ab")
    try await consumer.merge(into: target)
    #expect(try consumer.position() == early)
    let deletion = try home.write("abcd", .delete)
    try home.write("efz")
    // Its progress was saved, so that the deletions can go, and then its slot rots: the file falls
    // back to what the other one has.
    try consumer.acknowledge(deletion)
    home.age(seconds: 10)
    #expect(try home.compact().tombstonesPurged == 4)
    let horizon = try home.store.retentionReport().horizon
    #expect(horizon == deletion.sequence)
    try home.store.close()
    home.scheduler.run()
    let table = try #require(
      [4_096, 8_192].first { offset in
        let store = try? Self.store(on: home, damagedAt: offset)
        return (try? store?.consumers().first?.position) == .some(early)
      })
    let store = try Self.store(on: home, damagedAt: table)
    let again = try store.consumer(named: "x")
    #expect(try again.position() == early)

    for call in [{ try await again.deliver { _ in } }, { try await again.merge(into: target) }] {
      let error = await storeError { try await call() }
      #expect(error?.code == .historyPurged)
      let counters = [early.sequence, horizon].map { "commit \(describe($0))" }
      for counter in counters { #expect(error?.message.contains(counter) == true) }
    }
    for call in [
      { _ = try store.commits(after: early, limit: 9) }, { try again.reset(to: early) },
      { _ = try store.consumer(named: "y", from: .position(early)) },
    ] as [() throws -> Void] {
      #expect {
        try call()
      } throws: { error in
        (error as? LogStoreError)?.code == .historyPurged
      }
    }
    #expect(try again.position() == early, "it has not moved")

    // The keys that the pages do not show are gone.
    let shown = Locked<Set<RecordKey>>([])
    let clock = Locked(1_000)
    try await again.rebuild(limit: 3) { page in
      #expect(page.showsAllKeys)
      try await target.apply(page.records)
      shown.withLock { shown in
        for record in page.records { shown.insert(Self.key(record)) }
      }
      guard page.isLast else { return }
      let all = shown.withLock { $0 }
      let gone = try target.changes(limit: .max).records.filter {
        $0.type != .delete && !all.contains(Self.key($0))
      }
      #expect(gone.map(\.id).sorted() == ["a", "b", "c", "d"])
      try await target.apply(
        gone.map { record in
          let stamp = clock.withLock { clock in
            clock += 1
            return clock
          }
          return CleaningTests.record(record.id, stamp, .delete)
        })
    }
    func live(_ store: ChangeStore) throws -> [ChangeRecord] {
      try store.changes(limit: .max).records.filter { $0.type != .delete }
    }
    #expect(try live(target) == live(store))
    // It goes on from the end.
    try store.applyAndWait([
      CleaningTests.record("q", 500), CleaningTests.record("e", 501, .delete),
    ])
    try await again.merge(into: target)
    #expect(try live(target) == live(store))
    #expect(try again.lag().commits == 0)
  }

  private static func key(_ record: ChangeRecord) -> RecordKey {
    RecordKey(collection: record.collection, id: record.id)
  }

  /// The store after its consumer file has rotted in one place.
  private static func store(
    on home: CleaningTests.Home, damagedAt offset: Int
  ) throws -> ChangeStore {
    let files = home.files.damaged(
      "/store/CONSUMERS", .flipBit(byte: UInt64(offset + 70), bit: 0))
    return try ChangeStore(
      path: "/store", home.configuration, platform: files, scheduler: ManualScheduler())
  }

  @Test func `A look at the consumers does not wait for a change that is being made durable`()
    throws
  {
    let files = SimulatedFileSystem()
    let store = try ChangeStore(
      path: "/store", .tiny, platform: files, scheduler: ManualScheduler())
    let consumer = try store.consumer(named: "x", retaining: .history())
    let position = try #require(try store.applyAndWait([change("a", time(1))]).position)
    let found = Locked<[Position?]>([])
    let isLooking = Locked(false)
    files.beforeEachCall { call in
      guard call.path.contains("/CONSUMERS"), call.kind.changesDisk,
        !isLooking.withLock({ $0 })
      else { return }
      isLooking.withLock { $0 = true }
      defer { isLooking.withLock { $0 = false } }
      // On this thread, which has the change in hand: if it waited, it would for ever.
      do {
        let status = try store.retentionReport().consumers.first
        let place = try consumer.position()
        #expect(place == status?.position)
        #expect(try store.compactionEstimate().segments == 0)
        found.withLock { $0.append(place) }
      } catch {
        Issue.record(error)
      }
    }
    try consumer.acknowledge(position)
    let duringProgress = found.withLock { $0 }
    _ = try store.consumer(named: "y")
    files.beforeEachCall(nil)
    #expect(duringProgress.count == 2, "a write and a sync")
    #expect(duringProgress.allSatisfy { $0 == nil }, "what is not durable does not show")
    #expect(found.withLock { $0.last } == position)
    #expect(try consumer.position() == position)
  }
}
