public import Foundation

/// A value of SQLite; in GRDB a structure around such an enumeration.
public enum DatabaseValue: Sendable, Hashable {
  case null
  case int64(Int64)
  case string(String)
  case blob(Data)
}

public protocol DatabaseValueConvertible {
  var databaseValue: DatabaseValue { get }
  static func fromDatabaseValue(_ dbValue: DatabaseValue) -> Self?
}

extension Int64: DatabaseValueConvertible {
  public var databaseValue: DatabaseValue { .int64(self) }

  public static func fromDatabaseValue(_ dbValue: DatabaseValue) -> Int64? {
    if case .int64(let value) = dbValue { value } else { nil }
  }
}

extension Int: DatabaseValueConvertible {
  public var databaseValue: DatabaseValue { .int64(Int64(self)) }

  public static func fromDatabaseValue(_ dbValue: DatabaseValue) -> Int? {
    Int64.fromDatabaseValue(dbValue).flatMap { Int(exactly: $0) }
  }
}

extension String: DatabaseValueConvertible {
  public var databaseValue: DatabaseValue { .string(self) }

  public static func fromDatabaseValue(_ dbValue: DatabaseValue) -> String? {
    if case .string(let value) = dbValue { value } else { nil }
  }
}

extension Data: DatabaseValueConvertible {
  public var databaseValue: DatabaseValue { .blob(self) }

  public static func fromDatabaseValue(_ dbValue: DatabaseValue) -> Data? {
    if case .blob(let value) = dbValue { value } else { nil }
  }
}

extension Optional: DatabaseValueConvertible where Wrapped: DatabaseValueConvertible {
  public var databaseValue: DatabaseValue { self?.databaseValue ?? .null }

  public static func fromDatabaseValue(_ dbValue: DatabaseValue) -> Wrapped?? {
    if let value = Wrapped.fromDatabaseValue(dbValue) { return value }
    return dbValue == .null ? .some(nil) : nil
  }
}
