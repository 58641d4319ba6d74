import AirDbContract
import CoreData
import Foundation
import GRDB
import GuideAdapters
import SwiftData

/// A guide, and how its adapter is made over the stand-ins.
enum Guide: CaseIterable {
  case grdb, coreData, swiftData

  func makeAdapter() throws -> any AirDbAdapter {
    switch self {
    case .grdb: Self.makeGrdb()
    case .coreData: Self.makeCoreData()
    case .swiftData: try Self.makeSwiftData()
    }
  }

  static func makeGrdb() -> GrdbAirDbAdapter {
    GrdbAirDbAdapter(dbWriter: makeDatabase())
  }

  static func makeDatabase() -> DatabaseQueue {
    let table = ChangeTable()
    return DatabaseQueue(handler: table.answer)
  }

  static func makeCoreData() -> CoreDataAirDbAdapter {
    CoreDataAirDbAdapter(persistentContainer: NSPersistentContainer())
  }

  static func makeSwiftData() throws -> SwiftDataAirDbAdapter {
    SwiftDataAirDbAdapter(container: try ModelContainer(for: AirDbChangeEntity.self))
  }
}

/// The table of the GRDB guide, which answers the statements of its adapter without an SQL engine.
///
/// Texts are compared by their bytes, and a negative limit is none, as in SQLite.
private final class ChangeTable: @unchecked Sendable {
  private static let columns = [
    "collection", "id", "mutation_type", "payload", "hlc_timestamp", "author_public_key",
    "signature", "created_at",
  ]

  private let lock = NSLock()
  private var rows: [[[UInt8]]: [String: DatabaseValue]] = [:]

  func answer(
    _ sql: String, _ arguments: [DatabaseValue]
  ) throws -> [[String: DatabaseValue]] {
    lock.withLock {
      if sql.hasPrefix("INSERT INTO _airdb_changes (\(Self.columns.joined(separator: ", ")))") {
        rows[arguments[..<2].map(bytes)] = Dictionary(
          uniqueKeysWithValues: zip(Self.columns, arguments))
        return []
      }
      switch sql {
      case "SELECT hlc_timestamp FROM _airdb_changes WHERE collection = ? AND id = ?":
        return rows[arguments.map(bytes)].map { [["hlc_timestamp": $0["hlc_timestamp"]!]] } ?? []
      case "SELECT MAX(hlc_timestamp) FROM _airdb_changes":
        return [["MAX(hlc_timestamp)": ascending.last?["hlc_timestamp"] ?? .null]]
      case "SELECT * FROM _airdb_changes ORDER BY hlc_timestamp ASC LIMIT ?":
        return first(arguments[0], of: ascending)
      case "SELECT * FROM _airdb_changes WHERE hlc_timestamp > ? ORDER BY hlc_timestamp ASC LIMIT ?":
        let since = bytes(arguments[0])
        let later = ascending.filter { since.lexicographicallyPrecedes(timestamp($0)) }
        return first(arguments[1], of: later)
      default:
        preconditionFailure("unexpected statement: \(sql)")
      }
    }
  }

  private func first(
    _ limit: DatabaseValue, of rows: [[String: DatabaseValue]]
  ) -> [[String: DatabaseValue]] {
    let limit = Int.fromDatabaseValue(limit)!
    return limit < 0 ? rows : Array(rows.prefix(limit))
  }

  private var ascending: [[String: DatabaseValue]] {
    rows.values.sorted { timestamp($0).lexicographicallyPrecedes(timestamp($1)) }
  }

  private func timestamp(_ row: [String: DatabaseValue]) -> [UInt8] {
    bytes(row["hlc_timestamp"]!)
  }

  private func bytes(_ value: DatabaseValue) -> [UInt8] {
    Array(String.fromDatabaseValue(value)!.utf8)
  }
}
