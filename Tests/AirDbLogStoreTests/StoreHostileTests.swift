import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// Whole stores whose files say anything while their checksums hold: what is wrong is refused or
/// read, and nothing traps (G12).
@Suite struct StoreHostileTests {
  private static let configuration: Configuration = {
    var configuration = Configuration.tiny
    configuration.durability = .processCrash
    configuration.replayBytes = 1 << 20
    return configuration
  }()

  /// The files of a store with sealed segments, a liveness file and a tail of one frame.
  private static let image = Result { () throws -> StoreImage in
    let platform = MemoryPlatform()
    let store = try ChangeStore(path: StoreImage.path, configuration, platform: platform)
    for index in 0..<24 {
      try store.applyAndWait([
        change("\(index % 9)", time(index), in: "c\(index % 2)", payload: "payload \(index)"),
        change("more \(index)", time(index), author: Data([1, 2])),
      ])
    }
    try store.close()
    return try StoreImage(platform)
  }

  /// Opens a store in every way and asks everything of it.
  private func exercise(_ image: StoreImage, _ what: @autoclosure () -> String) {
    for isReadOnly in [true, false] {
      do {
        let platform = try image.restored()
        var configuration = Self.configuration
        configuration.isReadOnly = isReadOnly
        let store = try ChangeStore(path: StoreImage.path, configuration, platform: platform)
        defer { try? store.close() }
        let calls: [() throws -> Void] = [
          { _ = try store.changes(limit: 100) },
          { _ = try store.record(forKey: RecordKey(collection: "c0", id: "2")) },
          { _ = try store.records(in: "c1") }, { _ = try store.statistics() },
          { _ = try store.verify() }, { try store.refresh() },
          {
            guard !isReadOnly else { return }
            try store.applyAndWait([change("2", time(100), in: "c0"), change("new", time(101))])
          },
          { _ = try store.engine.adapterPage(after: time(3), limit: 7) },
        ]
        for call in calls {
          do {
            try call()
          } catch {
            #expect(error is LogStoreError, "\(what()): \(error)")
          }
        }
        try? store.reopen()
      } catch {
        #expect(error is LogStoreError, "\(what()): \(error)")
      }
    }
  }

  private static let values: [UInt64] = [
    0, 1, 0x7FFF_FFFF, 0xFFFF_FFFF, 1 << 32, .max >> 1, .max >> 1 + 1, .max - 7, .max,
  ]

  /// A long run looks at every byte.
  private static let isLong = ProcessInfo.processInfo.environment["AIRDB_LONG_TESTS"] != nil

  /// Calls `body` with copies of `bytes` that have another number at places of `range`.
  private func forEachChange(
    of bytes: [UInt8], in range: Range<Int>, by step: Int,
    _ body: (inout [UInt8], Int, UInt64) -> Void
  ) {
    for place in stride(
      from: range.lowerBound, to: range.upperBound, by: Self.isLong ? 1 : step)
    {
      for value in Self.values {
        for width in [1, 4, 8]
        where place + width <= bytes.count && value >> (8 * UInt64(width)) < 2 {
          var other = bytes
          for index in 0..<width {
            other[place + index] = UInt8(truncatingIfNeeded: value >> UInt64(8 * index))
          }
          if other != bytes { body(&other, place, value) }
        }
      }
    }
  }

  @Test func `Hostile manifests do not trap`() throws {
    let image = try Self.image.get()
    let bytes = try #require(image.files["MANIFEST"])
    forEachChange(of: bytes, in: 12..<bytes.count, by: 4) { other, place, value in
      seal(manifest: &other)
      exercise(image.replacing("MANIFEST", with: other), "\(value) at \(place)")
    }
  }

  @Test func `Hostile frames do not trap`() throws {
    let image = try Self.image.get()
    let name = try #require(image.tail)
    let bytes = try #require(image.files[name])
    let file = UInt64(name.prefix(16), radix: 16)!
    // The first frame of the tail: header, then its block.
    let end = 64 + Int(bytes.number(at: 72))
    forEachChange(of: bytes, in: 72..<end, by: 4) { other, place, value in
      sealFrame(at: 64, end, of: &other, file: file)
      exercise(image.replacing(name, with: other), "\(value) at \(place)")
    }
  }

