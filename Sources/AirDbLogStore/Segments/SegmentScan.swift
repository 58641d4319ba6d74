/// Walks the frames of a segment and finds where the log ends in it (Recovery 3).
package struct SegmentScan {
  /// What a frame must connect to: the last frame before it in the log.
  package var end: LogEnd
  /// The segment, and where its next frame starts.
  package let fileId: UInt64
  package internal(set) var offset: UInt64
  /// What all frame headers found say, valid in their place or not.
  package private(set) var evidence = Evidence()

  private let file: OpenFile
  private let fileSize: UInt64
  let maximumEpoch: UInt32
  /// Only sealed segments have packed frames.
  let isSealed: Bool
  /// Of the frames so far: a segment has one kind of them.
  var kind: FrameHeader.Kind?
  private var buffer = ReadBuffer()

  /// Starts behind the header of a segment.
  package init(
    _ file: OpenFile, fileId: UInt64, size: UInt64, after end: LogEnd, maximumEpoch: UInt32,
    isSealed: Bool = false
  ) {
    self.file = file
    self.fileId = fileId
    fileSize = size
    self.end = end
    self.maximumEpoch = maximumEpoch
    self.isSealed = isSealed
    offset = UInt64(SegmentHeader.size)
  }

  /// Starts again at a frame boundary that an earlier scan reached.
  package mutating func seek(to offset: UInt64) { self.offset = offset }

  /// Goes to a frame boundary: what follows it must connect to the frame that the boundary is behind.
  package mutating func seek(to boundary: FrameMap.Boundary) {
    offset = boundary.offset
    end = LogEnd(
      segment: fileId, length: offset, sequence: boundary.sequence, checksum: boundary.checksum)
  }

  /// What frame headers say about commits that may not be there any more.
  package struct Evidence: Equatable {
    /// The greatest watermark: commits up to it were durable.
    package var watermark: UInt64 = 0
    /// The greatest sequence.
    package var sequence: UInt64 = 0

    package init() {}

    package mutating func add(_ header: FrameHeader) {
      watermark = max(watermark, header.durableSequence)
      sequence = max(sequence, header.sequence)
    }

    package mutating func add(_ other: Evidence) {
      watermark = max(watermark, other.watermark)
      sequence = max(sequence, other.sequence)
    }
  }

  /// A valid frame.
  package struct Frame {
    package var header: FrameHeader
    package var offset: UInt64
    /// The whole frame. Valid until the next call to the scan.
    package var bytes: UnsafeRawBufferPointer
  }

  /// The next valid frame, or nil where the log ends in this segment.
  package mutating func next() throws(SystemError) -> Frame? {
    guard let header = try peek(), let length = Int(exactly: header.length) else { return nil }
    // A frame is read whole at once, but for a very large one: that is read in pieces, until it has
    // proved to be what its length says, and then again.
    if length <= ReadBuffer.unproved { _ = try buffer.read(file, at: offset, count: length) }
    guard try bodyHolds(header) else { return nil }
    let bytes = try buffer.read(file, at: offset, count: length)
    guard bytes.count == length else { return nil }
    let frame = Frame(header: header, offset: offset, bytes: bytes)
    skip(header)
    return frame
  }

  /// The header of the next frame, checked in itself and against the frame before it; nil where the
  /// log ends in this segment. The rest of the frame has not been looked at.
  package mutating func peek() throws(SystemError) -> FrameHeader? {
    guard let header = try headerAt(offset), fits(header) else { return nil }
    return header
  }

  /// Passes over the frame that ``peek()`` has found.
  package mutating func skip(_ header: FrameHeader) {
    evidence.add(header)
    kind = header.kind
    offset += header.length
    end = LogEnd(
      segment: fileId, length: offset, sequence: header.sequence, checksum: header.checksum)
  }

  mutating func headerAt(_ offset: UInt64) throws(SystemError) -> FrameHeader? {
    guard offset + UInt64(FrameHeader.size) <= fileSize else { return nil }
    let bytes = try buffer.read(file, at: offset, count: FrameHeader.size)
    return try? FrameHeader.decode(bytes, file: fileId, offset: offset)
  }

  private func fits(_ header: FrameHeader) -> Bool {
    follows(header) && header.length <= fileSize - offset
      && header.length <= header.greatestLength
  }

  /// Whether a frame connects to the one before it.
  func follows(_ header: FrameHeader) -> Bool {
    let epoch = header.sequence >> 32
    let counter = header.sequence & 0xFFFF_FFFF
    if let kind, kind != header.kind { return false }
    let follows =
      switch header.kind {
      case .commit:
        header.sequence == end.sequence &+ 1 && counter != 0
          || epoch > end.sequence >> 32 && counter == 1
      case .packed: isSealed && header.sequence > end.sequence
      }
    return follows && epoch <= UInt64(maximumEpoch) && header.previousChecksum == end.checksum
  }

  /// Checks what the header says about the rest of the frame: the blocks' lengths and checksums, the
  /// body checksum, the padding. What else the blocks' headers say is content, which no crash writes
  /// wrong. Takes no more memory than the buffer has.
  private mutating func bodyHolds(_ header: FrameHeader) throws(SystemError) -> Bool {
    var position = UInt64(header.bodyStart)
    guard position <= header.length,
      var crc = try checksum(from: UInt64(FrameHeader.size), to: position, after: 0)
    else { return false }
    for _ in 0..<header.blockCount {
      let start = offset + position
      let left = header.length - position
      let head = try buffer.read(
        file, at: start, count: Int(min(UInt64(BlockHeader.size), left)))
      guard let length = BlockHeader.statedLength(head), length <= left else { return false }
      let stated = head.load(UInt32.self, at: 0)
      let prefix = Checksum.bound(.block, file: fileId, offset: start)
      guard
        try checksum(from: position + 4, to: position + length, after: prefix) == stated
      else { return false }
      crc = Checksum.crc(stated, from: crc)
      position += length
    }
    guard crc == header.bodyChecksum, header.length - position < 8 else { return false }
    let count = Int(header.length - position)
    let padding = try buffer.read(file, at: offset + position, count: count)
    return padding.count == count && padding.isZero
  }

  /// The checksum of a part of the frame at ``offset``, continued; nil if the file ends before it.
  private mutating func checksum(
    from start: UInt64, to end: UInt64, after previous: UInt32
  ) throws(SystemError) -> UInt32? {
    var crc = previous
    var position = start
    while position < end {
      let count = Int(min(UInt64(ReadBuffer.capacity), end - position))
      let bytes = try buffer.read(file, at: offset + position, count: count)
      guard bytes.count == count else { return nil }
      crc = Checksum.crc(bytes, from: crc)
      position += UInt64(count)
    }
    return crc
  }

  /// What lies behind the last valid frame.
  package struct Rest {
    /// Whether there is anything but zeros.
    package var isDirty = false
    /// The offset behind the last byte that is not zero, or the end of the log.
    package var dirtyEnd: UInt64
  }

  /// Looks at what lies behind the end of the log: bytes other than zeros, and *witnesses*, frame
  /// headers that say what had been durable when they were written. They go into ``evidence``.
  package mutating func examineRest() throws(SystemError) -> Rest {
    var rest = Rest(dirtyEnd: offset)
    let chunk = 256 << 10
    var position = offset
    while position < fileSize {
      let count = Int(min(UInt64(chunk + FrameHeader.size), fileSize - position))
      let bytes = try buffer.read(file, at: position, count: count)
      if bytes.isEmpty { break }
      let step = min(chunk, bytes.count)
      if !UnsafeRawBufferPointer(rebasing: bytes[..<step]).isZero {
        rest.isDirty = true
        var last = step
        while last > 0, bytes[last - 1] == 0 { last -= 1 }
        rest.dirtyEnd = position + UInt64(last)
        var place = 0
        while place < step, place + FrameHeader.size <= bytes.count {
          if bytes.load(UInt32.self, at: place) == FrameHeader.magic {
            let candidate = UnsafeRawBufferPointer(rebasing: bytes[place...])
            if let header = try? FrameHeader.decode(
              candidate, file: fileId, offset: position + UInt64(place))
            {
              evidence.add(header)
            }
          }
          place += 8
        }
      }
      position += UInt64(step)
    }
    return rest
  }
}

