/// Which entries of a sealed segment are superseded, by rank.
///
/// A value in small chunks: a copy shares them, and marking an entry copies at most its chunk and
/// the list of chunks, so that each page read sees one state whatever is committed meanwhile.
package struct DeadBits: Sendable, Equatable {
  private static let wordsPerChunk = 64
  private static let bitsPerChunk: UInt64 = 4_096

  package let entryCount: UInt64
  package private(set) var count: UInt64 = 0
  /// An empty chunk has no dead entry.
  private var chunks: [[UInt64]]

  package init(entryCount: UInt64) {
    self.entryCount = entryCount
    chunks = [[UInt64]](
      repeating: [], count: Int((entryCount + Self.bitsPerChunk - 1) / Self.bitsPerChunk))
  }

  @inline(__always)
  package subscript(rank: UInt64) -> Bool {
    let chunk = chunks[Int(rank / Self.bitsPerChunk)]
    if chunk.isEmpty { return false }
    let bit = rank % Self.bitsPerChunk
    return chunk[Int(bit / 64)] >> (bit % 64) & 1 == 1
  }

  package mutating func insert(_ rank: UInt64) {
    let index = Int(rank / Self.bitsPerChunk)
    if chunks[index].isEmpty {
      chunks[index] = [UInt64](repeating: 0, count: Self.wordsPerChunk)
    }
    let bit = rank % Self.bitsPerChunk
    let mask: UInt64 = 1 << (bit % 64)
    if chunks[index][Int(bit / 64)] & mask == 0 {
      chunks[index][Int(bit / 64)] |= mask
      count += 1
    }
  }

  /// Calls `body` with the entries that are dead here and were not in `earlier`, of the same segment.
  func forEachAdded(since earlier: DeadBits, _ body: (UInt64) -> Void) {
    // What nobody changed since shares its memory, so that it is equal at a glance.
    for (index, chunk) in chunks.enumerated() where chunk != earlier.chunks[index] {
      for (place, word) in chunk.enumerated() {
        let known = earlier.chunks[index].isEmpty ? 0 : earlier.chunks[index][place]
        var added = word & ~known
        while added != 0 {
          let bit = added.trailingZeroBitCount
          body(UInt64(index) * Self.bitsPerChunk + UInt64(place * 64 + bit))
          added &= added - 1
        }
      }
    }
  }

  package mutating func remove(_ rank: UInt64) {
    guard self[rank] else { return }
    let bit = rank % Self.bitsPerChunk
    chunks[Int(rank / Self.bitsPerChunk)][Int(bit / 64)] &= ~(1 << (bit % 64))
    count -= 1
  }
}

extension DeadBits {
  /// The size of the bitmap in the file.
  package var bitmapSize: Int { Int((entryCount + 7) / 8) }

  /// Appends the bitmap (Format 9).
  package func encode(into out: inout ByteBuffer) {
    let start = out.count
    for chunk in chunks {
      if chunk.isEmpty {
        out.appendZeros(Self.wordsPerChunk * 8)
      } else {
        for word in chunk { out.append(word) }
      }
    }
    out.removeLast(out.count - start - bitmapSize)
  }

  /// Decodes a bitmap, which must have `deadCount` bits set, none of them past the last entry.
  package init(
    decoding bytes: UnsafeRawBufferPointer, entryCount: UInt64, deadCount: UInt64
  ) throws(FormatError) {
    self.init(entryCount: entryCount)
    guard bytes.count == bitmapSize else { throw FormatError("a bitmap of another size") }
    for (position, byte) in bytes.enumerated() where byte != 0 {
      for bit in 0..<8 where byte >> UInt8(bit) & 1 == 1 {
        let rank = UInt64(position * 8 + bit)
        guard rank < entryCount else {
          throw FormatError("a bit past the last entry", at: position)
        }
        insert(rank)
      }
    }
    guard count == deadCount else { throw FormatError("a wrong number of dead entries") }
  }
}
