import AirDbLogStore
import TestSupport
import Testing

/// Headers and manifests: what is written is read, and what is damaged is refused.
@Suite struct CodecHeaderTests {
  // MARK: Manifest

  private func manifest(_ random: inout SeededGenerator, segments: Int) -> Manifest {
    var manifest = Manifest(
      storeId: StoreId(first: random.next(), second: random.next()),
      hashSecret: KeyHashSecret(first: random.next(), second: random.next()),
      hlcFormat: 1, deletionValues: [-5, 2, .max])
    manifest.generation = 100
    manifest.epoch = 3
    manifest.hlcPhysicalKind = UInt8(random.next() % 3)
    manifest.optionalFeatures = random.next()
    manifest.fileIdLimit = 1_000
    manifest.lastCommitDate = Int64(bitPattern: random.next())
    manifest.createdDate = Int64(bitPattern: random.next())
    manifest.livenessGeneration = 99
    manifest.livenessLength = random.next()
    manifest.livenessChecksum = UInt32(truncatingIfNeeded: random.next())
    manifest.greatestHlc = Array("1700000000000-0-n".utf8.prefix(Int(random.next() % 18)))
    var sequence: UInt64 = 1 << 32
    for number in 0..<segments {
      let count = 1 + random.next() % 100
      manifest.segments.append(
        Manifest.Segment(
          fileId: UInt64(number * 3 + 1), length: 72 + 8 * (random.next() % 1_000),
          firstSequence: sequence + 1, lastSequence: sequence + count,
          lastChecksum: UInt32(truncatingIfNeeded: random.next()),
          indexChecksum: UInt32(truncatingIfNeeded: random.next()), recordCount: count + 5,
          entryCount: count, deadCount: random.next() % (count + 1), indexLength: 4_096 * count,
          lastCommitDate: Int64(bitPattern: random.next())))
      sequence += count
    }
    if segments > 0 {
      manifest.end = LogEnd(
        segment: 999, length: 64 + 8 * (random.next() % 100), sequence: sequence + 4,
        checksum: UInt32(truncatingIfNeeded: random.next()))
      manifest.sealedEnd = LogEnd(
        segment: 998, length: 64 + 8 * (random.next() % 100), sequence: sequence,
        checksum: UInt32(truncatingIfNeeded: random.next()))
      manifest.livenessSequence = sequence
    }
    return manifest
  }

  private func decode(_ bytes: [UInt8]) throws(ManifestError) -> Manifest {
    try withBytes(of: bytes) { (bytes) throws(ManifestError) in try Manifest.decode(bytes) }
  }

  @Test func `Manifests come back`() throws {
    var random = SeededGenerator(seed: 51)
    for segments in [0, 1, 2, 3, 50] {
      for _ in 0..<20 {
        let manifest = manifest(&random, segments: segments)
        let bytes = manifest.encode()
        #expect(bytes.count % 8 == 0)
        #expect(try decode(bytes) == manifest)
      }
    }
  }

  @Test func `A manifest with any bit flipped, cut or longer is refused`() {
    var random = SeededGenerator(seed: 52)
    let bytes = manifest(&random, segments: 3).encode()
    for bit in 0..<(bytes.count * 8) {
      var other = bytes
      other[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(throws: ManifestError.self, "bit \(bit)") { try decode(other) }
    }
    for count in 0..<bytes.count {
      #expect(throws: ManifestError.self) { try decode(Array(bytes[..<count])) }
    }
    #expect(throws: ManifestError.self) { try decode(bytes + [0, 0, 0, 0, 0, 0, 0, 0]) }
  }

  @Test func `Hostile manifests are refused or read, and never trap`() {
    var random = SeededGenerator(seed: 53)
    let bytes = manifest(&random, segments: 3).encode()
    var accepted = 0
    for place in 12..<bytes.count {
      for value in [0, 1, 0x7F, 0x80, 0xFE, 0xFF] as [UInt8] {
        for width in [1, 4, 8] {
          var other = bytes
          for index in place..<min(place + width, other.count) { other[index] = value }
          seal(manifest: &other)
          if let manifest = try? decode(other) {
            // What is accepted is written as it was read.
            #expect(manifest.encode() == other)
            accepted += 1
          }
        }
      }
    }
    #expect(accepted > 100, "some fields may have any value")
    for count in 0..<400 {
      _ = try? decode(random.bytes(count))
      var noise = Array("AIRDBMAN".utf8) + random.bytes(count + 8)
      noise.replaceSubrange(12..<16, with: [1, 0, 0, 0])
      _ = try? decode(noise)
    }
  }

  // MARK: Segment header

  @Test func `Segment headers come back, and damaged ones are refused`() throws {
    var random = SeededGenerator(seed: 54)
    for _ in 0..<50 {
      let header = SegmentHeader(
        storeId: StoreId(first: random.next(), second: random.next()), fileId: random.next(),
        predecessor: random.next(), predecessorLength: random.next(),
        predecessorChecksum: UInt32(truncatingIfNeeded: random.next()))
      let bytes = header.encode()
      #expect(bytes.count == SegmentHeader.size)
      func decode(_ bytes: [UInt8], _ id: UInt64) throws(FormatError) -> SegmentHeader {
        try withBytes(of: bytes) { (bytes) throws(FormatError) in
          try SegmentHeader.decode(bytes, fileId: id)
        }
      }
      #expect(try decode(bytes, header.fileId) == header)
      #expect(try decode(bytes + [1, 2, 3], header.fileId) == header)
      #expect(throws: FormatError.self) { try decode(bytes, header.fileId &+ 1) }
      for bit in 0..<(bytes.count * 8) {
        var other = bytes
        other[bit / 8] ^= 1 << UInt8(bit % 8)
        #expect(throws: FormatError.self) { try decode(other, header.fileId) }
      }
      for count in 0..<bytes.count {
        #expect(throws: FormatError.self) { try decode(Array(bytes[..<count]), header.fileId) }
      }
    }
  }

  // MARK: Frame header

  private func frame(_ random: inout SeededGenerator) -> FrameHeader {
    FrameHeader(
      length: 64 + 8 * (random.next() % 1_000), sequence: 1 + random.next() >> 1,
      durableSequence: 0, commitDate: Int64(bitPattern: random.next()),
      recordCount: 1 + UInt32(random.next() % 1_000), blockCount: 1 + UInt32(random.next() % 9),
      previousChecksum: UInt32(truncatingIfNeeded: random.next()),
      bodyChecksum: UInt32(truncatingIfNeeded: random.next()),
      asksPowerLoss: random.next() % 2 == 0, labelLength: UInt16(random.next() % 1_025))
  }

  private func encode(_ header: FrameHeader, file: UInt64, offset: UInt64) -> (
    bytes: [UInt8], checksum: UInt32
  ) {
    var out = ByteBuffer()
    out.appendZeros(FrameHeader.size)
    let checksum = header.encode(into: &out, at: 0, file: file, offset: offset)
    return (Array(out.bytes), checksum)
  }

  private func decode(
    _ bytes: [UInt8], file: UInt64, offset: UInt64
  ) throws(FormatError) -> FrameHeader {
    try withBytes(of: bytes) { (bytes) throws(FormatError) in
      try FrameHeader.decode(bytes, file: file, offset: offset)
    }
  }

  @Test func `Frame headers come back, and damaged or moved ones are refused`() throws {
    var random = SeededGenerator(seed: 55)
    for _ in 0..<50 {
      var header = frame(&random)
      let (file, offset) = (random.next(), random.next())
      let (bytes, checksum) = encode(header, file: file, offset: offset)
      header.checksum = checksum
      #expect(try decode(bytes, file: file, offset: offset) == header)
      #expect(throws: FormatError.self) { try decode(bytes, file: file &+ 1, offset: offset) }
      #expect(throws: FormatError.self) { try decode(bytes, file: file, offset: offset &+ 8) }
      for bit in 0..<(bytes.count * 8) {
        var other = bytes
        other[bit / 8] ^= 1 << UInt8(bit % 8)
        #expect(throws: FormatError.self) { try decode(other, file: file, offset: offset) }
      }
      for count in 0..<bytes.count {
        #expect(throws: FormatError.self) {
          try decode(Array(bytes[..<count]), file: file, offset: offset)
        }
      }
    }
  }

