import CAirDbPlatform

/// CRC-32C, plain and bound to a place (Format 1).
package enum Checksum {
  /// CRC-32C of the bytes, continued from `previous`, the value for the bytes before them.
  @inline(__always)
  package static func crc(_ bytes: UnsafeRawBufferPointer, from previous: UInt32 = 0) -> UInt32 {
    airdb_crc32c(previous, bytes.baseAddress, bytes.count)
  }

  /// The CRC-32C of what the integers' little-endian bytes add to `previous`.
  package static func crc<T: FixedWidthInteger>(_ value: T, from previous: UInt32) -> UInt32 {
    withUnsafeBytes(of: value.littleEndian) { crc($0, from: previous) }
  }

  /// A checksum that differs for the same bytes in another structure, file or offset.
  package static func bound(
    _ tag: Tag, file: UInt64, offset: UInt64, _ bytes: UnsafeRawBufferPointer
  ) -> UInt32 {
    crc(bytes, from: bound(tag, file: file, offset: offset))
  }

  /// The part of such a checksum that comes before the bytes, which ``crc(_:from:)`` adds.
  package static func bound(_ tag: Tag, file: UInt64, offset: UInt64) -> UInt32 {
    var place = (tag.rawValue.littleEndian, UInt32(0), file.littleEndian, offset.littleEndian)
    return withUnsafeMutableBytes(of: &place) { raw in
      // The tuple has four bytes of alignment after the tag; the format has none.
      let start = airdb_crc32c(0, raw.baseAddress, 4)
      return airdb_crc32c(start, raw.baseAddress! + 8, 16)
    }
  }

  /// Four ASCII characters that say what kind of structure a checksum covers.
  package enum Tag: UInt32 {
    case segmentHeader = 0x4847_4553  // "SEGH"
    case frame = 0x4D41_5246  // "FRAM"
    case block = 0x4B43_4C42  // "BLCK"
    case page = 0x4547_4150  // "PAGE"
    case liveness = 0x4556_494C  // "LIVE"
    case manifest = 0x494E_414D  // "MANI"
    case consumers = 0x534E_4F43  // "CONS"
  }
}
