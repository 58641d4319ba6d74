package import AirDbLogStore

/// The bytes of a file of a store, in which a damage can be covered up: its checksum is made to
/// match, so that another check must notice, or none does.
package struct Forgery: Sendable {
  package private(set) var bytes: [UInt8]
  /// The file id of a segment or an index, the generation of a liveness file.
  private let number: UInt64

  package init(_ content: FileBytes, named name: String) {
    bytes = content.bytes
    number = UInt64(name.prefix(16), radix: 16) ?? 0
  }

  package var content: FileBytes { FileBytes(bytes) }

  package func load<T: FixedWidthInteger>(_ type: T.Type, at offset: Int) -> T {
    bytes.withUnsafeBytes { T(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: T.self)) }
  }

  package mutating func store<T: FixedWidthInteger & Sendable>(_ value: T, at offset: Int) {
    withUnsafeBytes(of: value.littleEndian) {
      bytes.replaceSubrange(offset..<offset + $0.count, with: $0)
    }
  }

  package mutating func flip(_ offset: Int, bit: Int = 0) { bytes[offset] ^= 1 << UInt8(bit) }

  private func bound(_ tag: Checksum.Tag, _ offset: Int, _ range: Range<Int>) -> UInt32 {
    bytes.withUnsafeBytes {
      Checksum.bound(
        tag, file: tag == .manifest ? 0 : number, offset: UInt64(offset),
        UnsafeRawBufferPointer(rebasing: $0[range]))
    }
  }

  // MARK: Covering up

  package mutating func sealManifest() {
    store(bound(.manifest, 0, 12..<bytes.count), at: 8)
  }

  package mutating func sealSegmentHeader() { store(bound(.segmentHeader, 0, 12..<64), at: 8) }

  package mutating func sealFrameHeader(_ frame: Int) {
    store(bound(.frame, frame, frame + 8..<frame + 64), at: frame + 4)
  }

  /// The block of a frame that has one, and no label.
  package mutating func sealBlock(ofFrame frame: Int) {
    let block = frame + 64
    let length = 32 + Int(load(UInt32.self, at: block + 8)) + Int(load(UInt32.self, at: block + 12))
    store(bound(.block, block, block + 4..<block + length), at: block)
  }

  /// The checksum over the blocks' checksums.
  package mutating func sealBody(ofFrame frame: Int) {
    let block = bytes[(frame + 64)..<(frame + 68)]
    store(Array(block).withUnsafeBytes { Checksum.crc($0) }, at: frame + 52)
  }

  package mutating func sealPage(_ page: Int) {
    let start = page * Limits.pageSize
    store(bound(.page, start, start + 4..<start + Limits.pageSize), at: start)
  }

  /// The header of a liveness file, and the bitmap of its first segment that has one.
  package mutating func sealLiveness() {
    let count = Int(load(UInt32.self, at: 48))
    for segment in 0..<count {
      let item = 64 + 32 * segment
      let offset = Int(load(UInt64.self, at: item + 16))
      guard offset > 0 else { continue }
      let size = Int((load(UInt64.self, at: item + 8) + 7) / 8)
      store(bound(.liveness, offset, offset..<offset + size), at: item + 24)
    }
    store(bound(.liveness, 0, 12..<64 + 32 * count), at: 8)
  }
}
