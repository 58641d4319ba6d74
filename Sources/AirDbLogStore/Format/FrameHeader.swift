/// The first 64 bytes of a frame, which is one commit (Format 5).
package struct FrameHeader: Sendable, Equatable {
  /// Of the frame with header and padding.
  package var length: UInt64
  package var sequence: UInt64
  /// The last sequence known durable when the frame was written.
  package var durableSequence: UInt64
  /// Milliseconds since 1970.
  package var commitDate: Int64
  package var recordCount: UInt32
  package var blockCount: UInt32
  package var previousChecksum: UInt32
  package var bodyChecksum: UInt32
  package var kind = Kind.commit
  /// Whether the commit asked to survive power loss.
  package var asksPowerLoss: Bool
  package var labelLength: UInt16
  /// Of the transaction table; 0 unless packed.
  package var tableLength: UInt32 = 0
  /// Of this header; set by ``encode(into:at:file:offset:)`` and ``decode(_:file:offset:)``.
  package var checksum: UInt32 = 0

  package enum Kind: UInt8, Sendable {
    /// One commit.
    case commit = 1
    /// What compaction left of many commits.
    case packed = 2
  }

  /// Where the blocks start.
  package var bodyStart: Int { Self.size + Int(labelLength) + Int(tableLength) }

  /// The most that a frame of so many records can have: what a reader may believe.
  package var greatestLength: UInt64 {
    Limits.frame + UInt64(recordCount) * Limits.framePerRecord + UInt64(tableLength)
  }

  package static let size = 64
  package static let magic: UInt32 = 0x4D52_4641  // "AFRM"
  package static let alignment: UInt64 = 8

  package init(
    length: UInt64, sequence: UInt64, durableSequence: UInt64, commitDate: Int64,
    recordCount: UInt32, blockCount: UInt32, previousChecksum: UInt32, bodyChecksum: UInt32,
    asksPowerLoss: Bool, labelLength: UInt16
  ) {
    self.length = length
    self.sequence = sequence
    self.durableSequence = durableSequence
    self.commitDate = commitDate
    self.recordCount = recordCount
    self.blockCount = blockCount
    self.previousChecksum = previousChecksum
    self.bodyChecksum = bodyChecksum
    self.asksPowerLoss = asksPowerLoss
    self.labelLength = labelLength
  }

  /// Writes the header over the 64 bytes at `position` of `out`, and answers its checksum.
  package func encode(
    into out: inout ByteBuffer, at position: Int, file: UInt64, offset: UInt64
  ) -> UInt32 {
    out.store(Self.magic, at: position)
    out.store(length, at: position + 8)
    out.store(sequence, at: position + 16)
    out.store(durableSequence, at: position + 24)
    out.store(commitDate, at: position + 32)
    out.store(recordCount, at: position + 40)
    out.store(blockCount, at: position + 44)
    out.store(previousChecksum, at: position + 48)
    out.store(bodyChecksum, at: position + 52)
    out.store(kind.rawValue, at: position + 56)
    out.store(UInt8(asksPowerLoss ? 1 : 0), at: position + 57)
    out.store(labelLength, at: position + 58)
    out.store(tableLength, at: position + 60)
    let covered = UnsafeRawBufferPointer(
      rebasing: out.bytes[(position + 8)..<(position + Self.size)])
    let checksum = Checksum.bound(.frame, file: file, offset: offset, covered)
    out.store(checksum, at: position + 4)
    return checksum
  }

  /// The header at the start of `bytes`, checked in itself: magic, checksum, reserved bits,
  /// alignment. Whether it fits the log around it is the scan's business.
  package static func decode(
    _ bytes: UnsafeRawBufferPointer, file: UInt64, offset: UInt64
  ) throws(FormatError) -> FrameHeader {
    guard bytes.count >= size else { throw FormatError("a frame header is cut short") }
    guard bytes.load(UInt32.self, at: 0) == magic else { throw FormatError("not a frame") }
    let checksum = bytes.load(UInt32.self, at: 4)
    let covered = UnsafeRawBufferPointer(rebasing: bytes[8..<size])
    guard checksum == Checksum.bound(.frame, file: file, offset: offset, covered) else {
      throw FormatError("the checksum of a frame header does not match", at: 4)
    }
    let flags = bytes[57]
    var header = FrameHeader(
      length: bytes.load(UInt64.self, at: 8), sequence: bytes.load(UInt64.self, at: 16),
      durableSequence: bytes.load(UInt64.self, at: 24),
      commitDate: bytes.load(Int64.self, at: 32), recordCount: bytes.load(UInt32.self, at: 40),
      blockCount: bytes.load(UInt32.self, at: 44),
      previousChecksum: bytes.load(UInt32.self, at: 48),
      bodyChecksum: bytes.load(UInt32.self, at: 52), asksPowerLoss: flags & 1 == 1,
      labelLength: bytes.load(UInt16.self, at: 58))
    header.checksum = checksum
    header.tableLength = bytes.load(UInt32.self, at: 60)
    guard let kind = Kind(rawValue: bytes[56]), flags & 0xFE == 0 else {
      throw FormatError("a frame of unknown kind", at: 56)
    }
    header.kind = kind
    guard header.length >= UInt64(size), header.length % alignment == 0,
      header.labelLength <= Limits.label, header.recordCount > 0, header.blockCount > 0,
      header.kind == .packed
        ? header.durableSequence == header.sequence && header.tableLength > 0
          && header.labelLength == 0
        : header.durableSequence < header.sequence && header.tableLength == 0
    else { throw FormatError("an impossible frame header", at: 8) }
    return header
  }
}
