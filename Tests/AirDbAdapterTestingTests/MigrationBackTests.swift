import AirDbAdapterTesting
import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// All records of a store come into another adapter, and what that one loses is said.
struct MigrationBackTests {
  private typealias Samples = MigrationSamples

  private func makeStore(_ changes: [ChangeRecord] = Samples.changes) async throws -> ChangeStore {
    let store = try ChangeStore.inMemory()
    try await store.apply(changes)
    return store
  }

  @Test(arguments: [1, 2, 3, 4, 5, 7, 8, 13, 500])
  func everythingGoesBack(pageSize: Int) async throws {
    let (store, target) = (try await makeStore(), ReferenceAdapter())
    for adapter in [target, SplittingAdapter(target)] as [any AirDbAdapter & Sendable] {
      let result = try await store.migrate(to: adapter, pageSize: pageSize)
      let count = Samples.changes.count
      #expect(result.isVerified && result.copied == count && result.identical == count)
      #expect(result.late + result.onlyInTarget + result.newerInTarget == 0)
      #expect(try await Samples.all(target) == Set(Samples.changes))
    }
  }

  @Test func aTargetThatFailsAtAnyCallIsTakenUpAgain() async throws {
    let store = try await makeStore()
    var failing = 1
    while true {
      let target = ReferenceAdapter()
      let keeper = CheckpointKeeper()
      let flaky = WatchedAdapter(target, failing: failing)
      let first = try? await store.migrate(to: flaky, pageSize: 4) { try await keeper.keep($0) }
      if first != nil { break }
      let result = try await store.migrate(to: target, pageSize: 4, resuming: keeper.checkpoint)
      #expect(result.isVerified && result.late == 0 && result.copied == Samples.changes.count)
      #expect(try await Samples.all(target) == Set(Samples.changes), "\(failing)")
      failing += 1
    }
    #expect(failing > 10)
  }

  @Test func aMigrationBackCancelledAtAnyPageIsTakenUpAgain() async throws {
    let store = try await makeStore()
    var page = 1
    while true {
      let (target, keeper) = (ReferenceAdapter(), CheckpointKeeper())
      let task = Task { [page] in
        try await store.migrate(to: target, pageSize: 4) { progress in
          try await keeper.keep(progress)
          if await keeper.count == page { withUnsafeCurrentTask { $0?.cancel() } }
        }
      }
      let outcome = await task.result
      if await keeper.count < page { break }
      if case .failure(let error) = outcome { #expect(error is CancellationError) }
      let result = try await store.migrate(to: target, pageSize: 4, resuming: keeper.checkpoint)
      #expect(result.isVerified && result.copied == Samples.changes.count)
      page += 1
    }
    #expect(page > 10)
  }

  @Test func aTargetThatWasWrittenKeepsItsOwn() async throws {
    let (store, target) = (try await makeStore(), ReferenceAdapter())
    await target.applyChanges([
      Samples.change("only there", 3), Samples.change("id5-1", 70, "newer there"),
    ])
    let result = try await store.migrate(to: target)
    #expect(result.isVerified && result.onlyInTarget == 1 && result.newerInTarget == 1)
  }

  @Test func whatAStoreReceivesMeanwhileIsLate() async throws {
    let (store, target) = (try await makeStore(), ReferenceAdapter())
    let result = try await store.migrate(to: target, pageSize: 4) { progress in
      guard progress.phase == .copying, progress.checkpoint.isCopied else { return }
      try await store.apply([Samples.change("late", 0), Samples.change("id4-0", 60)])
    }
    #expect(result.isVerified && result.late == 2)
    #expect(try await Samples.all(target) == Samples.all(store))
  }

  /// What targets do to records, and what is said of it.
  @Test(
    arguments: [
      (.joinsKeys, .missing, ["b:c", "c"]), (.hidesDeletions, .missing, ["gone"]),
      (.nilIsEmpty, .conflicting, nil), (.dropsUnknownTypes, .missing, ["open"]),
      (.normalizesKeys, .missing, ["e\u{301}", "\u{E9}"]),
    ] as [(Flaw, Migration.Difference.Kind, [String]?)])
  func aTargetThatLosesIsSeenThrough(
    flaw: Flaw, kind: Migration.Difference.Kind, ids: [String]?
  ) async throws {
    let (store, target) = (try await makeStore(), FlawedAdapter([flaw]))
    let result = try await store.migrate(to: target)
    #expect(!result.isVerified && result.late == 0, "\(result)")
    #expect(result.differences.contains { $0.kind == kind }, "\(result.differences)")
    if let ids {
      // Of two that became one, either may be there.
      #expect(result.differences.allSatisfy { ids.contains($0.key.id) }, "\(result.differences)")
    }
    #expect(result.differenceCount == result.differences.count)
  }

  @Test func aTargetThatKeepsWhatCameFirstHasOlderVersions() async throws {
    let store = try await makeStore([Samples.change("a", 5, "new"), Samples.change("b", 6)])
    let target = FlawedAdapter([.firstArrivalWins])
    try await target.applyChanges([Samples.change("a", 1, "old")])
    let result = try await store.migrate(to: target)
    #expect(result.differences.map(\.kind) == [.older])
    #expect(result.differences.map(\.key.id) == ["a"])
    #expect(result.late == 0 && result.identical == 1)
  }

  /// There and back, through an adapter that cuts its pages off.
  @Test func thereAndBackIsTheSame() async throws {
    let (store, between) = (try await makeStore(), SplittingAdapter(ReferenceAdapter()))
    #expect(try await store.migrate(to: between, pageSize: 3).isVerified)
    let other = try ChangeStore.inMemory()
    #expect(try await other.migrate(from: between, pageSize: 3).isVerified)
    #expect(try await Samples.all(other) == Samples.all(store))
  }
}
