internal import HlcText

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The fields of one record as borrowed bytes, valid for the length of a call.
package struct RecordBytes {
  package var collection: UnsafeRawBufferPointer
  package var id: UnsafeRawBufferPointer
  package var hlc: UnsafeRawBufferPointer
  package var type: Int64
  package var payload: UnsafeRawBufferPointer
  /// Nil is not the same as empty.
  package var author: UnsafeRawBufferPointer?
  package var signature: UnsafeRawBufferPointer?
}

extension RecordBytes {
  /// Tells two versions with equal timestamps apart (Format 6.2).
  package var contentChecksum: UInt32 {
    var head = (
      type.littleEndian, UInt8(author == nil ? 0 : 1), UInt32(0)
    )
    var crc = withUnsafeBytes(of: &head.0) { Checksum.crc($0) }
    crc = Checksum.crc(head.1, from: crc)
    crc = Checksum.crc(UInt32(truncatingIfNeeded: author?.count ?? 0), from: crc)
    if let author { crc = Checksum.crc(author, from: crc) }
    crc = Checksum.crc(UInt8(signature == nil ? 0 : 1), from: crc)
    crc = Checksum.crc(UInt32(truncatingIfNeeded: signature?.count ?? 0), from: crc)
    if let signature { crc = Checksum.crc(signature, from: crc) }
    return Checksum.crc(payload, from: crc)
  }
}

/// Calls `body` with the fields of a record as bytes, copying nothing that is contiguous already.
package func withBytes<Result, Failure: Error>(
  of record: ChangeRecord, _ body: (RecordBytes) throws(Failure) -> Result
) throws(Failure) -> Result {
  try withUTF8(record.collection) { (collection) throws(Failure) in
    try withUTF8(record.id) { (id) throws(Failure) in
      try withUTF8(record.hlcTimestamp) { (hlc) throws(Failure) in
        try withData(record.payload) { (payload) throws(Failure) in
          try withData(record.authorPublicKey) { (author) throws(Failure) in
            try withData(record.signature) { (signature) throws(Failure) in
              try body(
                RecordBytes(
                  collection: collection, id: id, hlc: hlc,
                  type: Int64(record.type.rawValue),
                  payload: payload ?? UnsafeRawBufferPointer(start: nil, count: 0),
                  author: author, signature: signature))
            }
          }
        }
      }
    }
  }
}

/// Calls `body` with the UTF-8 of a text.
@inline(__always)
package func withUTF8<Result, Failure: Error>(
  _ text: String, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
) throws(Failure) -> Result {
  let fast = text.utf8.withContiguousStorageIfAvailable { utf8 -> Swift.Result<Result, Failure> in
    do throws(Failure) {
      return .success(try body(UnsafeRawBufferPointer(utf8)))
    } catch {
      return .failure(error)
    }
  }
  if let fast { return try fast.get() }
  // A string bridged from another runtime: its UTF-8 has to be made.
  return try withBytes(of: Array(text.utf8), body)
}

func withData<Result, Failure: Error>(
  _ data: Data?, _ body: (UnsafeRawBufferPointer?) throws(Failure) -> Result
) throws(Failure) -> Result {
  guard let data else { return try body(nil) }
  var result: Swift.Result<Result, Failure>!
  data.withUnsafeBytes { bytes in
    do throws(Failure) {
      result = .success(try body(bytes))
    } catch {
      result = .failure(error)
    }
  }
  return try result.get()
}

extension ByteBuffer {
  /// Appends the UTF-8 of a text, and answers how many bytes that is.
  @inline(__always)
  mutating func appendField(_ text: String) -> Int {
    let start = count
    if text.utf8.withContiguousStorageIfAvailable({ append(UnsafeRawBufferPointer($0)) }) == nil {
      append(Array(text.utf8))
    }
    return count - start
  }

  /// Appends data, and answers how many bytes that is.
  @inline(__always)
  mutating func appendField(_ data: Data) -> Int {
    data.withUnsafeBytes { append($0) }
    return data.count
  }
}
