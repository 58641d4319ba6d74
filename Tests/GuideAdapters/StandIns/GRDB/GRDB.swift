import Foundation

/// What AirDB's GRDB guide uses of GRDB, with GRDB's public signatures.
///
/// There is no SQL engine behind it. A ``DatabaseQueue`` passes each statement on to the closure
/// that it was created with, and so tells a test what the adapter asks of a database.

// MARK: - Connections

public protocol DatabaseReader: AnyObject, Sendable {
  func read<T: Sendable>(_ value: @escaping @Sendable (Database) throws -> T) async throws -> T
}

public protocol DatabaseWriter: DatabaseReader {
  func write<T: Sendable>(_ updates: @escaping @Sendable (Database) throws -> T) async throws -> T
}

/// Answers a statement, in place of SQLite.
public typealias StatementHandler =
  @Sendable (_ sql: String, _ arguments: [DatabaseValue]) throws -> [[String: DatabaseValue]]

/// One access at a time, as in GRDB.
public final class DatabaseQueue: DatabaseWriter {
  private let handler: StatementHandler
  private let lock = NSLock()

  public init(handler: @escaping StatementHandler) {
    self.handler = handler
  }

  public func read<T: Sendable>(
    _ value: @escaping @Sendable (Database) throws -> T
  ) async throws -> T {
    try lock.withLock { try value(Database(handler: handler)) }
  }

  public func write<T: Sendable>(
    _ updates: @escaping @Sendable (Database) throws -> T
  ) async throws -> T {
    try lock.withLock { try updates(Database(handler: handler)) }
  }
}

public final class Database {
  private let handler: StatementHandler

  init(handler: @escaping StatementHandler) {
    self.handler = handler
  }

  public func execute(
    sql: String, arguments: StatementArguments = StatementArguments()
  ) throws {
    _ = try rows(sql, arguments)
  }

  func rows(_ sql: String, _ arguments: StatementArguments) throws -> [[String: DatabaseValue]] {
    try handler(sql, arguments.values)
  }
}

public struct StatementArguments: ExpressibleByArrayLiteral, Sendable {
  let values: [DatabaseValue]

  public init() {
    values = []
  }

  public init(arrayLiteral elements: (any DatabaseValueConvertible)?...) {
    values = elements.map { $0?.databaseValue ?? .null }
  }
}

// MARK: - Rows

public final class Row {
  private let columns: [String: DatabaseValue]

  init(columns: [String: DatabaseValue]) {
    self.columns = columns
  }

  public static func fetchAll(
    _ db: Database, sql: String, arguments: StatementArguments = StatementArguments()
  ) throws -> [Row] {
    try db.rows(sql, arguments).map(Row.init(columns:))
  }

  /// Traps when the value is of another type, as in GRDB.
  public subscript<Value: DatabaseValueConvertible>(_ columnName: String) -> Value {
    Value.fromDatabaseValue(columns[columnName] ?? .null)!
  }
}

extension DatabaseValueConvertible {
  public static func fetchOne(
    _ db: Database, sql: String, arguments: StatementArguments = StatementArguments()
  ) throws -> Self? {
    guard let row = try db.rows(sql, arguments).first, let value = row.values.first else {
      return nil
    }
    return fromDatabaseValue(value)
  }
}
