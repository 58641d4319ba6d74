package import HlcText

/// A batch whose records have been checked, hashed and parsed: everything that needs no lock.
package struct PreparedBatch: Sendable {
  package let records: [ChangeRecord]
  package let items: ContiguousArray<Item>
  /// The kind of the physical clocks; nil if the batch is empty or the format has none.
  package let physicalKind: HlcPhysicalKind?
  package let label: [UInt8]
  private let flat: FlatRecords

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
    let flat = FlatRecords(expecting: records.count)
    var kind: HlcPhysicalKind?
    var total = 0
    try records.withUnsafeBufferPointer { (pointers) throws(LogStoreError) in
      for index in records.indices {
        do throws(Refusal) {
          let record = pointers.baseAddress! + index
          try Self.checkSizes(record)
          total += flat.append(record)
          let item = try flat.withBytes(of: index, in: records) { (bytes) throws(Refusal) in
            Item(
              hash: secret.hash(collection: bytes.collection, id: bytes.id),
              parts: try Self.parse(bytes.hlc, format), contentChecksum: bytes.contentChecksum)
          }
          if let kind, kind != item.parts.kind { throw .mixed(record.pointee.hlcTimestamp) }
          kind = item.parts.kind
          items.append(item)
        } catch {
          throw error.error(at: index)
        }
      }
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
    self.flat = flat
    physicalKind = kind
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

  /// Checks the limits and the timestamp of one record.
  package static func check(
    _ record: ChangeRecord, format: HlcFormat
  ) throws(Refusal) -> HlcParts {
    try withUnsafePointer(to: record) { (record) throws(Refusal) in try checkSizes(record) }
    return try withUTF8(record.hlcTimestamp) { (hlc) throws(Refusal) in try parse(hlc, format) }
  }

  @inline(__always)
  private static func checkSizes(_ record: UnsafePointer<ChangeRecord>) throws(Refusal) {
    try limit("id", record.pointee.id.utf8.count, Limits.id)
    try limit("collection", record.pointee.collection.utf8.count, Limits.collection)
    try limit("timestamp", record.pointee.hlcTimestamp.utf8.count, Limits.hlc)
    try limit("payload", record.pointee.payload.count, Limits.payload)
    try limit("author key", record.pointee.authorPublicKey?.count ?? 0, Limits.key)
    try limit("signature", record.pointee.signature?.count ?? 0, Limits.key)
  }

  @inline(__always)
  private static func limit(
    _ field: StaticString, _ count: Int, _ limit: Int
  ) throws(Refusal) {
    if count > limit { throw .tooLong(field: "\(field)", count: count, limit: limit) }
  }

  @inline(__always)
  private static func parse(
    _ hlc: UnsafeRawBufferPointer, _ format: HlcFormat
  ) throws(Refusal) -> HlcParts {
    guard let parts = parseHlc(hlc.assumingMemoryBound(to: UInt8.self), format: format) else {
      throw .timestamp(String(decoding: hlc, as: UTF8.self))
    }
    return parts
  }
}

// MARK: - Fields

extension PreparedBatch {
  /// Calls `body` with the fields of a record as bytes.
  @inline(__always)
  func withBytes<Result, Failure: Error>(
    of index: Int, _ body: (RecordBytes) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try flat.withBytes(of: index, in: records, body)
  }

  /// Calls `body` with the name of the collection of a record.
  @inline(__always)
  func withCollection<Result, Failure: Error>(
    of index: Int, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try flat.withCollection(of: index, body)
  }

  /// Calls `body` with the node of the timestamp of a record: what of its order the numbers do not say.
  @inline(__always)
  func withNode<Result, Failure: Error>(
    of index: Int, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try flat.withHlc(of: index) { (hlc) throws(Failure) in
      try body(UnsafeRawBufferPointer(rebasing: hlc[items[index].parts.nodeStart...]))
    }
  }

  /// The order of the timestamps of two records.
  func compareHlcs(_ index: Int, _ other: Int) -> Int {
    let (a, b) = (items[index].parts, items[other].parts)
    let numbers = compareNumbers(a.physical, a.counter, b.physical, b.counter)
    if numbers != 0 { return numbers }
    return flat.withHlc(of: index) { first in
      flat.withHlc(of: other) { second in
        compareHlc(
          first.assumingMemoryBound(to: UInt8.self), a,
          second.assumingMemoryBound(to: UInt8.self), b)
      }
    }
  }
}
