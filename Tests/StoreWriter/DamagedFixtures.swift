import AirDbLogStore
import Foundation
import TestSupport

extension Fixture {
  static func damaged() throws -> [Fixture] {
    let closed = try history(seed: 10, batches: 4)
    try closed.close()
    let unclosed = try history(seed: 11, batches: 4)
    return try tail(unclosed) + derived(closed) + log(closed, unclosed) + manifest(closed)
      + compaction()
  }

  // MARK: Compaction

  private static func compaction() throws -> [Fixture] {
    let store = try history(seed: 14, batches: 9)
    let before = try store.image()
    try store.compact()
    let after = try store.image()

    let old = Set(before.names(in: path))
    let packed = after.names(in: path).first { $0.hasSuffix(".segment") && !old.contains($0) }!
    let index = packed.replacingOccurrences(of: ".segment", with: ".index")
    func fixture(_ name: String, _ what: String, _ image: SimulatedFileSystem) -> Fixture {
      Fixture(name: name, what: what, records: store.records, image: image)
    }
    return [
      Fixture(
        name: "packed-flipped", what: "a bit of a payload in a packed frame", outcome: .damaged,
        code: "corrupt", file: packed, image: after.flipping(packed, at: 500)),
      Fixture(
        name: "packed-index-absent", what: "the index of a packed segment is missing",
        outcome: .derived, file: index, records: store.records, image: try after.removing(index)),
      fixture(
        "compaction-inputs", "what a crash leaves after a compaction's manifest: the old files",
        try after.addingFiles(of: before)),
      fixture(
        "compaction-output", "what a crash leaves before a compaction's manifest: the new files",
        try before.addingFiles(of: after)),
    ]
  }

  // MARK: What a power loss leaves

  private static func tail(_ store: FixtureStore) throws -> [Fixture] {
    let image = try store.image()
    let (segment, bytes) = lastSegment(image)
    // Half a frame behind the last one.
    var torn = try Array(bytes[..<store.end])
    let garbage = Array("AFRM".utf8) + [UInt8](repeating: 0xA5, count: 196)
    torn += garbage
    return [
      Fixture(
        name: "torn-tail", what: "bytes of a frame that was never completed, behind the log",
        outcome: .recovered, file: segment, discardedBytes: UInt64(garbage.count),
        records: store.records, image: try image.replacing(segment, with: torn)),
      Fixture(
        name: "orphans", what: "what a crash in the middle of a seal leaves",
        records: store.records,
        image: try image.adding("MANIFEST.new", [1, 2, 3])
          .adding("0000000000000001.index.new", [4, 5, 6])
          .adding("0000000000000011.segment.new", [7, 8, 9])),
    ]
  }

  // MARK: Derived data

  private static func derived(_ store: FixtureStore) throws -> [Fixture] {
    let image = try store.image()
    let index = "0000000000000001.index"
    let liveness = image.names(in: path).first { $0.hasSuffix(".liveness") }!
    func fixture(_ name: String, _ what: String, _ file: String, _ image: SimulatedFileSystem)
      -> Fixture
    {
      Fixture(
        name: name, what: what, outcome: .derived, file: file, records: store.records,
        image: image)
    }
    return [
      fixture("index-flipped", "a bit of an index", index, image.flipping(index, at: 5000)),
      fixture(
        "index-header", "a bit of an index's first page", index, image.flipping(index, at: 72)),
      fixture("index-absent", "an index is missing", index, try image.removing(index)),
      fixture("liveness-flipped", "a bit of liveness", liveness, image.flipping(liveness, at: 40)),
      fixture("liveness-absent", "no liveness file", liveness, try image.removing(liveness)),
    ]
  }

  // MARK: The log

