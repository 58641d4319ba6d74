import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// The examples about timestamps; see Examples.swift.
struct TimestampExamples {
  private func change(_ id: String, _ timestamp: String) -> ChangeRecord {
    ChangeRecord(
      id: id, collection: "notes", type: .insert, payload: Data(), hlcTimestamp: timestamp)
  }

  @Test func order() {
    // example: Order
    assert(HlcComparator.compare("1700000000000-9-a", "1700000000000-10-a") < 0)
    assert(HlcComparator.compare("1700000000000-0f-a", "1700000000000:F:a") == 0)
    assert(
      HlcComparator.compare(
        "2023-11-14T22:13:20Z-0000-a", "2023-11-14T22:13:20.000Z-0-a") == 0)
    // end
  }

  @Test func validating() async throws {
    let store = try ChangeStore.inMemory()
    let changes = [
      change("1", "1700000000000-0000-a"), change("2", "yesterday"),
      change("3", "2023-11-14T22:13:20Z-0000-a"), change("4", "1700000000000-0001-a"),
    ]
    await #expect(throws: LogStoreError.self) { try await store.apply(changes) }
    // example: Validate
    let refused = Set(try store.validate(changes).compactMap(\.recordIndex))
    let sound = changes.indices.filter { !refused.contains($0) }.map { changes[$0] }
    try await store.apply(sound)
    // end
    #expect(try store.changes(limit: 10).records.map(\.id) == ["1", "4"])
  }

  @Test func otherTexts() async throws {
    try await withTemporaryDirectory { directory in
      let path = directory + "/store"
      // example: UTF-8 order
      var configuration = Configuration()
      configuration.timestampFormat = .utf8Order
      let store = try ChangeStore(at: path, configuration: configuration)
      // end
      try await store.apply([change("1", "yesterday"), change("2", "today")])
      #expect(try store.latestTimestamp == "yesterday")
      try store.close()
    }
  }

  /// What the article says of a feed and of the history.
  @Test func lateArrival() async throws {
    let store = try ChangeStore.inMemory()
    try await store.apply([change("1", "1700000000000-0000-a")])
    let late = change("2", "1600000000000-0000-b")
    // example: Late arrival
    let cursor = try store.latestTimestamp
    let position = try store.position

    // A change that was made earlier, on a device that was offline.
    try await store.apply([late])

    let byTimestamp = try await store.getChangesSince(sinceHlcTimestamp: cursor, limit: 100)
    let byArrival = try store.commits(after: position, limit: 100)
    assert(byTimestamp.isEmpty)
    assert(byArrival.commits.count == 1)
    // end
    #expect(byTimestamp.isEmpty)
    #expect(byArrival.commits.flatMap(\.changes).map(\.key.id) == ["2"])
  }
}
