#if PEER_SQLITE
  import AirDbLogStore
  import CSQLite
  import Foundation

  /// SQLite with the schema of AirDB's guides, in WAL mode, through prepared statements.
  final class SQLiteEngine: StorageEngine {
    private var database: OpaquePointer?
    private var upsert: OpaquePointer?
    private var firstPage: OpaquePointer?
    private var nextPage: OpaquePointer?
    private var feed: OpaquePointer?
    private var latest: OpaquePointer?
    private var byKey: OpaquePointer?
    private var begin: OpaquePointer?
    private var commit: OpaquePointer?

    var version: String { String(cString: sqlite3_libversion()) }

    private static let columns =
      "collection, id, mutation_type, payload, hlc_timestamp, author_public_key, signature"

    init(at path: String, level: Level) throws {
      try check(
        sqlite3_open_v2(
          path + "/changes.sqlite", &database,
          SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nil))
      try run("PRAGMA journal_mode = WAL")
      // FULL syncs the WAL in every commit; NORMAL only at checkpoints.
      try run("PRAGMA synchronous = \(level == .full ? "FULL" : "NORMAL")")
      try run("PRAGMA cache_size = -65536")
      try run("PRAGMA temp_store = MEMORY")
      try run(
        """
        CREATE TABLE IF NOT EXISTS _airdb_changes (
          collection TEXT NOT NULL, id TEXT NOT NULL, mutation_type INTEGER NOT NULL, payload BLOB,
          hlc_timestamp TEXT NOT NULL, author_public_key BLOB, signature BLOB,
          created_at INTEGER NOT NULL, PRIMARY KEY (collection, id))
        """)
      try run(
        "CREATE INDEX IF NOT EXISTS idx_airdb_changes_hlc ON _airdb_changes (hlc_timestamp)")
      // Last writer wins within the statement: one search of the primary key instead of two.
      upsert = try prepare(
        """
        INSERT INTO _airdb_changes (\(Self.columns), created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (collection, id) DO UPDATE SET
          mutation_type = excluded.mutation_type, payload = excluded.payload,
          hlc_timestamp = excluded.hlc_timestamp,
          author_public_key = excluded.author_public_key, signature = excluded.signature,
          created_at = excluded.created_at
        WHERE excluded.hlc_timestamp > hlc_timestamp
        """)
      firstPage = try prepare(
        "SELECT \(Self.columns) FROM _airdb_changes ORDER BY hlc_timestamp LIMIT ?")
      nextPage = try prepare(
        """
        SELECT \(Self.columns) FROM _airdb_changes WHERE hlc_timestamp > ?
        ORDER BY hlc_timestamp LIMIT ?
        """)
      feed = try prepare("SELECT \(Self.columns) FROM _airdb_changes ORDER BY hlc_timestamp")
      latest = try prepare("SELECT MAX(hlc_timestamp) FROM _airdb_changes")
      byKey = try prepare(
        "SELECT \(Self.columns) FROM _airdb_changes WHERE collection = ? AND id = ?")
      begin = try prepare("BEGIN IMMEDIATE")
      commit = try prepare("COMMIT")
    }

    func apply(_ batch: [ChangeRecord]) throws {
      let now = Int64(Date().timeIntervalSince1970 * 1_000)
      try step(begin)
      for record in batch {
        try withBound(record.collection, upsert, 1) {
          try withBound(record.id, upsert, 2) {
            try withBound(record.hlcTimestamp, upsert, 5) {
              try withBound(record.payload, upsert, 4) {
                try withBound(record.authorPublicKey, upsert, 6) {
                  try withBound(record.signature, upsert, 7) {
                    sqlite3_bind_int64(upsert, 3, Int64(record.type.rawValue))
                    sqlite3_bind_int64(upsert, 8, now)
                    try step(upsert)
                  }
                }
              }
            }
          }
        }
      }
      try step(commit)
    }

    func page(after cursor: String?, limit: Int) throws -> [ChangeRecord] {
      var records: [ChangeRecord] = []
      guard let cursor else {
        sqlite3_bind_int64(firstPage, 1, Int64(limit))
        try rows(firstPage) { records.append($0) }
        return records
      }
      try withBound(cursor, nextPage, 1) {
        sqlite3_bind_int64(nextPage, 2, Int64(limit))
        try rows(nextPage) { records.append($0) }
      }
      return records
    }

    /// In one statement, so that no timestamp that occurs twice is lost between pages.
    func digest() throws -> Digest {
      var digest = Digest()
      try rows(feed) { digest.add($0) }
      return digest
    }

    func latestTimestamp() throws -> String? {
      defer { sqlite3_reset(latest) }
      guard try nextRow(latest), sqlite3_column_type(latest, 0) != SQLITE_NULL else { return nil }
      return Self.text(latest, 0)
    }

    func record(collection: String, id: String) throws -> ChangeRecord? {
      var record: ChangeRecord?
      try withBound(collection, byKey, 1) {
        try withBound(id, byKey, 2) { try rows(byKey) { record = $0 } }
      }
      return record
    }

    func settle() throws { try run("PRAGMA wal_checkpoint(TRUNCATE)") }

    func close() throws {
      for statement in [upsert, firstPage, nextPage, feed, latest, byKey, begin, commit] {
        sqlite3_finalize(statement)
      }
      try check(sqlite3_close(database))
    }

    // MARK: The C API

    private func check(_ code: Int32) throws {
      guard code == SQLITE_OK else {
        throw BenchmarkError("SQLite: \(String(cString: sqlite3_errmsg(database)))")
      }
    }

    private func run(_ sql: String) throws { try check(sqlite3_exec(database, sql, nil, nil, nil)) }

    private func prepare(_ sql: String) throws -> OpaquePointer? {
      var statement: OpaquePointer?
      try check(
        sqlite3_prepare_v3(
          database, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil))
      return statement
    }

    private func step(_ statement: OpaquePointer?) throws {
      let code = sqlite3_step(statement)
      sqlite3_reset(statement)
      guard code == SQLITE_DONE else {
        throw BenchmarkError("SQLite: \(String(cString: sqlite3_errmsg(database)))")
      }
    }

    private func nextRow(_ statement: OpaquePointer?) throws -> Bool {
      switch sqlite3_step(statement) {
      case SQLITE_ROW: return true
      case SQLITE_DONE: return false
      default: throw BenchmarkError("SQLite: \(String(cString: sqlite3_errmsg(database)))")
      }
    }

    private func rows(
      _ statement: OpaquePointer?, _ body: (ChangeRecord) throws -> Void
    ) throws {
      defer { sqlite3_reset(statement) }
      while try nextRow(statement) {
        guard let type = MutationType(rawValue: Int(sqlite3_column_int64(statement, 2))) else {
          continue
        }
        try body(
          ChangeRecord(
            id: Self.text(statement, 1), collection: Self.text(statement, 0), type: type,
            payload: Self.data(statement, 3) ?? Data(), hlcTimestamp: Self.text(statement, 4),
            authorPublicKey: Self.data(statement, 5), signature: Self.data(statement, 6)))
      }
    }

    private static func text(_ statement: OpaquePointer?, _ column: Int32) -> String {
      guard let bytes = sqlite3_column_text(statement, column) else { return "" }
      let count = Int(sqlite3_column_bytes(statement, column))
      return String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
    }

    private static func data(_ statement: OpaquePointer?, _ column: Int32) -> Data? {
      guard sqlite3_column_type(statement, column) != SQLITE_NULL else { return nil }
      guard let bytes = sqlite3_column_blob(statement, column) else { return Data() }
      return Data(bytes: bytes, count: Int(sqlite3_column_bytes(statement, column)))
    }

    /// Binds without a copy, for as long as `body` runs.
    private func withBound(
      _ text: String, _ statement: OpaquePointer?, _ index: Int32, _ body: () throws -> Void
    ) throws {
      var text = text
      try text.withUTF8 { bytes in
        try bytes.withMemoryRebound(to: CChar.self) { characters in
          try check(
            sqlite3_bind_text(
              statement, index, characters.baseAddress, Int32(characters.count), nil))
        }
        try body()
      }
    }

    private func withBound(
      _ data: Data?, _ statement: OpaquePointer?, _ index: Int32, _ body: () throws -> Void
    ) throws {
      guard let data else {
        try check(sqlite3_bind_null(statement, index))
        return try body()
      }
      guard !data.isEmpty else {
        try check(sqlite3_bind_zeroblob(statement, index, 0))
        return try body()
      }
      try data.withUnsafeBytes { bytes in
        try check(
          sqlite3_bind_blob(statement, index, bytes.baseAddress, Int32(bytes.count), nil))
        try body()
      }
    }
  }
#endif