  private static func log(
    _ closed: FixtureStore, _ unclosed: FixtureStore
  ) throws -> [Fixture] {
    let image = try closed.image()
    let first = "0000000000000001.segment"
    let (last, bytes) = lastSegment(image)
    let (tail, _) = lastSegment(try unclosed.image())
    func refused(_ name: String, _ what: String, _ file: String, _ image: SimulatedFileSystem)
      -> Fixture
    {
      Fixture(
        name: name, what: what, outcome: .refused, code: "corrupt", file: file, image: image)
    }
    return [
      Fixture(
        name: "sealed-flipped", what: "a bit of a payload in a sealed segment", outcome: .damaged,
        code: "corrupt", file: first, image: image.flipping(first, at: 500)),
      refused(
        "sealed-cut", "a sealed segment is shorter than listed", first,
        try image.replacing(first, with: Array(image.bytes(first).prefix(600)))),
      refused("sealed-absent", "a sealed segment is missing", first, try image.removing(first)),
      refused(
        "closed-cut", "the last frame of a closed store is gone", last,
        try image.replacing(last, with: Array(bytes.dropLast(8)))),
      refused(
        "durable-flipped", "a bit of a frame in the tail that a later one calls durable", tail,
        try unclosed.image().flipping(tail, at: 140)),
    ]
  }

  // MARK: The manifest

  private static func manifest(_ store: FixtureStore) throws -> [Fixture] {
    let image = try store.image()
    let name = "MANIFEST"
    func refused(
      _ fixture: String, _ what: String, _ image: SimulatedFileSystem, code: String = "corrupt"
    ) -> Fixture {
      Fixture(
        name: fixture, what: what, outcome: .refused, code: code, file: name, image: image)
    }
    return [
      refused("manifest-flipped", "a bit of the manifest", image.flipping(name, at: 100)),
      refused("manifest-absent", "no manifest beside segments", try image.removing(name)),
      refused(
        "newer-version", "a format version of the future",
        try image.patchingManifest(at: 12, to: UInt32(2)), code: "unsupportedFormat"),
      refused(
        "unknown-feature", "a required feature that nobody knows",
        try image.patchingManifest(at: 64, to: UInt64(1) << 63), code: "unsupportedFormat"),
    ]
  }

  private static func lastSegment(_ image: SimulatedFileSystem) -> (name: String, bytes: [UInt8]) {
    let name = image.names(in: path).last { $0.hasSuffix(".segment") }!
    return (name, image.bytes(name))
  }
}

extension SimulatedFileSystem {
  fileprivate func bytes(_ name: String) -> [UInt8] {
    content(of: "\(Fixture.path)/\(name)")!.bytes
  }

  /// A copy with one bit of a file flipped.
  func flipping(_ name: String, at byte: UInt64) -> SimulatedFileSystem {
    precondition(byte < bytes(name).count, "\(name) has no byte \(byte)")
    return damaged("\(Fixture.path)/\(name)", .flipBit(byte: byte, bit: 3))
  }

  /// A copy in which a file has other content, or is there at all.
  fileprivate func replacing(_ name: String, with bytes: [UInt8]) throws -> SimulatedFileSystem {
    let copy = copy()
    try copy.install(FileBytes(bytes), at: "\(Fixture.path)/\(name)")
    return copy.copy()
  }

  func adding(_ name: String, _ bytes: [UInt8]) throws -> SimulatedFileSystem {
    try replacing(name, with: bytes)
  }

  /// A copy with the files that only another image has.
  fileprivate func addingFiles(of other: SimulatedFileSystem) throws -> SimulatedFileSystem {
    let own = Set(names(in: Fixture.path))
    return try other.names(in: Fixture.path).filter { !own.contains($0) }
      .reduce(self) { try $0.adding($1, other.bytes($1)) }
  }

  fileprivate func removing(_ name: String) throws -> SimulatedFileSystem {
    let copy = copy()
    try copy.remove("\(Fixture.path)/\(name)")
    return copy
  }

  /// A copy with another value in the manifest, under a right checksum.
  fileprivate func patchingManifest<Value: FixedWidthInteger>(
    at offset: Int, to value: Value
  ) throws -> SimulatedFileSystem {
    var bytes = bytes("MANIFEST")
    bytes.withUnsafeMutableBytes { raw in
      raw.storeBytes(of: value.littleEndian, toByteOffset: offset, as: Value.self)
      let checksum = Checksum.bound(
        .manifest, file: 0, offset: 0, UnsafeRawBufferPointer(rebasing: raw[12...]))
      raw.storeBytes(of: checksum.littleEndian, toByteOffset: 8, as: UInt32.self)
    }
    return try replacing("MANIFEST", with: bytes)
  }
}