/// Reads ahead, so that small frames do not cost a system call each.
private struct ReadBuffer {
  /// What it has room for, but for a while after something larger was read.
  static let capacity = 256 << 10
  /// The most that is read of a frame for what its header says alone: frames of compactions have less.
  static let unproved = 2 << 20

  private var storage = Storage(capacity: capacity)
  private var start: UInt64 = 0
  private var count = 0

  private final class Storage {
    let memory: UnsafeMutableRawBufferPointer
    init(capacity: Int) { memory = .allocate(byteCount: capacity, alignment: 16) }
    deinit { memory.deallocate() }
  }

  /// `count` bytes at `offset`, fewer at the end of the file. Valid until the next call.
  mutating func read(
    _ file: OpenFile, at offset: UInt64, count wanted: Int
  ) throws(SystemError) -> UnsafeRawBufferPointer {
    if offset >= start, offset - start <= UInt64(count),
      wanted <= count - Int(offset - start)
    {
      return slice(at: offset, count: wanted)
    }
    let room = max(wanted, Self.capacity)
    keep(from: offset, room: room)
    let rest = UnsafeMutableRawBufferPointer(rebasing: storage.memory[count..<room])
    count += try file.readExactly(into: rest, at: offset + UInt64(count))
    return slice(at: offset, count: min(wanted, count))
  }

  /// Makes room for so many bytes at `offset`. What is there of them stays.
  private mutating func keep(from offset: UInt64, room: Int) {
    let isThere = offset >= start && offset - start < UInt64(count)
    let first = isThere ? Int(offset - start) : count
    let kept = UnsafeRawBufferPointer(rebasing: storage.memory[first..<count])
    if room > storage.memory.count || room < storage.memory.count / 16 {
      let larger = Storage(capacity: room)
      larger.memory.copyMemory(from: kept)
      storage = larger
    } else {
      // Copies as if there were a buffer between, where they overlap.
      storage.memory.copyMemory(from: kept)
    }
    start = offset
    count = kept.count
  }

  private func slice(at offset: UInt64, count: Int) -> UnsafeRawBufferPointer {
    let from = Int(offset - start)
    return UnsafeRawBufferPointer(rebasing: storage.memory[from..<(from + count)])
  }
}
