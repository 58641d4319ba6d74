package import HlcText

/// A batch whose records have been checked, hashed and parsed: everything that needs no lock.
package struct PreparedBatch: Sendable {
  package let records: [ChangeRecord]
  package let items: ContiguousArray<Item>
  /// The kind of the physical clocks; nil if the batch is empty or the format has none.
  package let physicalKind: HlcPhysicalKind?
  package let label: [UInt8]

  package struct Item: Sendable {
    package var hash: KeyHash
    package var parts: HlcParts
    package var contentChecksum: UInt32
  }

  package init(
    _ records: [ChangeRecord], label: [UInt8], format: HlcFormat, secret: KeyHashSecret
  ) throws(LogStoreError) {
    var items = ContiguousArray<Item>()
    items.reserveCapacity(records.count)
    var kind: HlcPhysicalKind?
    var total = 0
    for index in records.indices {
      let item: Item
      do throws(Refusal) {
        item = try Self.withBytes(of: index, in: records) { (bytes) throws(Refusal) in
          total += bytes.size
          return try Self.check(bytes, format: format, secret: secret)
        }
      } catch {
        throw error.error(at: index)
      }
      if let known = kind, known != item.parts.kind {
        throw Refusal.mixed(records[index].hlcTimestamp).error(at: index)
      }
      kind = item.parts.kind
      items.append(item)
    }
    guard total <= Limits.batch, UInt32(exactly: records.count) != nil else {
      throw LogStoreError(
        .limitExceeded, "The batch has \(total) bytes; at most 1 GiB is allowed.")
    }
    guard label.count <= Limits.label else {
      throw LogStoreError(
        .limitExceeded, "The author label has \(label.count) bytes; at most 1,024 are allowed.")
    }
    self.records = records
    self.items = items
    self.label = label
    physicalKind = kind
  }

  /// Calls `body` with the fields of a record as bytes.
  @inline(__always)
  package func withBytes<Result, Failure: Error>(
    of index: Int, _ body: (RecordBytes) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try Self.withBytes(of: index, in: records, body)
  }

  /// Through a pointer: the subscript of an array would copy the record, with a reference for each
  /// of its fields.
  @inline(__always)
  private static func withBytes<Result, Failure: Error>(
    of index: Int, in records: [ChangeRecord], _ body: (RecordBytes) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try records.withUnsafeBufferPointer { (records) throws(Failure) in
      try AirDbLogStore.withBytes(of: records[index], body)
    }
  }

  /// Why a record is not acceptable.
  package enum Refusal: Error {
    case timestamp(String)
    case mixed(String)
    case tooLong(field: String, count: Int, limit: Int)

    package func error(at index: Int?) -> LogStoreError {
      let place = index.map { "Record \($0) of the batch" } ?? "The record"
      switch self {
      case .timestamp(let text):
        return LogStoreError(
          .invalidTimestamp, "\(place) has a timestamp that does not parse: \"\(text)\".",
          recordIndex: index)
      case .mixed(let text):
        return LogStoreError(
          .mixedTimestamps,
          "\(place) has a timestamp of another kind of clock than the others: \"\(text)\".",
          recordIndex: index)
      case .tooLong(let field, let count, let limit):
        return LogStoreError(
          .limitExceeded,
          "\(place): the \(field) has \(count) bytes; at most \(limit) are allowed.",
          recordIndex: index)
      }
    }
  }

  private static func check(
    _ record: RecordBytes, format: HlcFormat, secret: KeyHashSecret
  ) throws(Refusal) -> Item {
    let parts = try check(record, format: format)
    return Item(
      hash: secret.hash(collection: record.collection, id: record.id), parts: parts,
      contentChecksum: record.contentChecksum)
  }

  /// Checks the limits and the timestamp of one record.
  package static func check(
    _ record: RecordBytes, format: HlcFormat
  ) throws(Refusal) -> HlcParts {
    func limit(_ field: String, _ bytes: UnsafeRawBufferPointer?, _ limit: Int) throws(Refusal) {
      if let bytes, bytes.count > limit {
        throw .tooLong(field: field, count: bytes.count, limit: limit)
      }
    }
    try limit("id", record.id, Limits.id)
    try limit("collection", record.collection, Limits.collection)
    try limit("timestamp", record.hlc, Limits.hlc)
    try limit("payload", record.payload, Limits.payload)
    try limit("author key", record.author, Limits.key)
    try limit("signature", record.signature, Limits.key)
    guard let parts = parseHlc(record.hlc.assumingMemoryBound(to: UInt8.self), format: format)
    else { throw .timestamp(String(decoding: record.hlc, as: UTF8.self)) }
    return parts
  }
}
