#if PEER_LMDB || PEER_ROCKSDB
  import AirDbLogStore
  import Foundation

  /// How records lie in a key-value store: a primary table by collection and id, and an index by
  /// timestamp whose entries name the primary's key.
  ///
  /// The timestamps of a store have one width here, so that the order of bytes is theirs.
  struct RecordCoding {
    /// The primary's key: collection, NUL, id.
    private(set) var key: [UInt8] = []
    /// The index's key: timestamp, NUL, the primary's key.
    private(set) var indexKey: [UInt8] = []
    /// Type, timestamp, author, signature, payload; each but the last behind its length, where the
    /// optional ones have 0 for nil and their length + 1 otherwise.
    private(set) var value: [UInt8] = []

    mutating func setKey(collection: String, id: String) {
      key.removeAll(keepingCapacity: true)
      append(collection, to: &key)
      key.append(0)
      append(id, to: &key)
    }

    mutating func encode(_ record: ChangeRecord) {
      setKey(collection: record.collection, id: record.id)
      setIndexKey(record.hlcTimestamp)
      value.removeAll(keepingCapacity: true)
      value.append(UInt8(truncatingIfNeeded: record.type.rawValue))
      value.append(UInt8(record.hlcTimestamp.utf8.count))
      append(record.hlcTimestamp, to: &value)
      append(record.authorPublicKey)
      append(record.signature)
      record.payload.withUnsafeBytes { value.append(contentsOf: $0) }
    }

    private mutating func setIndexKey(_ hlc: String) {
      indexKey.removeAll(keepingCapacity: true)
      append(hlc, to: &indexKey)
      indexKey.append(0)
      indexKey.append(contentsOf: key)
    }

    /// The index's key for another timestamp of the record that was encoded last.
    func indexKey(of hlc: UnsafeRawBufferPointer) -> [UInt8] {
      var result: [UInt8] = []
      result.reserveCapacity(hlc.count + 1 + key.count)
      result.append(contentsOf: hlc)
      result.append(0)
      result.append(contentsOf: key)
      return result
    }

    private mutating func append(_ field: Data?) {
      guard let field else { return value.append(0) }
      value.append(UInt8(field.count + 1))
      field.withUnsafeBytes { value.append(contentsOf: $0) }
    }

    private func append(_ text: String, to bytes: inout [UInt8]) {
      var text = text
      text.withUTF8 { bytes.append(contentsOf: $0) }
    }

    // MARK: Decoding

    static func hlc(of value: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
      UnsafeRawBufferPointer(rebasing: value[2..<(2 + Int(value[1]))])
    }

    /// What lies behind the timestamp in the index's key.
    static func key(ofIndexKey bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
      guard let end = bytes.firstIndex(of: 0) else { return bytes }
      return UnsafeRawBufferPointer(rebasing: bytes[(end + 1)...])
    }

    static func record(
      key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
    ) throws -> ChangeRecord {
      guard let separator = key.firstIndex(of: 0),
        let type = MutationType(rawValue: Int(value[0]))
      else { throw BenchmarkError("A key without a separator.") }
      let hlc = hlc(of: value)
      var offset = 2 + hlc.count
      func optional() -> Data? {
        let count = Int(value[offset]) - 1
        offset += 1
        guard count >= 0 else { return nil }
        defer { offset += count }
        return Data(value[offset..<(offset + count)])
      }
      let author = optional()
      let signature = optional()
      return ChangeRecord(
        id: String(decoding: key[(separator + 1)...], as: UTF8.self),
        collection: String(decoding: key[..<separator], as: UTF8.self),
        type: type, payload: Data(value[offset...]),
        hlcTimestamp: String(decoding: hlc, as: UTF8.self), authorPublicKey: author,
        signature: signature)
    }
  }

  /// Whether a text comes after the other, by bytes.
  func isGreater(_ text: String, than other: UnsafeRawBufferPointer) -> Bool {
    var text = text
    return text.withUTF8 { bytes in
      let order = memcmp(bytes.baseAddress!, other.baseAddress!, min(bytes.count, other.count))
      return order == 0 ? bytes.count > other.count : order > 0
    }
  }
#endif
