import AirDbContract
import Foundation
import GuideAdapters
import Testing

/// The adapters of the guides run over the stand-ins: the contract has all that they need, and
/// means by it what they take it to mean.
@Suite("The adapters of the guides")
struct GuideAdapterTests {
  private func timestamp(_ counter: Int) -> String {
    "1700000000000-000\(counter)-node"
  }

  private func record(
    _ id: String, _ counter: Int, type: MutationType = .insert, author: Data? = nil
  ) -> ChangeRecord {
    ChangeRecord(
      id: id, collection: "notes", type: type, payload: Data([1, UInt8(counter)]),
      hlcTimestamp: timestamp(counter), authorPublicKey: author, signature: author)
  }

  @Test("an adapter without changes has none", arguments: Guide.allCases)
  func empty(guide: Guide) async throws {
    let adapter = try guide.makeAdapter()
    #expect(try await adapter.getLatestHlc() == nil)
    #expect(try await adapter.getChangesSince(sinceHlcTimestamp: nil, limit: 10) == [])
  }

  @Test("changes come back whole, ascending, after the cursor", arguments: Guide.allCases)
  func changes(guide: Guide) async throws {
    let adapter = try guide.makeAdapter()
    let records = [
      record("a", 1), record("b", 2, type: .update, author: Data([7])),
      record("c", 3, type: .delete, author: Data()),
    ]
    try await adapter.applyChanges([records[2], records[0], records[1]])
    #expect(try await adapter.getChangesSince(sinceHlcTimestamp: nil, limit: 10) == records)
    #expect(
      try await adapter.getChangesSince(sinceHlcTimestamp: timestamp(1), limit: 10)
        == Array(records[1...]))
    #expect(
      try await adapter.getChangesSince(sinceHlcTimestamp: timestamp(1), limit: 1)
        == [records[1]])
    #expect(try await adapter.getLatestHlc() == timestamp(3))
  }

  @Test("the last writer wins, whatever the order of arrival", arguments: Guide.allCases)
  func lastWriterWins(guide: Guide) async throws {
    let adapter = try guide.makeAdapter()
    try await adapter.applyChanges([record("a", 2)])
    try await adapter.applyChanges([record("a", 1, type: .update)])
    try await adapter.applyChanges([record("a", 2, type: .delete)])
    #expect(
      try await adapter.getChangesSince(sinceHlcTimestamp: nil, limit: 10) == [record("a", 2)])
    let newer = record("a", 3, type: .delete)
    try await adapter.applyChanges([newer, record("a", 2)])
    #expect(try await adapter.getChangesSince(sinceHlcTimestamp: nil, limit: 10) == [newer])
  }
}
