/// The first 32 bytes of a block (Format 6).
package struct BlockHeader: Sendable, Equatable {
  package var recordCount: UInt32
  package var metadataLength: UInt32
  package var storedLength: UInt32
  package var rawLength: UInt32
  package var codec: Codec
  /// Index in the frame of the block's first record.
  package var firstRecord: UInt32
  /// Offset of the block less offset of its frame.
  package var frameDistance: UInt32
  /// Whether each row says which of its commit's records it was: in packed frames.
  package var hasOrdinals: Bool

  package enum Codec: UInt8, Sendable {
    case stored = 0
    case lz4 = 1
  }

  package static let size = 32
  /// LZ4 cannot shrink fewer bytes than this.
  package static let leastToCompress = 16

  package init(
    recordCount: UInt32, metadataLength: UInt32, storedLength: UInt32, rawLength: UInt32,
    codec: Codec, firstRecord: UInt32, frameDistance: UInt32, hasOrdinals: Bool
  ) {
    self.recordCount = recordCount
    self.metadataLength = metadataLength
    self.storedLength = storedLength
    self.rawLength = rawLength
    self.codec = codec
    self.firstRecord = firstRecord
    self.frameDistance = frameDistance
    self.hasOrdinals = hasOrdinals
  }

  /// Of no block.
  static let empty = BlockHeader(
    recordCount: 0, metadataLength: 0, storedLength: 0, rawLength: 0, codec: .stored,
    firstRecord: 0, frameDistance: 0, hasOrdinals: false)

  /// Of the block, this header included.
  package var length: UInt64 {
    UInt64(Self.size) + UInt64(metadataLength) + UInt64(storedLength)
  }

  /// The length that the header at the start of `bytes` states, whatever else it says; nil if it is
  /// cut short.
  package static func statedLength(_ bytes: UnsafeRawBufferPointer) -> UInt64? {
    guard bytes.count >= size else { return nil }
    return UInt64(size) + UInt64(bytes.load(UInt32.self, at: 8))
      + UInt64(bytes.load(UInt32.self, at: 12))
  }

  /// Writes the header over the first bytes of the block, which starts at `position` of `out` and
  /// is the last thing in it.
  package func encode(into out: inout ByteBuffer, at position: Int, file: UInt64, offset: UInt64) {
    out.store(recordCount, at: position + 4)
    out.store(metadataLength, at: position + 8)
    out.store(storedLength, at: position + 12)
    out.store(rawLength, at: position + 16)
    out.store(codec.rawValue, at: position + 20)
    out.store(UInt8(hasOrdinals ? 1 : 0), at: position + 21)
    out.store(firstRecord, at: position + 24)
    out.store(frameDistance, at: position + 28)
    let covered = UnsafeRawBufferPointer(rebasing: out.bytes[(position + 4)...])
    out.store(Checksum.bound(.block, file: file, offset: offset, covered), at: position)
  }

  /// The header at the start of `bytes`, with its lengths checked against the limits; the checksum,
  /// which covers the whole block, is verified by ``verify(_:file:offset:)``.
  package static func decode(_ bytes: UnsafeRawBufferPointer) throws(FormatError) -> BlockHeader {
    guard bytes.count >= size else { throw FormatError("a block header is cut short") }
    guard let codec = Codec(rawValue: bytes[20]), bytes[21] <= 1, bytes[22] == 0, bytes[23] == 0
    else { throw FormatError("an unknown block codec", at: 20) }
    let header = BlockHeader(
      recordCount: bytes.load(UInt32.self, at: 4), metadataLength: bytes.load(UInt32.self, at: 8),
      storedLength: bytes.load(UInt32.self, at: 12), rawLength: bytes.load(UInt32.self, at: 16),
      codec: codec, firstRecord: bytes.load(UInt32.self, at: 24),
      frameDistance: bytes.load(UInt32.self, at: 28), hasOrdinals: bytes[21] == 1)
    let lengthsMatch =
      codec == .stored
      ? header.storedLength == header.rawLength : header.storedLength < header.rawLength
    guard header.recordCount > 0, header.recordCount <= Limits.recordsPerBlock, lengthsMatch,
      header.rawLength <= Limits.payload,
      UInt64(header.metadataLength)
        <= UInt64(header.recordCount) * UInt64(Limits.metadataPerRecord)
    else { throw FormatError("an impossible block header", at: 4) }
    return header
  }

  /// The header of a block that fills `bytes`.
  static func decode(wholeBlock bytes: UnsafeRawBufferPointer) throws(FormatError) -> BlockHeader {
    let header = try decode(bytes)
    guard UInt64(bytes.count) == header.length else {
      throw FormatError("the block's length does not match its header")
    }
    // LZ4 cannot expand more than 255 times, so that a hostile length allocates nothing large.
    guard UInt64(header.rawLength) <= UInt64(header.storedLength) * 255 + 64 else {
      throw FormatError("a block claims more than LZ4 can hold", at: 16)
    }
    return header
  }

  func metadata(of block: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    block[BlockRow.Field(start: UInt32(Self.size), count: metadataLength)]
  }

  func storedPayloads(of block: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: block[(Self.size + Int(metadataLength))...])
  }

  /// Whether the checksum of the whole block `bytes` holds.
  package static func verify(_ bytes: UnsafeRawBufferPointer, file: UInt64, offset: UInt64) -> Bool
  {
    bytes.load(UInt32.self, at: 0)
      == Checksum.bound(
        .block, file: file, offset: offset, UnsafeRawBufferPointer(rebasing: bytes[4...]))
  }
}