  @Test(arguments: [false, true])
  func `A frame takes no memory for what its length only claims`(hasBlock: Bool) throws {
    let image = try Self.image.get()
    let name = try #require(image.tail)
    let file = UInt64(name.prefix(16), radix: 16)!
    let end = try ChangeStore(
      path: StoreImage.path, Self.configuration, platform: image.restored()
    ).engine.snapshot.end
    let length: UInt64 = 64 << 20
    let header = FrameHeader(
      length: length, sequence: end.sequence + 1, durableSequence: end.sequence, commitDate: .max,
      recordCount: 1, blockCount: 1, previousChecksum: end.checksum, bodyChecksum: 0,
      asksPowerLoss: false, labelLength: 0)
    let block = BlockHeader(
      recordCount: 1, metadataLength: 0, storedLength: 60 << 20, rawLength: 60 << 20,
      codec: .stored, firstRecord: 0, frameDistance: UInt32(FrameHeader.size), hasOrdinals: false)
    var out = ByteBuffer()
    out.append(Array(try #require(image.files[name]).prefix(Int(end.length))))
    out.appendZeros(FrameHeader.size)
    _ = header.encode(into: &out, at: Int(end.length), file: file, offset: end.length)
    if hasBlock {
      let offset = out.count
      out.appendZeros(BlockHeader.size)
      block.encode(into: &out, at: offset, file: file, offset: UInt64(offset))
    }
    let forged = try image.replacing(name, with: Array(out.bytes)).restored()
    let platform = SparsePlatform(forged, name: name, size: end.length + length)
    for isReadOnly in [true, false] {
      var configuration = Self.configuration
      configuration.isReadOnly = isReadOnly
      let store = try ChangeStore(path: StoreImage.path, configuration, platform: platform)
      #expect(try store.engine.snapshot.end == end)
      #expect(try store.verify().problems.map(\.reason) == [])
      try store.close()
    }
    #expect(platform.greatestRead <= 1 << 20)
  }

  @Test func `Hostile index pages do not trap`() throws {
    let image = try Self.image.get()
    let name = try #require(image.files.keys.filter { $0.hasSuffix(".index") }.min())
    let bytes = try #require(image.files[name])
    let file = UInt64(name.prefix(16), radix: 16)!
    for page in 0..<(bytes.count / 4_096) {
      let start = page * 4_096
      // What is behind the content is zero, and must be.
      let content = bytes[start..<(start + 4_096)].lastIndex { $0 != 0 }! + 1
      forEachChange(of: bytes, in: (start + 4)..<content, by: 31) { other, place, value in
        let checksum = other[(start + 4)..<(start + 4_096)].withUnsafeBytes {
          Checksum.bound(.page, file: file, offset: UInt64(start), $0)
        }
        other.setNumber(UInt64(checksum), width: 4, at: start)
        exercise(image.replacing(name, with: other), "\(value) at \(place)")
      }
    }
  }

  @Test func `Hostile liveness does not trap`() throws {
    let image = try Self.image.get()
    let name = try #require(image.files.keys.first { $0.hasSuffix(".liveness") })
    let bytes = try #require(image.files[name])
    let manifest = try #require(image.files["MANIFEST"])
    let generation = UInt64(name.prefix(16), radix: 16)!
    let header = 64 + 32 * Int(bytes.number(at: 48, width: 4))
    forEachChange(of: bytes, in: 12..<header, by: 8) { other, place, value in
      let checksum = other[12..<header].withUnsafeBytes {
        Checksum.bound(.liveness, file: generation, offset: 0, $0)
      }
      other.setNumber(UInt64(checksum), width: 4, at: 8)
      var named = manifest
      named.setNumber(UInt64(checksum), width: 4, at: 160)
      seal(manifest: &named)
      exercise(
        image.replacing(name, with: other).replacing("MANIFEST", with: named),
        "\(value) at \(place)")
    }
  }

  @Test func `Files of noise do not trap`() throws {
    let image = try Self.image.get()
    var random = SeededGenerator(seed: 91)
    for name in image.files.keys.sorted() {
      let size = image.files[name]!.count
      for count in [0, 1, 64, 4_096, size] {
        exercise(image.replacing(name, with: random.bytes(count)), "\(count) of \(name)")
        exercise(
          image.replacing(name, with: [UInt8](repeating: 0, count: count)), "zeros of \(name)")
      }
    }
  }

  /// Makes the checksums of a frame with one block right again.
  private func sealFrame(at start: Int, _ end: Int, of bytes: inout [UInt8], file: UInt64) {
    let block = start + 64
    let length =
      32 + Int(bytes.number(at: block + 8, width: 4))
      &+ Int(bytes.number(at: block + 12, width: 4))
    if length >= 32, block + length <= bytes.count {
      let checksum = bytes[(block + 4)..<(block + length)].withUnsafeBytes {
        Checksum.bound(.block, file: file, offset: UInt64(block), $0)
      }
      bytes.setNumber(UInt64(checksum), width: 4, at: block)
      let body = bytes[block..<(block + 4)].withUnsafeBytes { Checksum.crc($0) }
      bytes.setNumber(UInt64(body), width: 4, at: start + 52)
    }
    let header = bytes[(start + 8)..<(start + 64)].withUnsafeBytes {
      Checksum.bound(.frame, file: file, offset: UInt64(start), $0)
    }
    bytes.setNumber(UInt64(header), width: 4, at: start + 4)
  }
}

/// The files of a store.
struct StoreImage {
  static let path = "/store"
  var files: [String: [UInt8]]

  init(_ platform: some Platform) throws {
    files = [:]
    for name in try platform.list(Self.path) where name != "LOCK" {
      let file = try OpenFile(Self.path + "/" + name, .read, on: platform)
      var bytes = [UInt8](repeating: 0, count: Int(try file.size()))
      _ = try bytes.withUnsafeMutableBytes { try file.readExactly(into: $0, at: 0) }
      files[name] = bytes
    }
  }

  /// The segment that is not sealed: it has no index.
  var tail: String? {
    files.keys.filter { $0.hasSuffix(".segment") && files[$0.prefix(16) + ".index"] == nil }.max()
  }

  func replacing(_ name: String, with bytes: [UInt8]) -> StoreImage {
    var image = self
    image.files[name] = bytes
    return image
  }

  /// A file system that has these files.
  func restored() throws -> MemoryPlatform {
    let platform = MemoryPlatform()
    try platform.createDirectory(Self.path)
    for (name, bytes) in files {
      let file = try OpenFile(Self.path + "/" + name, .createNew, on: platform)
      try bytes.withUnsafeBytes { try file.writeAll($0, at: 0) }
      try file.close()
    }
    return platform
  }
}

extension [UInt8] {
  /// The little-endian number at a place.
  func number(at place: Int, width: Int = 8) -> UInt64 {
    (0..<width).reduce(0) { $0 | UInt64(self[place + $1]) << UInt64(8 * $1) }
  }

  mutating func setNumber(_ value: UInt64, width: Int, at place: Int) {
    for index in 0..<width {
      self[place + index] = UInt8(truncatingIfNeeded: value >> UInt64(8 * index))
    }
  }
}
