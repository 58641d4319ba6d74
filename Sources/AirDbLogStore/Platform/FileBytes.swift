/// The content of a file in memory: chunks with value semantics, where an empty chunk is a hole
/// that reads as zeros. A copy shares its chunks with the original until one of them writes.
package struct FileBytes: Sendable {
  /// Small enough that a write into a shared copy stays cheap, large enough that a segment is some
  /// thousand chunks.
  package static let chunkSize = 1 << 14

  package private(set) var size: UInt64 = 0

  /// Whole chunks, but perhaps fewer than `size` spans. Bytes past `size` are zero.
  private var chunks: [[UInt8]] = []

  package init() {}

  package init(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { write($0, at: 0) }
  }

  /// Copies bytes from `offset` on into the buffer, and answers how many the file had.
  package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) -> Int {
    guard offset < size, !buffer.isEmpty else { return 0 }
    let count = Int(min(UInt64(buffer.count), size - offset))
    Self.forEachChunk(offset, count) { index, start, done, length in
      let target = UnsafeMutableRawBufferPointer(rebasing: buffer[done..<done + length])
      if index < chunks.count && !chunks[index].isEmpty {
        chunks[index].withUnsafeBytes {
          target.copyMemory(from: .init(rebasing: $0[start..<start + length]))
        }
      } else {
        target.initializeMemory(as: UInt8.self, repeating: 0)
      }
    }
    return count
  }

  /// Writes the bytes at `offset`; a gap after the old end reads as zeros.
  package mutating func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) {
    guard !bytes.isEmpty else { return }
    size = max(size, offset + UInt64(bytes.count))
    Self.forEachChunk(offset, bytes.count) { index, start, done, length in
      while chunks.count <= index { chunks.append([]) }
      if chunks[index].isEmpty { chunks[index] = [UInt8](repeating: 0, count: Self.chunkSize) }
      chunks[index].withUnsafeMutableBytes {
        UnsafeMutableRawBufferPointer(rebasing: $0[start..<start + length])
          .copyMemory(from: .init(rebasing: bytes[done..<done + length]))
      }
    }
  }

  /// Sets the size: cuts, or grows with zeros.
  package mutating func truncate(to newSize: UInt64) {
    defer { size = newSize }
    guard newSize < size else { return }
    let kept = Int(newSize / UInt64(Self.chunkSize))
    let tail = Int(newSize % UInt64(Self.chunkSize))
    if chunks.count > kept + 1 { chunks.removeSubrange((kept + 1)...) }
    // Growing again must find zeros there.
    if kept < chunks.count && !chunks[kept].isEmpty {
      for index in tail..<Self.chunkSize { chunks[kept][index] = 0 }
    }
  }

  /// Calls `body` for each chunk of a range: its index, the first byte in it, the bytes before it
  /// in the range, and the number of bytes in it.
  private static func forEachChunk(
    _ offset: UInt64, _ count: Int,
    _ body: (_ index: Int, _ start: Int, _ done: Int, _ length: Int) -> Void
  ) {
    var done = 0
    while done < count {
      let position = offset + UInt64(done)
      let start = Int(position % UInt64(chunkSize))
      let length = min(chunkSize - start, count - done)
      body(Int(position / UInt64(chunkSize)), start, done, length)
      done += length
    }
  }
}
