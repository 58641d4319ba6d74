package import AirDbLogStore

/// Damage to the content of a file at rest: fault model F3. Sectors have 512 bytes; the last of a
/// file may be shorter.
package enum Rot: Sendable, Hashable {
  case flipBit(byte: UInt64, bit: Int)
  case setByte(UInt64, to: UInt8)
  case truncate(to: UInt64)
  case zeroSector(UInt64)
  case swapSectors(UInt64, UInt64)
  /// The second sector gets the content of the first.
  case duplicateSector(UInt64, onto: UInt64)
  /// A sector gets this content, as far as the file goes: an older version of itself, say.
  case replaceSector(UInt64, with: [UInt8])

  package static func sectorCount(ofSize size: UInt64) -> UInt64 {
    (size + Granularity.sectorSize - 1) / Granularity.sectorSize
  }

  package func apply(to bytes: inout FileBytes) {
    switch self {
    case .flipBit(let byte, let bit):
      let old = bytes.bytes(byte..<byte + 1)
      bytes.replace(byte, with: old.map { $0 ^ 1 << UInt8(bit) })
    case .setByte(let byte, let value):
      bytes.replace(byte, with: [value])
    case .truncate(let size):
      bytes.truncate(to: min(size, bytes.size))
    case .zeroSector(let sector):
      bytes.replaceSector(sector, with: [UInt8](repeating: 0, count: Int(Granularity.sectorSize)))
    case .swapSectors(let first, let second):
      let (a, b) = (bytes.sector(first), bytes.sector(second))
      bytes.replaceSector(first, with: b)
      bytes.replaceSector(second, with: a)
    case .duplicateSector(let source, let target):
      bytes.replaceSector(target, with: bytes.sector(source))
    case .replaceSector(let sector, let content):
      bytes.replaceSector(sector, with: content)
    }
  }
}

extension FileBytes {
  /// All bytes.
  package var bytes: [UInt8] { bytes(0..<size) }

  /// The bytes of a range, as far as the file goes.
  package func bytes(_ range: Range<UInt64>) -> [UInt8] {
    let end = min(range.upperBound, size)
    guard range.lowerBound < end else { return [] }
    return [UInt8](unsafeUninitializedCapacity: Int(end - range.lowerBound)) { buffer, count in
      count = read(into: UnsafeMutableRawBufferPointer(buffer), at: range.lowerBound)
    }
  }

  fileprivate func sector(_ index: UInt64) -> [UInt8] {
    bytes(index * Granularity.sectorSize..<(index + 1) * Granularity.sectorSize)
  }

  fileprivate mutating func replaceSector(_ index: UInt64, with content: [UInt8]) {
    replace(index * Granularity.sectorSize, with: content)
  }

  /// Overwrites bytes without making the file longer.
  fileprivate mutating func replace(_ offset: UInt64, with content: [UInt8]) {
    guard offset < size else { return }
    let kept = content.prefix(Int(min(UInt64(content.count), size - offset)))
    Array(kept).withUnsafeBytes { write($0, at: offset) }
  }
}
