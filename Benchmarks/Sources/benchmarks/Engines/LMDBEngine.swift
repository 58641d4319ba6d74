#if PEER_LMDB
  import AirDbLogStore
  import CLMDB
  import Foundation

  /// LMDB with a primary table and an index by timestamp.
  final class LMDBEngine: StorageEngine {
    private var environment: OpaquePointer?
    private var primary = MDB_dbi()
    private var index = MDB_dbi()
    private var coding = RecordCoding()

    var version: String {
      "\(MDB_VERSION_MAJOR).\(MDB_VERSION_MINOR).\(MDB_VERSION_PATCH)"
    }

    /// The address space of the map; the file is as large as what is in it.
    private static let mapBytes = 64 << 30

    init(at path: String, level: Level) throws {
      try check(mdb_env_create(&environment))
      try check(mdb_env_set_maxdbs(environment, 2))
      try check(mdb_env_set_mapsize(environment, Self.mapBytes))
      // Without syncs the pages are in the system's hands at commit, which the death of the process
      // does not take back.
      let flags = level == .full ? 0 : UInt32(MDB_NOSYNC)
      try check(mdb_env_open(environment, path, flags, 0o600))
      try transaction(flags: 0) { transaction in
        try check(mdb_dbi_open(transaction, "primary", UInt32(MDB_CREATE), &primary))
        try check(mdb_dbi_open(transaction, "hlc", UInt32(MDB_CREATE), &index))
      }
    }

    func apply(_ batch: [ChangeRecord]) throws {
      try transaction(flags: 0) { transaction in
        for record in batch { try apply(record, transaction) }
      }
    }

    private func apply(_ record: ChangeRecord, _ transaction: OpaquePointer?) throws {
      coding.encode(record)
      try withValue(coding.key) { key in
        var old = MDB_val()
        if try isFound(mdb_get(transaction, primary, &key, &old)) {
          let hlc = RecordCoding.hlc(
            of: UnsafeRawBufferPointer(start: old.mv_data, count: old.mv_size))
          guard isGreater(record.hlcTimestamp, than: hlc) else { return }
          try withValue(coding.indexKey(of: hlc)) { stale in
            try check(mdb_del(transaction, index, &stale, nil))
          }
        }
        try withValue(coding.value) { value in
          try check(mdb_put(transaction, primary, &key, &value, 0))
        }
        try withValue(coding.indexKey) { entry in
          var empty = MDB_val()
          try check(mdb_put(transaction, index, &entry, &empty, 0))
        }
      }
    }

    func page(after cursor: String?, limit: Int) throws -> [ChangeRecord] {
      var records: [ChangeRecord] = []
      try feed(after: cursor) { record in
        records.append(record)
        return records.count < limit
      }
      return records
    }

    func digest() throws -> Digest {
      var digest = Digest()
      try feed(after: nil) { record in
        digest.add(record)
        return true
      }
      return digest
    }

    private func feed(after start: String?, _ body: (ChangeRecord) throws -> Bool) throws {
      try transaction(flags: UInt32(MDB_RDONLY)) { transaction in
        var cursor: OpaquePointer?
        try check(mdb_cursor_open(transaction, index, &cursor))
        defer { mdb_cursor_close(cursor) }
        // The first entry that no key with this timestamp reaches: NUL and what follows is less.
        var bound = Array((start ?? "").utf8)
        if start != nil { bound.append(1) }
        var entry = MDB_val()
        var nothing = MDB_val()
        var isThere = try withValue(bound) { key in
          entry = key
          return try isFound(
            mdb_cursor_get(cursor, &entry, &nothing, start == nil ? MDB_FIRST : MDB_SET_RANGE))
        }
        while isThere {
          let key = RecordCoding.key(
            ofIndexKey: UnsafeRawBufferPointer(start: entry.mv_data, count: entry.mv_size))
          var primaryKey = MDB_val(
            mv_size: key.count, mv_data: UnsafeMutableRawPointer(mutating: key.baseAddress))
          var value = MDB_val()
          try check(mdb_get(transaction, primary, &primaryKey, &value))
          let record = try RecordCoding.record(
            key: key, value: UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
          guard try body(record) else { return }
          isThere = try isFound(mdb_cursor_get(cursor, &entry, &nothing, MDB_NEXT))
        }
      }
    }

    func latestTimestamp() throws -> String? {
      var text: String?
      try transaction(flags: UInt32(MDB_RDONLY)) { transaction in
        var cursor: OpaquePointer?
        try check(mdb_cursor_open(transaction, index, &cursor))
        defer { mdb_cursor_close(cursor) }
        var entry = MDB_val()
        var nothing = MDB_val()
        guard try isFound(mdb_cursor_get(cursor, &entry, &nothing, MDB_LAST)) else { return }
        let bytes = UnsafeRawBufferPointer(start: entry.mv_data, count: entry.mv_size)
        text = String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      return text
    }

    func record(collection: String, id: String) throws -> ChangeRecord? {
      coding.setKey(collection: collection, id: id)
      var record: ChangeRecord?
      try transaction(flags: UInt32(MDB_RDONLY)) { transaction in
        try withValue(coding.key) { key in
          var value = MDB_val()
          guard try isFound(mdb_get(transaction, primary, &key, &value)) else { return }
          record = try RecordCoding.record(
            key: UnsafeRawBufferPointer(start: key.mv_data, count: key.mv_size),
            value: UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
        }
      }
      return record
    }

    func close() throws {
      try check(mdb_env_sync(environment, 1))
      mdb_env_close(environment)
    }

    // MARK: The C API

    private func transaction(
      flags: UInt32, _ body: (OpaquePointer?) throws -> Void
    ) throws {
      var transaction: OpaquePointer?
      try check(mdb_txn_begin(environment, nil, flags, &transaction))
      do {
        try body(transaction)
      } catch {
        mdb_txn_abort(transaction)
        throw error
      }
      // Of a transaction that only reads this is the end.
      try check(mdb_txn_commit(transaction))
    }

    private func check(_ code: Int32) throws {
      guard code == MDB_SUCCESS else {
        throw BenchmarkError("LMDB: \(String(cString: mdb_strerror(code)))")
      }
    }

    private func isFound(_ code: Int32) throws -> Bool {
      if code == MDB_NOTFOUND { return false }
      try check(code)
      return true
    }

    private func withValue<Result>(
      _ bytes: [UInt8], _ body: (inout MDB_val) throws -> Result
    ) throws -> Result {
      try bytes.withUnsafeBytes { buffer in
        var value = MDB_val(
          mv_size: buffer.count, mv_data: UnsafeMutableRawPointer(mutating: buffer.baseAddress))
        return try body(&value)
      }
    }
  }
#endif
