import AirDbAdapterTesting
import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// All records of an adapter come into a store, whatever its pages are like and whatever ends a call.
struct MigrationTests {
  private typealias Samples = MigrationSamples

  @Test(arguments: [1, 2, 3, 4, 5, 7, 8, 13, 500])
  func everythingComesOver(pageSize: Int) async throws {
    let (source, store) = (ReferenceAdapter(), try ChangeStore.inMemory())
    await source.applyChanges(Samples.changes)
    let result = try await store.migrate(from: source, pageSize: pageSize, author: "migration")
    let count = Samples.changes.count
    #expect(result.isVerified && result.copied == count && result.identical == count)
    #expect(result.compared == count && result.late + result.newerInTarget == 0)
    #expect(result.latestNotGiven == nil)
    #expect(try await Samples.all(store) == Set(Samples.changes))
    #expect(try store.commits(limit: 1).commits.first?.author == "migration")
    let again = try await store.migrate(from: source, pageSize: pageSize)
    #expect(again.isVerified && again.identical == count)
  }

  /// Runs of 1 to 6 equal timestamps, each behind 0 to 6 other changes, with pages of 1 to 9.
  @Test func noRunIsLostAtTheEdgeOfAPage() async throws {
    for before in 0...6 {
      for length in 1...6 {
        var changes = (0..<before).map { Samples.change("a\($0)", $0) }
        changes += (0..<length).map { Samples.change("b\($0)", 50) }
        if length % 2 == 0 { changes += (0..<3).map { Samples.change("c\($0)", 60) } }
        let source = FlawedAdapter([.splitsEqualTimestamps])
        try await source.applyChanges(changes)
        for pageSize in 1...9 {
          let store = try ChangeStore.inMemory()
          let result = try await store.migrate(from: source, pageSize: pageSize)
          #expect(
            result.isVerified && result.late == 0 && result.copied == changes.count,
            "\(before) \(length) \(pageSize): \(result)")
          #expect(try await Samples.all(store) == Set(changes), "\(before) \(length) \(pageSize)")
        }
      }
    }
  }

  /// Texts sorted as texts, as SQLite does it, where clocks are another order.
  @Test(arguments: [1, 2, 3, 500])
  func aSourceIsReadInItsOwnOrder(pageSize: Int) async throws {
    let source = FlawedAdapter([.ordersByText, .splitsEqualTimestamps])
    let counters = ["9", "10", "f", "0f", "F", "100", "1", "00a"]
    let changes = counters.enumerated().map { index, counter in
      var change = Samples.change("id\(index)", 0)
      change.hlcTimestamp = "1700000000000-\(counter)-n"
      return change
    }
    try await source.applyChanges(changes)
    let store = try ChangeStore.inMemory()
    let result = try await store.migrate(from: source, pageSize: pageSize)
    #expect(result.isVerified && result.late == 0)
    #expect(try await Samples.all(store) == Set(changes))
  }

  // MARK: Ends before the end

  @Test(arguments: [false, true])
  func aSourceThatFailsAtAnyCallIsTakenUpAgain(keepsCheckpoints: Bool) async throws {
    let source = ReferenceAdapter()
    await source.applyChanges(Samples.changes)
    var failing = 1
    while true {
      let store = try ChangeStore.inMemory()
      let keeper = CheckpointKeeper()
      let flaky = WatchedAdapter(SplittingAdapter(source), failing: failing)
      let first = try? await store.migrate(from: flaky, pageSize: 4) { try await keeper.keep($0) }
      if first != nil { break }
      let checkpoint = keepsCheckpoints ? try await keeper.checkpoint : nil
      let watched = WatchedAdapter(SplittingAdapter(source))
      let result = try await store.migrate(from: watched, pageSize: 4, resuming: checkpoint)
      #expect(result.isVerified && result.late == 0, "\(failing)")
      #expect(!keepsCheckpoints || result.copied == Samples.changes.count, "\(failing)")
      #expect(try await Samples.all(store) == Set(Samples.changes), "\(failing)")
      let start = await watched.pages.first
      // The copying goes on where it was; the comparison begins anew.
      let isCopied = checkpoint?.isCopied ?? false
      #expect(start?.cursor == (isCopied ? nil : checkpoint?.timestamp), "\(failing)")
      failing += 1
    }
    #expect(failing > 20)
  }

  @Test func aMigrationCancelledAtAnyPageIsTakenUpAgain() async throws {
    let source = ReferenceAdapter()
    await source.applyChanges(Samples.changes)
    var page = 1
    while true {
      let store = try ChangeStore.inMemory()
      let keeper = CheckpointKeeper()
      let task = Task { [page] in
        try await store.migrate(from: source, pageSize: 4) { progress in
          try await keeper.keep(progress)
          if await keeper.count == page { withUnsafeCurrentTask { $0?.cancel() } }
        }
      }
      let outcome = await task.result
      if await keeper.count < page { break }
      if case .failure(let error) = outcome { #expect(error is CancellationError) }
      let result = try await store.migrate(
        from: source, pageSize: 4, resuming: keeper.checkpoint)
      #expect(result.isVerified && result.copied == Samples.changes.count)
      page += 1
    }
    #expect(page > 10)
  }

  @Test func aTaskCancelledBeforeReadsNothing() async throws {
    let (source, store) = (WatchedAdapter(ReferenceAdapter()), try ChangeStore.inMemory())
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await store.migrate(from: source)
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(await source.calls == 0)
  }

  /// A checkpoint costs nothing when it is wrong: the comparison brings what it left out.
  @Test func wrongCheckpointsAreHarmless() async throws {
    let (source, other) = (ReferenceAdapter(), try ChangeStore.inMemory())
    await source.applyChanges(Samples.changes)
    let keeper = CheckpointKeeper()
    _ = try await other.migrate(from: source) { try await keeper.keep($0) }
    let foreign = try #require(try await keeper.checkpoint)
    #expect(foreign.isCopied && foreign.copied == Samples.changes.count)

    let store = try ChangeStore.inMemory()
    _ = try await store.migrate(to: ReferenceAdapter()) { try await keeper.keep($0) }
    let backward = try #require(try await keeper.checkpoint)
    for ignored in [foreign, backward] {
      let watched = WatchedAdapter(source)
      let result = try await store.migrate(from: watched, resuming: ignored)
      #expect(result.isVerified && result.copied == Samples.changes.count && result.late == 0)
    }

    let fresh = try ChangeStore.inMemory()
    _ = try await fresh.migrate(from: ReferenceAdapter()) { try await keeper.keep($0) }
    let early = try #require(try await keeper.checkpoint)
    let result = try await fresh.migrate(from: source, resuming: early)
    #expect(result.isVerified && result.copied == 0 && result.late == Samples.changes.count)
    #expect(try await Samples.all(fresh) == Set(Samples.changes))
  }

  // MARK: Writers, payloads, records that are refused

  @Test func whatArrivesBehindTheReaderIsLate() async throws {
    let (source, store) = (ReferenceAdapter(), try ChangeStore.inMemory())
    await source.applyChanges(Samples.changes)
    try await store.apply([Samples.change("id5-1", 70, "newer here")])
    let result = try await store.migrate(from: source, pageSize: 4) { progress in
      guard progress.phase == .copying, progress.checkpoint.isCopied else { return }
      await source.applyChanges([Samples.change("late", 0), Samples.change("id4-0", 60)])
    }
    #expect(result.isVerified && result.late == 2 && result.newerInTarget == 1)
    #expect(try store.record(forKey: RecordKey(collection: "notes", id: "late")) != nil)
    let again = try await store.migrate(from: source)
    #expect(again.late == 0)
  }

  @Test func largePayloadsMakePagesSmall() async throws {
    let (source, store) = (ReferenceAdapter(), try ChangeStore.inMemory())
    let payload = Data(repeating: 7, count: 1 << 20)
    let changes = (0..<40).map { index in
      var change = Samples.change("id\(index)", index)
      change.payload = payload + Data("\(index)".utf8)
      return change
    }
    await source.applyChanges(changes)
    let watched = WatchedAdapter(source)
    let result = try await store.migrate(from: watched)
    #expect(result.isVerified && result.identical == 40)
    #expect(await watched.pages.allSatisfy { $0.count <= 16 })
    #expect(await watched.pages.contains { $0.limit <= 8 && $0.count > 4 })
  }

  @Test func aConflictOfEqualTimestampsIsADifference() async throws {
    let (source, store) = (ReferenceAdapter(), try ChangeStore.inMemory())
    await source.applyChanges([Samples.change("a", 1, "one"), Samples.change("b", 2)])
    try await store.apply([Samples.change("a", 1, "another")])
    let result = try await store.migrate(from: source)
    #expect(!result.isVerified && result.differenceCount == 1 && result.identical == 1)
    #expect(result.differences.map(\.kind) == [.conflicting])
    #expect(result.differences.map(\.key.id) == ["a"])
  }

  @Test func aRecordThatIsRefusedEndsItOrIsSetAside() async throws {
    let (source, store) = (ReferenceAdapter(), try ChangeStore.inMemory())
    var bad = Samples.change("bad", 3)
    bad.hlcTimestamp = "nonsense"
    await source.applyChanges(Samples.changes + [bad])
    let error = await #expect(throws: LogStoreError.self) { try await store.migrate(from: source) }
    #expect(error?.code == .invalidTimestamp)
    let (stream, continuation) = AsyncStream<ChangeRecord>.makeStream()
    let result = try await store.migrate(
      from: source, settingAside: { record, _ in continuation.yield(record) })
    continuation.finish()
    #expect(!result.isVerified && result.setAside == 1 && result.differenceCount == 0)
    #expect(result.identical == Samples.changes.count)
    var asides: [ChangeRecord] = []
    for await record in stream { asides.append(record) }
    #expect(asides == [bad])
  }

  /// Texts of any kind, in a store that orders them by their bytes.
  @Test func opaqueTimestampsComeIntoAStoreForThem() async throws {
    var configuration = Configuration()
    configuration.timestampFormat = .utf8Order
    let source = try ChangeStore.inMemory(configuration: configuration)
    let store = try ChangeStore.inMemory(configuration: configuration)
    let changes = ["b", "1-0", "01-0", "a", "é"].enumerated().map { index, timestamp in
      var change = Samples.change("id\(index)", 0)
      change.hlcTimestamp = timestamp
      return change
    }
    try await source.apply(changes)
    let result = try await store.migrate(from: SplittingAdapter(source), pageSize: 1)
    #expect(result.isVerified && result.latestNotGiven == nil)
    #expect(try await Samples.all(store) == Set(changes))
  }

  // MARK: Sources that break the contract

  @Test func aSourceThatGivesItsCursorIsNotReadForEver() async throws {
    let source = FlawedAdapter([.givesTheCursorItself])
    try await source.applyChanges(Samples.changes)
    for pageSize in [1, 3, 500] {
      let store = try ChangeStore.inMemory()
      let error = await #expect(throws: LogStoreError.self) {
        try await store.migrate(from: source, pageSize: pageSize)
      }
      #expect(error?.code == .brokenAdapter)
    }
  }

  @Test func aLatestTimestampThatIsNeverGivenShows() async throws {
    struct Hiding: AirDbAdapter {
      let adapter = ReferenceAdapter()

      func getChangesSince(sinceHlcTimestamp: String?, limit: Int) async -> [ChangeRecord] {
        await adapter.getChangesSince(sinceHlcTimestamp: sinceHlcTimestamp, limit: limit)
          .filter { $0.id != "hidden" }
      }
      func applyChanges(_ changes: [ChangeRecord]) async { await adapter.applyChanges(changes) }
      func getLatestHlc() async -> String? { await adapter.getLatestHlc() }
    }
    let (source, store) = (Hiding(), try ChangeStore.inMemory())
    let hidden = Samples.change("hidden", 90)
    await source.applyChanges(Samples.changes + [hidden])
    let result = try await store.migrate(from: source)
    #expect(result.latestNotGiven == hidden.hlcTimestamp)
  }
}
