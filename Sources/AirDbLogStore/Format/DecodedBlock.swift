#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// A block read back: its rows parsed, its payloads decompressed. Immutable, shared by readers and
/// kept by the cache.
///
/// `@unchecked Sendable`: as its superclass, whose memory it fills in the initializer.
package final class DecodedBlock: BlockRows, @unchecked Sendable {
  /// Parses and decompresses a block whose checksum has been verified.
  package init(_ bytes: UnsafeRawBufferPointer) throws(FormatError) {
    let header = try Self.header(of: bytes)
    let stored = UnsafeRawBufferPointer(
      rebasing: bytes[(BlockHeader.size + Int(header.metadataLength))...])
    let raw = Int(header.rawLength)
    // LZ4 cannot expand more than 255 times, so that a hostile length allocates nothing large.
    guard raw <= stored.count * 255 + 64 else {
      throw FormatError("a block claims more than LZ4 can hold", at: 16)
    }
    try super.init(bytes, header, extra: raw + Lz4.slack)
    let target = UnsafeMutableRawBufferPointer(rebasing: memory[metadataCount...])
    switch header.codec {
    case .stored:
      target.copyMemory(from: stored)
    case .lz4:
      guard Lz4.decompress(stored, into: target) else {
        throw FormatError(
          "the payloads do not decompress", at: BlockHeader.size + metadataCount)
      }
    }
  }

  private func payload(of row: Row) -> UnsafeRawBufferPointer {
    bytes(metadataCount + Int(row.payload), Int(row.payloadCount))
  }
}

// MARK: - Records

extension DecodedBlock {
  /// The record in a slot, built anew; what repeats within the block is shared.
  package func record(_ slot: Int) throws(FormatError) -> ChangeRecord {
    let row = rows[slot]
    let payload = payload(of: row)
    return ChangeRecord(
      id: try id(slot), collection: collection(slot), type: try type(slot),
      payload: payload.isEmpty ? Data() : Data(payload), hlcTimestamp: try hlc(slot),
      authorPublicKey: row.hasAuthor ? Data(author(of: row)) : nil,
      signature: row.hasSignature ? Data(bytes(row.signature, row.signatureCount)) : nil)
  }

  /// Calls `body` with all fields of the record in a slot as bytes.
  package func withFields<Result>(
    _ slot: Int, _ body: (RecordBytes) throws(FormatError) -> Result
  ) throws(FormatError) -> Result {
    let row = rows[slot]
    return try withUTF8(collections[Int(row.collection)]) { (collection) throws(FormatError) in
      try withId(slot) { (id) throws(FormatError) in
        try withHlc(slot) { (hlc) throws(FormatError) in
          try body(
            RecordBytes(
              collection: collection, id: id, hlc: hlc, type: row.type,
              payload: payload(of: row),
              author: row.hasAuthor ? author(of: row) : nil,
              signature: row.hasSignature ? bytes(row.signature, row.signatureCount) : nil))
        }
      }
    }
  }
}
