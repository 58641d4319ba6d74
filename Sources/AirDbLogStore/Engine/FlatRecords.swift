internal import HlcText

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The fields of a batch's records as bytes, one after the other in one piece of memory.
///
/// They are looked at several times on their way into the log. Each look at a `String` or a `Data`
/// counts references, which cost more than the copy.
///
/// `@unchecked Sendable`: written before it is shared, and then only read.
final class FlatRecords: @unchecked Sendable {
  // Nothing that is called from here reaches this object again.
  @exclusivity(unchecked) private var bytes: ByteBuffer
  @exclusivity(unchecked) private var places = ContiguousArray<Place>()

  /// Where the fields of a record are: in the order in which they are named here.
  private struct Place {
    var start: Int
    var type: Int64
    var id: UInt32
    /// Negative if there is none, as for the signature.
    var author: Int32
    var signature: Int32
    var payload: UInt32
    var collection: UInt16
    var hlc: UInt16
    /// Whether the payload has stayed where it was.
    var isPayloadApart: Bool
  }

  /// A payload above this is not copied, and none once so much has been.
  private static let mostOfPayload = 8 << 10
  private static let mostCopied = 4 << 20

  init(expecting count: Int) {
    bytes = ByteBuffer(capacity: min(count, Self.mostCopied / 512) * 512)
    places.reserveCapacity(count)
  }

  /// Adds a record whose fields are within the limits, and answers their size. Through a pointer: the
  /// subscript of an array would copy the record, with a reference for each of its fields.
  @inline(__always)
  func append(_ record: UnsafePointer<ChangeRecord>) -> Int {
    let start = bytes.count
    let collection = bytes.appendField(record.pointee.collection)
    let id = bytes.appendField(record.pointee.id)
    let hlc = bytes.appendField(record.pointee.hlcTimestamp)
    let author = record.pointee.authorPublicKey.map { bytes.appendField($0) } ?? -1
    let signature = record.pointee.signature.map { bytes.appendField($0) } ?? -1
    let payload = record.pointee.payload.count
    let isApart = payload > Self.mostOfPayload || bytes.count + payload > Self.mostCopied
    if !isApart { _ = bytes.appendField(record.pointee.payload) }
    places.append(
      Place(
        start: start, type: Int64(record.pointee.type.rawValue), id: UInt32(id),
        author: Int32(author), signature: Int32(signature), payload: UInt32(payload),
        collection: UInt16(collection), hlc: UInt16(hlc), isPayloadApart: isApart))
    return bytes.count - start + (isApart ? payload : 0)
  }

  /// Calls `body` with the fields of a record, one of `records`, that this was made of.
  @inline(__always)
  func withBytes<Result, Failure: Error>(
    of index: Int, in records: [ChangeRecord],
    _ body: (RecordBytes) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let place = places[index]
    var next = bytes.base + place.start
    func field(_ count: Int) -> UnsafeRawBufferPointer {
      defer { next += count }
      return UnsafeRawBufferPointer(start: next, count: count)
    }
    var record = RecordBytes(
      collection: field(Int(place.collection)), id: field(Int(place.id)),
      hlc: field(Int(place.hlc)), type: place.type,
      payload: UnsafeRawBufferPointer(start: nil, count: 0),
      author: place.author < 0 ? nil : field(Int(place.author)),
      signature: place.signature < 0 ? nil : field(Int(place.signature)))
    return try withExtendedLifetime(self) { () throws(Failure) in
      guard place.isPayloadApart else {
        record.payload = field(Int(place.payload))
        return try body(record)
      }
      return try withData(records[index].payload) { (payload) throws(Failure) in
        record.payload = payload!
        return try body(record)
      }
    }
  }

  /// Calls `body` with the name of the collection of a record.
  @inline(__always)
  func withCollection<Result, Failure: Error>(
    of index: Int, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withField(at: places[index].start, Int(places[index].collection), body)
  }

  /// Calls `body` with the text of the timestamp of a record.
  @inline(__always)
  func withHlc<Result, Failure: Error>(
    of index: Int, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let place = places[index]
    return try withField(
      at: place.start + Int(place.collection) + Int(place.id), Int(place.hlc), body)
  }

  @inline(__always)
  private func withField<Result, Failure: Error>(
    at start: Int, _ count: Int, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withExtendedLifetime(self) { () throws(Failure) in
      try body(UnsafeRawBufferPointer(start: bytes.base + start, count: count))
    }
  }
}
