import AirDbAdapterTesting
import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// Adapters that exchange their changes end with the same records.
struct ConvergenceTests {
  private func change(
    _ id: String, _ time: Int, _ content: String = "", type: MutationType = .insert
  ) -> ChangeRecord {
    ChangeRecord(
      id: id, collection: "notes", type: type, payload: Data(content.utf8),
      hlcTimestamp: "\(1_700_000_000_000 + time)-0000-n")
  }

  private func feed(_ adapter: any AirDbAdapter) async throws -> [ChangeRecord] {
    let changes = try await adapter.getChangesSince(sinceHlcTimestamp: nil, limit: .max)
    // Changes of equal timestamps may come in any order.
    return changes.enumerated().sorted { lhs, rhs in
      let order = HlcComparator.compare(lhs.element.hlcTimestamp, rhs.element.hlcTimestamp)
      return order == 0 ? lhs.element.id < rhs.element.id : order < 0
    }.map(\.element)
  }

  @Test(arguments: [1, 2, 3, 500])
  func eachGetsWhatTheOtherHas(pageSize: Int) async throws {
    let (store, peer) = (try ChangeStore.inMemory(), ReferenceAdapter())
    let common = [change("a", 1), change("b", 2), change("c", 2)]
    try await store.apply(common + [change("d", 3), change("b", 7, "newer"), change("s", 2)])
    await peer.applyChanges(
      common + [change("e", 3), change("c", 9, type: .delete), change("p", 2)])
    let result = try await store.converge(with: peer, pageSize: pageSize)
    #expect(result.isQuiet && result.rounds == 2 && result.conflictingTies == 0)
    let expected = [
      change("a", 1), change("p", 2), change("s", 2), change("d", 3), change("e", 3),
      change("b", 7, "newer"), change("c", 9, type: .delete),
    ]
    #expect(try await feed(store) == expected)
    #expect(try await feed(peer) == expected)
    let again = try await store.converge(with: peer, pageSize: pageSize)
    #expect(again.isQuiet && again.rounds == 1 && again.sent + again.received == 0)
  }

  @Test func onlyWhatDiffersIsSent() async throws {
    let (store, peer) = (try ChangeStore.inMemory(), try ChangeStore.inMemory())
    let changes = (0..<100).map { change("id\($0)", $0 / 3) }
    try await store.apply(changes)
    try await peer.apply(changes.filter { $0.id != "id7" && $0.id != "id50" })
    try await peer.apply([change("only", 5)])
    let result = try await store.converge(with: peer, pageSize: 10)
    #expect(result.sent == 2 && result.received == 1)
  }

  @Test func aConflictOfEqualTimestampsEndsAndIsCounted() async throws {
    let (store, peer) = (try ChangeStore.inMemory(), ReferenceAdapter())
    try await store.apply([change("a", 1, "one"), change("b", 2)])
    await peer.applyChanges([change("a", 1, "another"), change("c", 3)])
    let result = try await store.converge(with: peer)
    #expect(result.isQuiet && result.conflictingTies == 1)
    #expect(try await feed(store).map(\.id) == ["a", "b", "c"])
    #expect(try await feed(store).first?.payload == Data("one".utf8))
    #expect(try await feed(peer).first?.payload == Data("another".utf8))
  }

  @Test func anAdapterThatKeepsNothingIsGivenUp() async throws {
    struct Sieve: AirDbAdapter {
      func getChangesSince(sinceHlcTimestamp: String?, limit: Int) -> [ChangeRecord] { [] }
      func applyChanges(_ changes: [ChangeRecord]) {}
      func getLatestHlc() -> String? { nil }
    }
    let store = try ChangeStore.inMemory()
    try await store.apply([change("a", 1)])
    let result = try await store.converge(with: Sieve(), maximumRounds: 3)
    #expect(!result.isQuiet && result.rounds == 3 && result.sent == 3)
  }

  /// What the other adapter loses where its pages end, and its peers with it, is exchanged all the same.
  @Test(arguments: [1, 2, 3, 4, 10])
  func whatAnAdapterHidesAtTheEdgesOfItsPagesIsFound(pageSize: Int) async throws {
    let (store, peer) = (try ChangeStore.inMemory(), FlawedAdapter([.splitsEqualTimestamps]))
    try await store.apply([change("s", 2)])
    try await peer.applyChanges(
      ["a", "b", "c"].map { change($0, 1) } + ["d", "e", "f", "g", "h"].map { change($0, 2) })
    let result = try await store.converge(with: peer, pageSize: pageSize)
    #expect(result.isQuiet && result.sent == 1 && result.received == 8)
    #expect(try await feed(store).map(\.id) == ["a", "b", "c", "d", "e", "f", "g", "h", "s"])
  }

