import AirDbAdapterTesting
import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// The reference adapter and the engine pass every check.
struct ConformanceTests {
  private func expectConformance(
    _ report: AdapterConformance.Report, skipping skipped: Int = 0
  ) {
    #expect(report.isConforming, "\(report)")
    let passed = report.outcomes.filter { if case .passed = $0.result { true } else { false } }
    #expect(passed.count == AdapterConformance.Check.all.count - skipped)
  }

  private func options(
    _ style: AdapterConformance.TimestampStyle = .decimal
  ) -> AdapterConformance.Options {
    var options = AdapterConformance.Options()
    options.timestamps = style
    // More for a long run.
    let isLong = ProcessInfo.processInfo.environment["AIRDB_LONG_TESTS"] != nil
    options.randomScripts = isLong ? 1_000 : 12
    return options
  }

  @Test(arguments: AdapterConformance.TimestampStyle.allCases)
  func theReferenceAdapterPasses(style: AdapterConformance.TimestampStyle) async {
    let conformance = AdapterConformance(
      options: options(style), makeAdapter: { ReferenceAdapter() }, reopen: { $0 })
    expectConformance(await conformance.run())
  }

  @Test(arguments: AdapterConformance.TimestampStyle.allCases)
  func aStoreInMemoryPasses(style: AdapterConformance.TimestampStyle) async {
    let conformance = AdapterConformance(
      options: options(style),
      makeAdapter: {
        var configuration = Configuration()
        if style == .opaque { configuration.timestampFormat = .utf8Order }
        return try ChangeStore.inMemory(configuration: configuration)
      },
      dispose: { try $0.close() })
    expectConformance(await conformance.run(), skipping: 1)
  }

  /// A store with the means to open it again.
  private struct Home: AirDbAdapter {
    let store: ChangeStore
    let open: @Sendable () throws -> ChangeStore

    init(_ open: @escaping @Sendable () throws -> ChangeStore) throws {
      self.open = open
      store = try open()
    }

    func getChangesSince(sinceHlcTimestamp: String?, limit: Int) async throws -> [ChangeRecord] {
      try await store.getChangesSince(sinceHlcTimestamp: sinceHlcTimestamp, limit: limit)
    }

    func applyChanges(_ changes: [ChangeRecord]) async throws {
      try await store.applyChanges(changes)
    }

    func getLatestHlc() async throws -> String? { try await store.getLatestHlc() }
  }

  private func conformance(
    _ options: AdapterConformance.Options,
    makeStore: @escaping @Sendable () throws -> Home
  ) -> AdapterConformance {
    AdapterConformance(
      options: options, makeAdapter: makeStore,
      reopen: { home in
        try home.store.close()
        return try Home(home.open)
      },
      dispose: { try $0.store.close() })
  }

  /// What the store is known to refuse.
  private var refused: [ChangeRecord] {
    [
      ChangeRecord(
        id: String(repeating: "i", count: 65_537), collection: "notes", type: .insert,
        payload: Data(), hlcTimestamp: "1700000000000-0000-a"),
      ChangeRecord(
        id: "i", collection: "notes", type: .insert, payload: Data(),
        hlcTimestamp: "2023-11-14T22:13:20Z-0000-a"),
    ]
  }

  @Test func aStoreOnDiskPasses() async throws {
    try await withTemporaryDirectory { path in
      var options = options()
      options.refusedRecords = refused
      let conformance = conformance(options) {
        let place = "\(path)/\(UUID())"
        return try Home {
          var configuration = Configuration()
          configuration.durability = .processCrash
          return try ChangeStore(at: place, configuration: configuration)
        }
      }
      expectConformance(await conformance.run())
    }
  }

  /// Segments of a few records are sealed and cleaned all the time.
  @Test func aStoreOfTinySegmentsPassesReopenedAfterEachCall() async {
    var options = options()
    options.reopensBetweenCalls = true
    options.refusedRecords = refused
    let conformance = conformance(options) {
      let platform = MemoryPlatform()
      return try Home {
        var configuration = Configuration()
        configuration.segmentRecords = 3
        configuration.segmentBytes = 1_000
        configuration.blockBytes = 100
        configuration.replayBytes = 0
        configuration.cacheBytes = 1_000
        configuration.maximumOpenFiles = 2
        return try ChangeStore(path: "/store", configuration, platform: platform)
      }
    }
    expectConformance(await conformance.run())
  }
}
