// Going on behind damage: for checks, which want to know all of it. Nothing that serves data does so.
extension SegmentScan {
  /// Why there is no valid frame at ``offset``.
  package enum Obstacle {
    /// A sound header that does not follow the frame before it.
    case disconnected(FrameHeader)
    /// A sound header in its place; what it says of the rest of the frame does not hold.
    case body(FrameHeader)
    /// No frame header, or a damaged one.
    case header
  }

  /// Looks at what made ``next()`` stop before `limit`, where the frames end.
  package mutating func obstacle(before limit: UInt64) throws(SystemError) -> Obstacle {
    guard let header = try headerAt(offset), isPlausible(header, at: offset, before: limit) else {
      return .header
    }
    return follows(header) ? .body(header) : .disconnected(header)
  }

  /// Whether a header that is sound in itself can be that of a frame of this segment.
  private func isPlausible(
    _ header: FrameHeader, at offset: UInt64, before limit: UInt64
  ) -> Bool {
    header.length <= limit - offset && header.length <= header.greatestLength
      && header.sequence > end.sequence && header.sequence >> 32 <= UInt64(maximumEpoch)
      && (header.kind == .commit || isSealed)
  }

  /// Takes the frame at ``offset`` for one that follows what was before.
  package mutating func connect(to header: FrameHeader) {
    end = LogEnd(
      segment: fileId, length: offset, sequence: header.sequence - 1,
      checksum: header.previousChecksum)
  }

  /// Goes on at the next place that has a sound header, or at `limit` if there is none.
  package mutating func skipToHeader(before limit: UInt64) throws(SystemError) {
    while offset < limit {
      offset += FrameHeader.alignment
      if let header = try headerAt(offset), isPlausible(header, at: offset, before: limit) {
        return connect(to: header)
      }
    }
    offset = limit
  }
}
