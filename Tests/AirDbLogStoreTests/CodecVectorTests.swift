import AirDbLogStore
import CAirDbPlatform
import TestSupport
import Testing

/// The smallest codings, against the vectors of the specification.
@Suite struct CodecVectorTests {
  // MARK: Varints

  private func encoded(_ body: (inout ByteBuffer) -> Void) -> [UInt8] {
    var out = ByteBuffer(capacity: 16)
    body(&out)
    return Array(out.bytes)
  }

  private func read<Value>(
    _ bytes: [UInt8], _ body: (inout ByteReader) throws(FormatError) -> Value
  ) throws(FormatError) -> (value: Value, rest: Int) {
    try withBytes(of: bytes) { (bytes) throws(FormatError) in
      var reader = ByteReader(bytes)
      return (try body(&reader), reader.remaining)
    }
  }

  @Test func `Varints are those of the vectors, and read back`() throws {
    let vectors: CodecVectors.Varint = try CodecVectors.load("varint")
    #expect(vectors.unsigned.count > 20 && vectors.zigzag.count > 10)
    for vector in vectors.unsigned {
      let value = try #require(UInt64(vector.value))
      let bytes = CodecVectors.bytes(vector.bytes)
      #expect(encoded { $0.appendVarint(value) } == bytes, "\(value)")
      // Alone, with something behind it, and with a byte less.
      for suffix in [[], [0xFF], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] as [UInt8]] {
        let found = try read(bytes + suffix) { (reader) throws(FormatError) in
          try reader.readVarint()
        }
        #expect(found.value == value && found.rest == suffix.count)
      }
      #expect(throws: FormatError.self) {
        try read(Array(bytes.dropLast())) { (reader) throws(FormatError) in
          try reader.readVarint()
        }
      }
    }
    for vector in vectors.zigzag {
      let value = try #require(Int64(vector.value))
      let bytes = CodecVectors.bytes(vector.bytes)
      #expect(encoded { $0.appendZigzag(value) } == bytes, "\(value)")
      #expect(encoded { $0.appendVarint(UInt64(vector.mapped)!) } == bytes)
      let found = try read(bytes) { (reader) throws(FormatError) in try reader.readZigzag() }
      #expect(found.value == value && found.rest == 0)
    }
  }

  @Test func `Malformed varints are refused`() throws {
    let vectors: CodecVectors.Varint = try CodecVectors.load("varint")
    #expect(vectors.malformed.count > 5)
    for vector in vectors.malformed {
      #expect(throws: FormatError.self, "\(vector.why)") {
        try read(CodecVectors.bytes(vector.bytes)) { (reader) throws(FormatError) in
          try reader.readVarint()
        }
      }
    }
  }

  @Test func `Any number is one varint, and any bytes are one number or none`() throws {
    var random = SeededGenerator(seed: 31)
    for round in 0..<20_000 {
      let value = random.next() >> UInt64(round % 64)
      let bytes = encoded { $0.appendVarint(value) }
      let found = try read(bytes) { (reader) throws(FormatError) in try reader.readVarint() }
      #expect(found.value == value && found.rest == 0)
      // What reads as a number is the number's only form.
      let noise = random.bytes(round % 12)
      if let (value, rest) = try? read(
        noise,
        { (reader) throws(FormatError) in
          try reader.readVarint()
        })
      {
        #expect(encoded { $0.appendVarint(value) } == Array(noise.dropLast(rest)))
      }
    }
  }

  // MARK: Checksums

  @Test func `Checksums are those of the vectors, by instruction and by table`() throws {
    let vectors: CodecVectors.Checksum = try CodecVectors.load("checksum")
    #expect(vectors.crc.count > 5 && vectors.bound.count > 5)
    for vector in vectors.crc {
      let bytes = CodecVectors.bytes(vector.bytes)
      let crc = try #require(UInt32(vector.crc, radix: 16))
      #expect(withBytes(of: bytes) { Checksum.crc($0) } == crc, "\(vector.what)")
      #expect(airdb_crc32c_portable(0, bytes, bytes.count) == crc, "\(vector.what)")
    }
    for vector in vectors.bound {
      let name = Array(vector.tag.utf8)
      let raw = name.enumerated().reduce(UInt32(0)) { $0 | UInt32($1.element) << (8 * $1.offset) }
      let tag = try #require(Checksum.Tag(rawValue: raw))
      let bytes = CodecVectors.bytes(vector.bytes)
      let found = withBytes(of: bytes) {
        Checksum.bound(tag, file: UInt64(vector.file)!, offset: UInt64(vector.offset)!, $0)
      }
      #expect(found == UInt32(vector.crc, radix: 16), "\(vector.tag)")
    }
  }

  @Test func `Both ways to compute a checksum agree at every length, alignment and cut`() {
    var random = SeededGenerator(seed: 32)
    let bytes = random.bytes(1_200)
    withBytes(of: bytes) { all in
      for start in 0..<9 {
        for length in (0..<70).map({ $0 }) + [255, 256, 257, 1_000] {
          let part = UnsafeRawBufferPointer(rebasing: all[start..<(start + length)])
          let crc = Checksum.crc(part)
          #expect(airdb_crc32c_portable(0, part.baseAddress, part.count) == crc)
          let cut = Int(random.next() % UInt64(length + 1))
          let first = Checksum.crc(UnsafeRawBufferPointer(rebasing: part[..<cut]))
          let rest = UnsafeRawBufferPointer(rebasing: part[cut...])
          #expect(Checksum.crc(rest, from: first) == crc)
          #expect(airdb_crc32c_portable(first, rest.baseAddress, rest.count) == crc)
        }
      }
    }
    #expect(airdb_crc32c(7, nil, 0) == 7 && airdb_crc32c_portable(7, nil, 0) == 7)
  }

  // MARK: Key hashes

  @Test func `Key hashes are those of the vectors`() throws {
    let vectors: CodecVectors.KeyHash = try CodecVectors.load("keyhash")
    #expect(vectors.keys.count > 20)
    for vector in vectors.keys {
      let (secret, expected) = (CodecVectors.bytes(vector.secret), CodecVectors.bytes(vector.hash))
      let words = withBytes(of: secret + expected) { bytes in
        (0..<4).map { bytes.load(UInt64.self, at: 8 * $0) }
      }
      let hash = KeyHashSecret(first: words[0], second: words[1]).hash(vector.collection, vector.id)
      #expect(
        hash == KeyHash(first: words[2], second: words[3]), "\(vector.collection) \(vector.id)")
    }
  }

  @Test func `The order of key hashes is that of their bytes`() {
    var random = SeededGenerator(seed: 33)
    let hashes = (0..<200).map { round in
      KeyHash(
        first: round % 3 == 0 ? 1 << 56 : random.next(),
        second: round % 5 == 0 ? 1 : random.next())
    }
    func bytes(_ hash: KeyHash) -> [UInt8] {
      encoded {
        $0.append(hash.first)
        $0.append(hash.second)
      }
    }
    for a in hashes {
      for b in hashes { #expect((a < b) == bytes(a).lexicographicallyPrecedes(bytes(b))) }
    }
  }
}

extension KeyHashSecret {
  /// The hash of a key given as texts.
  func hash(_ collection: String, _ id: String) -> KeyHash {
    withUTF8(collection) { collection in
      withUTF8(id) { hash(collection: collection, id: $0) }
    }
  }
}
