import AirDbLogStore
import Foundation

/// What commits survive, as each engine can give it. `Benchmarks/README.md` says what that is.
enum Level: String, Codable, CaseIterable {
  /// The death of the process.
  case normal
  /// The loss of power.
  case full
}

/// A store of change records, as AirDB's adapter contract wants one. Each engine does what the
/// contract asks in the way that suits it best.
protocol StorageEngine: AnyObject {
  /// Opens a store in a directory that exists, or creates it.
  init(at path: String, level: Level) throws

  /// Applies a batch in one transaction; last writer wins.
  func apply(_ batch: [ChangeRecord]) throws

  /// The newest versions with timestamps greater than the cursor, ascending, at most `limit`.
  func page(after cursor: String?, limit: Int) throws -> [ChangeRecord]

  /// Everything, page by page.
  func sweep(pageSize: Int, _ body: ([ChangeRecord]) throws -> Void) throws

  func latestTimestamp() throws -> String?

  func record(collection: String, id: String) throws -> ChangeRecord?

  /// Brings the store into the state that it reaches when it is left alone.
  func settle() throws

  func close() throws

  var version: String { get }
}

extension StorageEngine {
  func sweep(pageSize: Int, _ body: ([ChangeRecord]) throws -> Void) throws {
    var cursor: String?
    while true {
      let page = try page(after: cursor, limit: pageSize)
      guard let last = page.last else { return }
      try body(page)
      cursor = last.hlcTimestamp
    }
  }

  func settle() throws {}

  func digest() throws -> Digest {
    var digest = Digest()
    try sweep(pageSize: 500) { page in for record in page { digest.add(record) } }
    return digest
  }
}

/// The engines that this build has.
enum EngineKind: String, Codable, CaseIterable {
  case airdb
  case sqlite
  case lmdb
  case rocksdb
  /// What all others must agree with: a dictionary. Not measured.
  case reference

  var type: (any StorageEngine.Type)? {
    switch self {
    case .airdb: return LogStoreEngine.self
    case .reference: return ReferenceEngine.self
    case .sqlite:
      #if PEER_SQLITE
        return SQLiteEngine.self
      #else
        return nil
      #endif
    case .lmdb:
      #if PEER_LMDB
        return LMDBEngine.self
      #else
        return nil
      #endif
    case .rocksdb:
      #if PEER_ROCKSDB
        return RocksDBEngine.self
      #else
        return nil
      #endif
    }
  }

  var title: String {
    switch self {
    case .airdb: "AirDbLogStore"
    case .sqlite: "SQLite"
    case .lmdb: "LMDB"
    case .rocksdb: "RocksDB"
    case .reference: "reference"
    }
  }

  static let peers: [EngineKind] = [.sqlite, .lmdb, .rocksdb]

  func open(at path: String, level: Level) throws -> any StorageEngine {
    guard let type else { throw BenchmarkError("This build has no \(title).") }
    return try type.init(at: path, level: level)
  }
}
