import AirDbLogStore
import Foundation
import Testing

/// The examples about consumers. See ``ExampleTests``.
struct ConsumerExamples {
  private static let changes = [
    ChangeRecord(
      id: "1", collection: "notes", type: .insert, payload: Data("Hello".utf8),
      hlcTimestamp: "1700000000000-0000-a")
  ]

  @Test func handle() throws {
    let store = try ChangeStore.inMemory()
    let position = try store.applyAndWait(Self.changes).position!
    // example: Acknowledge
    let search = try store.consumer(named: "search index")
    try search.acknowledge(position)
    // end
    #expect(try search.position() == position)
  }

  @Test func delivery() async throws {
    let store = try ChangeStore.inMemory()
    try store.applyAndWait(Self.changes)
    let (records, indexed) = AsyncStream.makeStream(of: ChangeRecord.self)
    @Sendable func index(_ record: ChangeRecord) { indexed.yield(record) }
    // example: Deliver
    let search = try store.consumer(named: "search")
    try await search.deliver { page in
      for commit in page.commits {
        for change in commit.changes { index(try change.record()) }
      }
    }
    // end
    indexed.finish()
    var found: [ChangeRecord] = []
    for await record in records { found.append(record) }
    #expect(found == Self.changes)
  }

  @Test func retention() throws {
    let store = try ChangeStore.inMemory()
    // example: Pin
    let export = try store.consumer(
      named: "export", retaining: .history(maximumAge: .seconds(30 * 86_400)), from: .end)
    for consumer in try store.retentionReport().consumers where consumer.isBeyondCap {
      print(consumer.name, "is", consumer.lag.commits, "commits behind")
    }
    try export.retire()
    // end
    #expect(try store.consumers().isEmpty)
  }
}
