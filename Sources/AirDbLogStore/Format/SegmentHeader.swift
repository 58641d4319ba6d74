/// The first 64 bytes of a segment (Format 4).
package struct SegmentHeader: Sendable, Equatable {
  package var storeId: StoreId
  package var fileId: UInt64
  package var predecessor: UInt64
  package var predecessorLength: UInt64
  package var predecessorChecksum: UInt32

  package static let size = 64

  package init(
    storeId: StoreId, fileId: UInt64, predecessor: UInt64, predecessorLength: UInt64,
    predecessorChecksum: UInt32
  ) {
    self.storeId = storeId
    self.fileId = fileId
    self.predecessor = predecessor
    self.predecessorLength = predecessorLength
    self.predecessorChecksum = predecessorChecksum
  }

  package func encode() -> [UInt8] {
    var out = ByteBuffer(capacity: Self.size)
    out.append("AIRDBSEG")
    out.append(UInt32(0))
    out.append(Limits.formatVersion)
    out.append(storeId.first)
    out.append(storeId.second)
    out.append(fileId)
    out.append(predecessor)
    out.append(predecessorLength)
    out.append(predecessorChecksum)
    out.append(UInt32(0))
    out.store(
      Checksum.bound(
        .segmentHeader, file: fileId, offset: 0, UnsafeRawBufferPointer(rebasing: out.bytes[12...])),
      at: 8)
    return Array(out.bytes)
  }

  package static func decode(
    _ bytes: UnsafeRawBufferPointer, fileId: UInt64
  ) throws(FormatError) -> SegmentHeader {
    var reader = ByteReader(bytes)
    guard try reader.read(count: 8).elementsEqual("AIRDBSEG".utf8) else {
      throw FormatError("not a segment", at: 0)
    }
    let checksum: UInt32 = try reader.read()
    let version: UInt32 = try reader.read()
    guard bytes.count >= size else { throw FormatError("the header is cut short", at: 0) }
    let covered = UnsafeRawBufferPointer(rebasing: bytes[12..<size])
    guard checksum == Checksum.bound(.segmentHeader, file: fileId, offset: 0, covered) else {
      throw FormatError("the checksum of the segment header does not match", at: 8)
    }
    guard version == Limits.formatVersion else {
      throw FormatError("a segment of format version \(version)", at: 12)
    }
    let header = SegmentHeader(
      storeId: StoreId(first: try reader.read(), second: try reader.read()),
      fileId: try reader.read(), predecessor: try reader.read(),
      predecessorLength: try reader.read(), predecessorChecksum: try reader.read())
    guard header.fileId == fileId else { throw FormatError("another segment's header", at: 32) }
    try reader.readZeros(4)
    return header
  }
}
