/// A block read back whole: its rows parsed, its payloads decompressed. Immutable.
///
/// For whoever goes through all of a log; ``BlockReader`` gives single records.
///
/// `@unchecked Sendable`: as its superclass, whose memory it fills in the initializer.
package final class DecodedBlock: BlockRows, @unchecked Sendable {
  /// Parses and decompresses a block whose checksum has been verified.
  package init(_ bytes: UnsafeRawBufferPointer) throws(FormatError) {
    let header = try BlockHeader.decode(wholeBlock: bytes)
    let stored = header.storedPayloads(of: bytes)
    try super.init(bytes, header, extra: Int(header.rawLength) + Lz4.slack)
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

  private func payload(of row: BlockRow) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: memory[metadataCount...])[row.payload]
  }

  /// Calls `body` with all fields of the record in a slot as bytes.
  package func withFields<Result>(
    _ slot: Int, _ body: (RecordBytes) throws(FormatError) -> Result
  ) throws(FormatError) -> Result {
    let row = rows[slot]
    return try withId(slot) { (id) throws(FormatError) in
      try withHlc(slot) { (hlc) throws(FormatError) in
        try body(
          RecordBytes(
            collection: metadata[row.collection], id: id, hlc: hlc, type: row.type,
            payload: payload(of: row),
            author: row.hasAuthor ? metadata[row.author] : nil,
            signature: row.hasSignature ? metadata[row.signature] : nil))
      }
    }
  }
}
