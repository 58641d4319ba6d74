import AirDbContract
import Foundation
import Testing

/// What the contract asks of a conforming type is that this compiles: an adapter may be an actor,
/// or belong to the main actor, or to none.
private actor ActorAdapter: AirDbAdapter {
  private var records: [ChangeRecord] = []

  func getChangesSince(sinceHlcTimestamp: String?, limit: Int) -> [ChangeRecord] { records }
  func applyChanges(_ changes: [ChangeRecord]) { records += changes }
  func getLatestHlc() -> String? { records.last?.hlcTimestamp }
}

@MainActor
private final class MainActorAdapter: AirDbAdapter {
  private var records: [ChangeRecord] = []

  func getChangesSince(sinceHlcTimestamp: String?, limit: Int) async throws -> [ChangeRecord] {
    records
  }
  func applyChanges(_ changes: [ChangeRecord]) async throws { records += changes }
  func getLatestHlc() async throws -> String? { records.last?.hlcTimestamp }
}

@Suite("AirDbAdapter")
struct AirDbAdapterTests {
  @Test("adapters of any isolation are used alike")
  func isolation() async throws {
    let adapters: [any AirDbAdapter] = [ActorAdapter(), MainActorAdapter()]
    let record = ChangeRecord(
      id: "id", collection: "collection", type: .insert, payload: Data(),
      hlcTimestamp: "1700000000000-0-a")
    for adapter in adapters {
      try await adapter.applyChanges([record])
      #expect(try await adapter.getLatestHlc() == record.hlcTimestamp)
      #expect(
        try await adapter.getChangesSince(sinceHlcTimestamp: nil, limit: 10) == [record])
    }
  }
}
