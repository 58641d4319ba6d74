/// The file that says which entries of the sealed segments are superseded (Format 9).
package enum LivenessFile {
  package static let headerSize = 64
  package static let itemSize = 32

  /// The whole file and its header checksum.
  package static func encode(
    generation: UInt64, sequence: UInt64, storeId: StoreId,
    segments: [(fileId: UInt64, dead: DeadBits)]
  ) -> (bytes: [UInt8], checksum: UInt32) {
    let headerEnd = headerSize + segments.count * itemSize
    var out = ByteBuffer(capacity: headerEnd)
    out.append("AIRDBLIV")
    out.append(UInt32(0))
    out.append(Limits.formatVersion)
    out.append(generation)
    out.append(sequence)
    out.append(storeId.first)
    out.append(storeId.second)
    out.append(UInt32(segments.count))
    out.appendZeros(12)
    out.appendZeros(segments.count * itemSize)
    for (index, segment) in segments.enumerated() {
      let item = headerSize + index * itemSize
      out.store(segment.fileId, at: item)
      out.store(segment.dead.entryCount, at: item + 8)
      guard segment.dead.count > 0 else { continue }
      let offset = out.count
      segment.dead.encode(into: &out)
      let bitmap = UnsafeRawBufferPointer(rebasing: out.bytes[offset...])
      let checksum = Checksum.bound(
        .liveness, file: generation, offset: UInt64(offset), bitmap)
      out.pad(to: 8)
      out.store(UInt64(offset), at: item + 16)
      out.store(checksum, at: item + 24)
      out.store(UInt32(segment.dead.count), at: item + 28)
    }
    let covered = UnsafeRawBufferPointer(rebasing: out.bytes[12..<headerEnd])
    let checksum = Checksum.bound(.liveness, file: generation, offset: 0, covered)
    out.store(checksum, at: 8)
    return (Array(out.bytes), checksum)
  }

  /// The bitmaps of the segments of a manifest.
  package static func decode(
    _ bytes: UnsafeRawBufferPointer, _ manifest: Manifest
  ) throws(FormatError) -> [DeadBits] {
    var reader = ByteReader(bytes)
    let headerEnd = headerSize + manifest.segments.count * itemSize
    guard UInt64(bytes.count) == manifest.livenessLength, bytes.count >= headerEnd,
      try reader.read(count: 8).elementsEqual("AIRDBLIV".utf8)
    else { throw FormatError("not the liveness file of this manifest") }
    let checksum: UInt32 = try reader.read()
    let covered = UnsafeRawBufferPointer(rebasing: bytes[12..<headerEnd])
    guard checksum == manifest.livenessChecksum,
      checksum
        == Checksum.bound(.liveness, file: manifest.livenessGeneration, offset: 0, covered)
    else { throw FormatError("the checksum of the liveness header does not match", at: 8) }
    guard try reader.read(UInt32.self) == Limits.formatVersion,
      try reader.read(UInt64.self) == manifest.livenessGeneration,
      try reader.read(UInt64.self) == manifest.livenessSequence,
      StoreId(first: try reader.read(), second: try reader.read()) == manifest.storeId,
      try reader.read(UInt32.self) == UInt32(manifest.segments.count)
    else { throw FormatError("the liveness of something else", at: 12) }
    try reader.readZeros(12)
    var position = headerEnd
    var result: [DeadBits] = []
    for segment in manifest.segments {
      let itemOffset = reader.offset
      guard try reader.read(UInt64.self) == segment.fileId,
        try reader.read(UInt64.self) == segment.entryCount
      else { throw FormatError("the liveness of another segment", at: itemOffset) }
      let offset: UInt64 = try reader.read()
      let bitmapChecksum: UInt32 = try reader.read()
      let deadCount: UInt32 = try reader.read()
      guard deadCount > 0 else {
        guard offset == 0, bitmapChecksum == 0 else {
          throw FormatError("a bitmap without dead entries", at: itemOffset)
        }
        result.append(DeadBits(entryCount: segment.entryCount))
        continue
      }
      guard offset == UInt64(position) else {
        throw FormatError("a bitmap out of place", at: itemOffset)
      }
      var bitmapReader = ByteReader(bytes, at: position)
      let bitmap = try bitmapReader.read(count: Int((segment.entryCount + 7) / 8))
      guard
        bitmapChecksum
          == Checksum.bound(
            .liveness, file: manifest.livenessGeneration, offset: offset, bitmap)
      else { throw FormatError("the checksum of a bitmap does not match", at: position) }
      result.append(
        try DeadBits(
          decoding: bitmap, entryCount: segment.entryCount, deadCount: UInt64(deadCount)))
      try bitmapReader.readZeros((8 - bitmap.count % 8) % 8)
      position = bitmapReader.offset
    }
    guard position == bytes.count else {
      throw FormatError("bytes behind the last bitmap", at: position)
    }
    return result
  }
}
