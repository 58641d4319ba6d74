#if PEER_ROCKSDB
  import AirDbLogStore
  import CRocksDB
  import Foundation

  /// RocksDB with a column family for the records and one for the index by timestamp.
  final class RocksDBEngine: StorageEngine {
    private let database: OpaquePointer
    private let primary: OpaquePointer?
    private let index: OpaquePointer?
    private let writing: OpaquePointer
    private let reading: OpaquePointer
    private var coding = RecordCoding()

    static let cacheBytes = 64 << 20

    /// The library's C API does not tell; its log does.
    private(set) var version = "unknown"

    init(at path: String, level: Level) throws {
      let options: OpaquePointer = rocksdb_options_create()
      rocksdb_options_set_create_if_missing(options, 1)
      rocksdb_options_set_create_missing_column_families(options, 1)
      rocksdb_options_increase_parallelism(options, 2)
      rocksdb_options_set_compression(options, Int32(rocksdb_lz4_compression))
      // 64 MiB of memtables over both families, beside the cache of the same size.
      rocksdb_options_set_db_write_buffer_size(options, 64 << 20)
      rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1)
      let table = rocksdb_block_based_options_create()
      rocksdb_block_based_options_set_block_cache(
        table, rocksdb_cache_create_lru(Self.cacheBytes))
      rocksdb_block_based_options_set_filter_policy(
        table, rocksdb_filterpolicy_create_bloom_full(10))
      rocksdb_block_based_options_set_block_size(table, 16 << 10)
      rocksdb_block_based_options_set_format_version(table, 5)
      rocksdb_options_set_block_based_table_factory(options, table)
      writing = rocksdb_writeoptions_create()
      rocksdb_writeoptions_set_sync(writing, level == .full ? 1 : 0)
      reading = rocksdb_readoptions_create()

      let names: [UnsafeMutablePointer<CChar>?] = [strdup("default"), strdup("hlc")]
      defer { for name in names { free(name) } }
      let pointers = names.map { UnsafePointer($0) }
      var families: [OpaquePointer?] = [nil, nil]
      database = try Self.check { error in
        rocksdb_open_column_families(
          options, path, 2, pointers, [options, options], &families, &error)
      }
      (primary, index) = (families[0], families[1])
      if let log = try? String(contentsOfFile: path + "/LOG", encoding: .utf8),
        let match = log.firstMatch(of: /RocksDB version: ([0-9.]+)/)
      {
        version = String(match.1)
      }
    }

    func apply(_ batch: [ChangeRecord]) throws {
      let writes = rocksdb_writebatch_create()
      defer { rocksdb_writebatch_destroy(writes) }
      // Records of this batch that the database does not show yet, by the hash of their key.
      var pending: [UInt64: Int] = [:]
      if batch.count > 1 { pending.reserveCapacity(batch.count) }
      for (number, record) in batch.enumerated() {
        coding.encode(record)
        let hash = Self.hash(coding.key)
        if batch.count > 1, let earlier = pending[hash] {
          var hlc = batch[earlier].hlcTimestamp
          let isNewer = hlc.withUTF8 { bytes in
            let old = UnsafeRawBufferPointer(bytes)
            guard isGreater(record.hlcTimestamp, than: old) else { return false }
            delete(coding.indexKey(of: old), writes)
            return true
          }
          guard isNewer else { continue }
        } else {
          guard try replacesStored(record, writes) else { continue }
        }
        put(coding.key, coding.value, primary, writes)
        put(coding.indexKey, [], index, writes)
        if batch.count > 1 { pending[hash] = number }
      }
      guard rocksdb_writebatch_count(writes) > 0 else { return }
      _ = try Self.check { error in rocksdb_write(database, writing, writes, &error) }
    }

    /// Whether a record wins over the stored one, whose entry in the index then goes.
    private func replacesStored(_ record: ChangeRecord, _ writes: OpaquePointer?) throws -> Bool {
      guard let found = try pinned(coding.key) else { return true }
      defer { rocksdb_pinnableslice_destroy(found) }
      let hlc = RecordCoding.hlc(of: Self.bytes(found))
      guard isGreater(record.hlcTimestamp, than: hlc) else { return false }
      delete(coding.indexKey(of: hlc), writes)
      return true
    }

    func page(after cursor: String?, limit: Int) throws -> [ChangeRecord] {
      let iterator = rocksdb_create_iterator_cf(database, reading, index)
      defer { rocksdb_iter_destroy(iterator) }
      seek(iterator, after: cursor)
      return try records(iterator, limit: limit)
    }

    func digest() throws -> Digest {
      let iterator = rocksdb_create_iterator_cf(database, reading, index)
      defer { rocksdb_iter_destroy(iterator) }
      seek(iterator, after: nil)
      var digest = Digest()
      while true {
        let page = try records(iterator, limit: 500)
        if page.isEmpty { return digest }
        for record in page { digest.add(record) }
      }
    }

    private func seek(_ iterator: OpaquePointer?, after cursor: String?) {
      guard let cursor else { return rocksdb_iter_seek_to_first(iterator) }
      // Behind all entries with this timestamp: after it they have NUL.
      let bound = Array(cursor.utf8) + [1]
      Self.withCharacters(bound) { rocksdb_iter_seek(iterator, $0, bound.count) }
    }

    /// The next records of the index, looked up together.
    private func records(_ iterator: OpaquePointer?, limit: Int) throws -> [ChangeRecord] {
      var keys: [[UInt8]] = []
      keys.reserveCapacity(limit)
      while keys.count < limit, rocksdb_iter_valid(iterator) != 0 {
        var length = 0
        let entry = rocksdb_iter_key(iterator, &length)
        keys.append(
          Array(
            RecordCoding.key(ofIndexKey: UnsafeRawBufferPointer(start: entry, count: length))))
        rocksdb_iter_next(iterator)
      }
      guard !keys.isEmpty else { return [] }
      var values = [OpaquePointer?](repeating: nil, count: keys.count)
      var errors = [UnsafeMutablePointer<CChar>?](repeating: nil, count: keys.count)
      let lengths = keys.map(\.count)
      let all = keys.flatMap { $0 }
      all.withUnsafeBytes { bytes in
        var offset = 0
        let pointers = lengths.map { length in
          defer { offset += length }
          return bytes.baseAddress?.advanced(by: offset).assumingMemoryBound(to: CChar.self)
        }
        rocksdb_batched_multi_get_cf(
          database, reading, primary, keys.count, pointers, lengths, &values, &errors, false)
      }
      defer { for case let value? in values { rocksdb_pinnableslice_destroy(value) } }
      return try zip(keys, values).map { key, value in
        guard let value else { throw BenchmarkError("RocksDB: an entry without its record.") }
        return try key.withUnsafeBytes {
          try RecordCoding.record(key: $0, value: Self.bytes(value))
        }
      }
    }

    func latestTimestamp() throws -> String? {
      let iterator = rocksdb_create_iterator_cf(database, reading, index)
      defer { rocksdb_iter_destroy(iterator) }
      rocksdb_iter_seek_to_last(iterator)
      guard rocksdb_iter_valid(iterator) != 0 else { return nil }
      var length = 0
      let entry = UnsafeRawBufferPointer(start: rocksdb_iter_key(iterator, &length), count: length)
      return String(decoding: entry.prefix { $0 != 0 }, as: UTF8.self)
    }

    func record(collection: String, id: String) throws -> ChangeRecord? {
      coding.setKey(collection: collection, id: id)
      guard let found = try pinned(coding.key) else { return nil }
      defer { rocksdb_pinnableslice_destroy(found) }
      return try coding.key.withUnsafeBytes {
        try RecordCoding.record(key: $0, value: Self.bytes(found))
      }
    }

    func settle() throws {
      let flush = rocksdb_flushoptions_create()
      defer { rocksdb_flushoptions_destroy(flush) }
      for family in [primary, index] {
        _ = try Self.check { rocksdb_flush_cf(database, flush, family, &$0) }
        rocksdb_compact_range_cf(database, family, nil, 0, nil, 0)
      }
    }

    func close() throws {
      rocksdb_column_family_handle_destroy(primary)
      rocksdb_column_family_handle_destroy(index)
      rocksdb_close(database)
    }

    // MARK: The C API

    private func pinned(_ key: [UInt8]) throws -> OpaquePointer? {
      try Self.check { error in
        Self.withCharacters(key) {
          rocksdb_get_pinned_cf(database, reading, primary, $0, key.count, &error)
        }
      }
    }

    private func put(
      _ key: [UInt8], _ value: [UInt8], _ family: OpaquePointer?, _ writes: OpaquePointer?
    ) {
      Self.withCharacters(key) { keyBytes in
        Self.withCharacters(value) { valueBytes in
          rocksdb_writebatch_put_cf(
            writes, family, keyBytes, key.count, valueBytes, value.count)
        }
      }
    }

    private func delete(_ entry: [UInt8], _ writes: OpaquePointer?) {
      Self.withCharacters(entry) { rocksdb_writebatch_delete_cf(writes, index, $0, entry.count) }
    }

    private static func bytes(_ slice: OpaquePointer) -> UnsafeRawBufferPointer {
      var length = 0
      let start = rocksdb_pinnableslice_value(slice, &length)
      return UnsafeRawBufferPointer(start: start, count: length)
    }

    private static func withCharacters<Result>(
      _ bytes: [UInt8], _ body: (UnsafePointer<CChar>?) throws -> Result
    ) rethrows -> Result {
      try bytes.withUnsafeBytes { try body($0.baseAddress?.assumingMemoryBound(to: CChar.self)) }
    }

    private static func hash(_ key: [UInt8]) -> UInt64 {
      var hash = Fnv()
      key.withUnsafeBytes { hash.add($0) }
      return hash.finish()
    }

    private static func check<Result>(
      _ body: (inout UnsafeMutablePointer<CChar>?) throws -> Result
    ) throws -> Result {
      var error: UnsafeMutablePointer<CChar>?
      let result = try body(&error)
      if let error {
        defer { free(error) }
        throw BenchmarkError("RocksDB: \(String(cString: error))")
      }
      return result
    }
  }
#endif
