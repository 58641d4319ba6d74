import AirDbAdapterTesting
import AirDbLogStore
import Testing

/// What a shadow does never reaches the caller; that it is another thing does reach the report.
struct ShadowAdapterTests {
  private func change(_ id: String, _ time: Int) -> ChangeRecord {
    ChangeRecord(
      id: id, collection: "notes", type: .insert, payload: .init(),
      hlcTimestamp: "170000000000\(time)-0000-n")
  }

  /// Runs calls on a shadowed adapter, and gives what was reported.
  private func reports(
    _ primary: any AirDbAdapter & Sendable, _ shadow: any AirDbAdapter & Sendable,
    _ body: (ShadowAdapter) async throws -> Void
  ) async throws -> [String] {
    let (stream, continuation) = AsyncStream<String>.makeStream()
    let adapter = ShadowAdapter(primary: primary, shadow: shadow) { difference in
      switch difference {
      case .changes(let cursor, let limit, let primary, let shadow):
        continuation.yield(
          "changes after \(cursor ?? "nil") \(limit): \(primary.map(\.id)) \(shadow.map(\.id))")
      case .latest(let primary, let shadow):
        continuation.yield("latest: \(primary ?? "nil") \(shadow ?? "nil")")
      case .failure(let call, let error): continuation.yield("\(call): \(error)")
      }
    }
    try await body(adapter)
    continuation.finish()
    var texts: [String] = []
    for await text in stream { texts.append(text) }
    return texts
  }

  @Test func adaptersThatAgreeAreSilentAndBothWritten() async throws {
    // The two order changes of equal timestamps in their own ways.
    let (primary, shadow) = (ReferenceAdapter(), try ChangeStore.inMemory())
    let texts = try await reports(primary, shadow) { adapter in
      try await adapter.applyChanges([change("b", 1), change("a", 1), change("c", 2)])
      let changes = try await adapter.getChangesSince(sinceHlcTimestamp: nil, limit: 10)
      #expect(changes.map(\.id) == ["a", "b", "c"])
      #expect(try await adapter.getLatestHlc() == change("c", 2).hlcTimestamp)
    }
    #expect(texts == [])
    #expect(try shadow.changes(limit: 10).records.map(\.id) == ["b", "a", "c"])
  }

  @Test func differencesAreReportedAndThePrimaryAnswers() async throws {
    let (primary, shadow) = (ReferenceAdapter(), ReferenceAdapter())
    await primary.applyChanges([change("a", 1)])
    let texts = try await reports(primary, shadow) { adapter in
      let changes = try await adapter.getChangesSince(sinceHlcTimestamp: nil, limit: 5)
      #expect(changes == [change("a", 1)])
      #expect(try await adapter.getLatestHlc() == change("a", 1).hlcTimestamp)
    }
    #expect(
      texts == [
        "changes after nil 5: [\"a\"] []", "latest: \(change("a", 1).hlcTimestamp) nil",
      ])
  }

  @Test func aShadowThatFailsIsReported() async throws {
    let (primary, shadow) = (ReferenceAdapter(), try ChangeStore.inMemory())
    try shadow.close()
    let texts = try await reports(primary, shadow) { adapter in
      try await adapter.applyChanges([change("a", 1)])
      #expect(try await adapter.getChangesSince(sinceHlcTimestamp: nil, limit: 5).count == 1)
      #expect(try await adapter.getLatestHlc() != nil)
    }
    let calls = texts.map { $0.prefix { $0 != ":" } }
    #expect(calls == ["applyChanges", "getChangesSince", "getLatestHlc"])
  }

  @Test func whatThePrimaryRefusesTheShadowIsNotGiven() async throws {
    let (primary, shadow) = (try ChangeStore.inMemory(), ReferenceAdapter())
    let texts = try await reports(primary, shadow) { adapter in
      let bad = ChangeRecord(
        id: "a", collection: "notes", type: .insert, payload: .init(), hlcTimestamp: "nonsense")
      await #expect(throws: LogStoreError.self) { try await adapter.applyChanges([bad]) }
      // The next call has its turn all the same.
      let latest = try await adapter.getLatestHlc()
      #expect(latest == nil)
    }
    #expect(texts == [])
    #expect(await shadow.getLatestHlc() == nil)
  }

  /// It is an adapter like others; and callers at the same time see no differences that are none.
  @Test func aShadowedStoreConforms() async throws {
    let (stream, continuation) = AsyncStream<String>.makeStream()
    var options = AdapterConformance.Options()
    options.randomScripts = 5
    options.largestPayload = 1_000
    // There, the primary takes what the shadow refuses.
    let checks = AdapterConformance.Check.all.filter { $0 != .batchAtomicity }
    let report = await AdapterConformance(options: options) {
      ShadowAdapter(primary: ReferenceAdapter(), shadow: try ChangeStore.inMemory()) {
        continuation.yield("\($0)")
      }
    }.run(checks)
    #expect(report.isConforming, "\(report)")
    continuation.finish()
    for await text in stream { Issue.record("\(text)") }
  }
}
