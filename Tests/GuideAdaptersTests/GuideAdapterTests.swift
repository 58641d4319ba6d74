import AirDbContract
import CoreData
import Foundation
import GRDB
import GuideAdapters
import SwiftData
import Testing

/// The adapters of the guides run over the stand-ins: the contract has all that they need, and
/// means by it what they take it to mean.
@Suite("The adapters of the guides")
struct GuideAdapterTests {
  enum Guide: CaseIterable {
    case grdb, coreData, swiftData

    func makeAdapter() throws -> any AirDbAdapter {
      switch self {
      case .grdb:
        let table = ChangeTable()
        return GrdbAirDbAdapter(dbWriter: DatabaseQueue(handler: table.answer))
      case .coreData:
        return CoreDataAirDbAdapter(persistentContainer: NSPersistentContainer())
      case .swiftData:
        return SwiftDataAirDbAdapter(container: try ModelContainer(for: AirDbChangeEntity.self))
      }
    }
  }

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

/// The table of the GRDB guide, which answers the statements of its adapter without an SQL engine.
private final class ChangeTable: @unchecked Sendable {
  private static let columns = [
    "collection", "id", "mutation_type", "payload", "hlc_timestamp", "author_public_key",
    "signature", "created_at",
  ]

  private let lock = NSLock()
  private var rows: [[DatabaseValue]: [String: DatabaseValue]] = [:]

  func answer(
    _ sql: String, _ arguments: [DatabaseValue]
  ) throws -> [[String: DatabaseValue]] {
    lock.withLock {
      if sql.hasPrefix("INSERT INTO _airdb_changes (\(Self.columns.joined(separator: ", ")))") {
        rows[Array(arguments[..<2])] = Dictionary(
          uniqueKeysWithValues: zip(Self.columns, arguments))
        return []
      }
      switch sql {
      case "SELECT hlc_timestamp FROM _airdb_changes WHERE collection = ? AND id = ?":
        return rows[arguments].map { [["hlc_timestamp": $0["hlc_timestamp"]!]] } ?? []
      case "SELECT MAX(hlc_timestamp) FROM _airdb_changes":
        return [["MAX(hlc_timestamp)": ascending.last?["hlc_timestamp"] ?? .null]]
      case "SELECT * FROM _airdb_changes ORDER BY hlc_timestamp ASC LIMIT ?":
        return Array(ascending.prefix(Int.fromDatabaseValue(arguments[0])!))
      case "SELECT * FROM _airdb_changes WHERE hlc_timestamp > ? ORDER BY hlc_timestamp ASC LIMIT ?":
        let since = String.fromDatabaseValue(arguments[0])!
        let later = ascending.drop { timestamp($0) <= since }
        return Array(later.prefix(Int.fromDatabaseValue(arguments[1])!))
      default:
        preconditionFailure("unexpected statement: \(sql)")
      }
    }
  }

  private var ascending: [[String: DatabaseValue]] {
    rows.values.sorted { timestamp($0) < timestamp($1) }
  }

  private func timestamp(_ row: [String: DatabaseValue]) -> String {
    String.fromDatabaseValue(row["hlc_timestamp"]!)!
  }
}