  @Test func aCancelledExchangeEnds() async throws {
    let (store, peer) = (try ChangeStore.inMemory(), ReferenceAdapter())
    try await store.apply([change("a", 1)])
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await store.converge(with: peer)
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(await peer.getLatestHlc() == nil)
  }

  /// Fails now and then, before or after it has done what it was asked for.
  private actor Unreliable: AirDbAdapter {
    struct Broken: Error {}

    private let adapter: ReferenceAdapter
    private var random: SeededGenerator

    init(_ adapter: ReferenceAdapter, seed: UInt64) {
      self.adapter = adapter
      random = SeededGenerator(seed: seed)
    }

    private func fail() throws {
      if random.next() % 6 == 0 { throw Broken() }
    }

    func getChangesSince(sinceHlcTimestamp: String?, limit: Int) async throws -> [ChangeRecord] {
      try fail()
      return await adapter.getChangesSince(sinceHlcTimestamp: sinceHlcTimestamp, limit: limit)
    }

    func applyChanges(_ changes: [ChangeRecord]) async throws {
      try fail()
      await adapter.applyChanges(changes)
      try fail()
    }

    func getLatestHlc() async throws -> String? { await adapter.getLatestHlc() }
  }

  @Test(arguments: 0..<5 as Range<UInt64>)
  func afterErrorsAnotherCallGoesOn(seed: UInt64) async throws {
    let (store, far) = (try ChangeStore.inMemory(), ReferenceAdapter())
    try await store.apply((0..<30).map { change("s\($0)", $0) })
    await far.applyChanges((0..<30).map { change("f\($0)", $0) })
    let peer = Unreliable(far, seed: seed)
    var isQuiet = false
    for _ in 0..<1_000 where !isQuiet {
      isQuiet = (try? await store.converge(with: peer, pageSize: 8))?.isQuiet ?? false
    }
    #expect(isQuiet)
    #expect(try await feed(store) == feed(far))
    #expect(try await feed(store).count == 60)
  }

  private static let isLong = ProcessInfo.processInfo.environment["AIRDB_LONG_TESTS"] != nil

  /// Eight devices write, with clocks that are wrong, and meet in groups that change; in the end all
  /// meet.
  @Test(arguments: 0..<(isLong ? 400 : 4) as Range<UInt64>)
  func eightStoresConverge(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    var stores: [any AirDbAdapter & Sendable] = []
    // Every other time four of them are adapters of another kind.
    for device in 0..<8 {
      let isOther = seed % 2 == 1 && device % 2 == 1
      stores.append(isOther ? ReferenceAdapter() : try ChangeStore.inMemory())
    }
    var clocks = try (0..<8).map { try HybridLogicalClock(node: "node\($0)") }
    // Up to a day behind or ahead.
    let skews = (0..<8).map { _ in below(172_800_000) }
    var time = 1_700_000_000_000
    let model = ReferenceAdapter()

    for _ in 0..<12 {
      for device in stores.indices {
        let batch = try (0..<below(6)).map { _ in
          time += below(3)
          return ChangeRecord(
            id: "id\(below(25))", collection: "notes", type: [.insert, .update, .delete][below(3)],
            payload: Data("\(below(1_000))".utf8),
            hlcTimestamp: try clocks[device].tick(at: UInt64(time + skews[device])))
        }
        try await stores[device].applyChanges(batch)
        await model.applyChanges(batch)
      }
      // Two groups, within which some meet.
      let border = 1 + below(7)
      for _ in 0..<4 {
        let first = below(8)
        let group = first < border ? 0..<border : border..<8
        let second = group.lowerBound + below(group.count)
        guard first != second else { continue }
        let result = try await stores[first].converge(
          with: stores[second], pageSize: 1 + below(20))
        #expect(result.isQuiet, "seed \(seed)")
        for device in [first, second] {
          guard let latest = try await stores[device].getLatestHlc() else { continue }
          // A stamp from too far ahead moves no clock.
          try? clocks[device].merge(latest, at: UInt64(time + skews[device]))
        }
      }
    }

    // There and back again.
    for device in Array(1..<8) + (1..<7).reversed() {
      _ = try await stores[device - 1].converge(with: stores[device], pageSize: 7)
    }
    let expected = try await feed(model)
    #expect(expected.count > 15)
    for store in stores { #expect(try await feed(store) == expected, "seed \(seed)") }
  }
}