  @Test func `A frame header that no writer writes is refused though its checksum holds`() {
    var random = SeededGenerator(seed: 56)
    let (bytes, _) = encode(frame(&random), file: 1, offset: 64)
    // Offset, width, value: lengths that are too small or odd, no records, no blocks, a watermark
    // that is not below the sequence, unknown kinds and flags, a table, a label that is too long.
    let fields: [(Int, Int, UInt64)] = [
      (8, 8, 0), (8, 8, 56), (8, 8, 65), (8, 8, .max), (40, 4, 0), (44, 4, 0), (24, 8, .max),
      (56, 1, 0), (56, 1, 2), (56, 1, 255), (57, 1, 2), (57, 1, 0x80), (60, 4, 1), (58, 2, 1_025),
    ]
    for (offset, width, value) in fields {
      var other = bytes
      for index in 0..<width {
        other[offset + index] = UInt8(truncatingIfNeeded: value >> (8 * index))
      }
      let checksum = other[8..<64].withUnsafeBytes {
        Checksum.bound(.frame, file: 1, offset: 64, $0)
      }
      other.withUnsafeMutableBytes {
        $0.storeBytes(of: checksum.littleEndian, toByteOffset: 4, as: UInt32.self)
      }
      #expect(throws: FormatError.self, "\(value) at \(offset)") {
        try decode(other, file: 1, offset: 64)
      }
    }
  }

  // MARK: Liveness

  @Test func `Liveness files come back, and damaged ones are refused`() throws {
    var random = SeededGenerator(seed: 57)
    for round in 0..<20 {
      var manifest = manifest(&random, segments: 1 + round % 6)
      let dead = manifest.segments.enumerated().map { number, segment in
        var bits = DeadBits(entryCount: segment.entryCount)
        if (number + round) % 3 > 0 {
          for rank in 0..<segment.entryCount where random.next() % 3 == 0 { bits.insert(rank) }
        }
        return bits
      }
      let (bytes, checksum) = LivenessFile.encode(
        generation: manifest.livenessGeneration, sequence: manifest.livenessSequence,
        storeId: manifest.storeId,
        segments: zip(manifest.segments, dead).map { ($0.fileId, $1) })
      manifest.livenessLength = UInt64(bytes.count)
      manifest.livenessChecksum = checksum
      let settled = manifest
      func decode(_ bytes: [UInt8]) throws(FormatError) -> [DeadBits] {
        try withBytes(of: bytes) { (bytes) throws(FormatError) in
          try LivenessFile.decode(bytes, settled)
        }
      }
      #expect(try decode(bytes) == dead)
      for bit in 0..<(bytes.count * 8) {
        var other = bytes
        other[bit / 8] ^= 1 << UInt8(bit % 8)
        #expect(throws: FormatError.self, "bit \(bit)") { try decode(other) }
      }
      for count in 0..<bytes.count {
        #expect(throws: FormatError.self) { try decode(Array(bytes[..<count])) }
      }
      #expect(throws: FormatError.self) { try decode(bytes + [0]) }
    }
  }
}
