#if canImport(Compression)
  import Compression
#else
  import CLZ4
#endif

/// LZ4 blocks, the raw block format (Format 6): liblz4 on Linux, the Compression framework on
/// Apple platforms.
package enum Lz4 {
  /// Compresses `source` into `target`: the number of bytes, or nil if they do not fit.
  package static func compress(
    _ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
  ) -> Int? {
    guard source.count > 0, target.count > 0 else { return nil }
    #if canImport(Compression)
      let size = compression_encode_buffer(
        target.baseAddress!.assumingMemoryBound(to: UInt8.self), target.count,
        source.baseAddress!.assumingMemoryBound(to: UInt8.self), source.count, nil,
        COMPRESSION_LZ4_RAW)
      return size > 0 ? size : nil
    #else
      guard let sourceCount = Int32(exactly: source.count) else { return nil }
      let size = LZ4_compress_default(
        source.baseAddress!.assumingMemoryBound(to: CChar.self),
        target.baseAddress!.assumingMemoryBound(to: CChar.self), sourceCount,
        Int32(clamping: target.count))
      return size > 0 ? Int(size) : nil
    #endif
  }

  /// Decompresses a block that must give exactly `target.count` bytes less ``slack``. False if it
  /// does not; the target's content is then undefined.
  package static func decompress(
    _ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
  ) -> Bool {
    let expected = target.count - slack
    guard source.count > 0, expected > 0 else { return false }
    #if canImport(Compression)
      // On overflow this answers the size of the target, so that truncation would look like
      // success: hence the one byte more.
      let size = compression_decode_buffer(
        target.baseAddress!.assumingMemoryBound(to: UInt8.self), target.count,
        source.baseAddress!.assumingMemoryBound(to: UInt8.self), source.count, nil,
        COMPRESSION_LZ4_RAW)
      return size == expected
    #else
      guard let sourceCount = Int32(exactly: source.count) else { return false }
      let size = LZ4_decompress_safe(
        source.baseAddress!.assumingMemoryBound(to: CChar.self),
        target.baseAddress!.assumingMemoryBound(to: CChar.self), sourceCount,
        Int32(clamping: target.count))
      return Int(size) == expected
    #endif
  }

  /// Decompresses the first `count` bytes of a block, or all of it, as ``decompress(_:into:)`` does:
  /// how many bytes there are then, or nil. What comes behind them is not looked at.
  ///
  /// Whatever the block says, no byte of the answer is what the memory held before: where a match is
  /// at distance 0, a decoder that stops early copies bytes onto themselves.
  package static func decompress(
    _ source: UnsafeRawBufferPointer, upTo count: Int, into target: UnsafeMutableRawBufferPointer
  ) -> Int? {
    let whole = target.count - slack
    #if !canImport(Compression)
      if count > 0, count < whole, source.count > 0, let sourceCount = Int32(exactly: source.count),
        let wanted = Int32(exactly: count)
      {
        let start = UnsafeMutableRawBufferPointer(rebasing: target[..<count])
        start.initializeMemory(as: UInt8.self, repeating: 0)
        let size = LZ4_decompress_safe_partial(
          source.baseAddress!.assumingMemoryBound(to: CChar.self),
          start.baseAddress!.assumingMemoryBound(to: CChar.self), sourceCount, wanted, wanted)
        return size == wanted ? count : nil
      }
    #endif
    return decompress(source, into: target) ? whole : nil
  }

  /// How many bytes more than the content a target for ``decompress(_:into:)`` must have.
  package static let slack = 1
}
