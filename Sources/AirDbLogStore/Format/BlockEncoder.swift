package import HlcText

/// Encodes the records of one frame into blocks (Format 6), reusing its buffers.
///
/// Add records in order; whenever the block is full it is appended to the frame. The placement of
/// each record is known when its block is started: blocks do not depend on what follows them.
package struct BlockEncoder: ~Copyable {
  private var rows = ByteBuffer(capacity: 16 << 10)
  private var payloads = ByteBuffer(capacity: 16 << 10)
  private var collections = ByteTable()
  private var nodes = ByteTable()
  private var authors = ByteTable()
  private var shapes: [HlcShape] = []
  private var lastPhysical: UInt64 = 0
  private var recordCount: UInt32 = 0
  private var firstRecord: UInt32 = 0
  private var blockCount: UInt32 = 0
  private var hasOrdinals = false

  /// Raw payload bytes at which a block is closed.
  private let target: Int

  package init(target: Int) {
    self.target = target
  }

  /// Where a record was put.
  package struct Place {
    /// Which block of the frame; its offset is known once it has been written.
    package var block: UInt32
    package var slot: UInt8
  }

  /// Forgets what a frame that came to nothing left behind.
  package mutating func reset() {
    clearBlock()
    firstRecord = 0
    blockCount = 0
    rows.shrink(toCapacity: 64 << 10)
    payloads.shrink(toCapacity: 1 << 20)
  }

  private mutating func clearBlock() {
    rows.removeAll()
    payloads.removeAll()
    collections.removeAll()
    nodes.removeAll()
    authors.removeAll()
    shapes.removeAll(keepingCapacity: true)
    lastPhysical = 0
    recordCount = 0
  }

  /// Adds a record. `frame` is where the frame's bytes go, at `frameStart` of it. All records of a
  /// packed frame have an ordinal, others have none.
  package mutating func add(
    _ record: RecordBytes, parts: HlcParts, contentChecksum: UInt32, ordinal: UInt32? = nil,
    to frame: inout ByteBuffer, frameStart: Int, file: UInt64, frameOffset: UInt64,
    offsets: inout [UInt64]
  ) -> Place {
    // A payload above the target has a block of its own.
    if recordCount > 0, payloads.count + record.payload.count > target {
      finishBlock(
        into: &frame, frameStart: frameStart, file: file, frameOffset: frameOffset,
        offsets: &offsets)
    }
    let place = Place(block: blockCount, slot: UInt8(truncatingIfNeeded: recordCount))
    addRow(record, parts: parts, contentChecksum: contentChecksum)
    hasOrdinals = ordinal != nil
    if let ordinal { rows.appendVarint(UInt64(ordinal)) }
    payloads.append(record.payload)
    recordCount += 1
    if payloads.count >= target || metadataSize >= 2 * target
      || recordCount == UInt32(Limits.recordsPerBlock)
    {
      finishBlock(
        into: &frame, frameStart: frameStart, file: file, frameOffset: frameOffset,
        offsets: &offsets)
    }
    return place
  }

  /// Of rows and tables: large ids, keys or nodes must not make a block that costs a reader of one
  /// record megabytes.
  private var metadataSize: Int {
    rows.count + collections.size + nodes.size + authors.size + shapes.count * HlcShape.size
  }

  private mutating func addRow(_ record: RecordBytes, parts: HlcParts, contentChecksum: UInt32) {
    var packed: (UInt64, UInt64) = (0, 0)
    let form = PackedUuid.pack(record.id, into: &packed)
    let explicitType = record.type < 0 || record.type > 2
    rows.append(
      form.rawValue | (record.author == nil ? 0 : 4) | (record.signature == nil ? 0 : 8)
        | (explicitType ? 3 : UInt8(record.type)) << 4)
    if explicitType { rows.appendZigzag(record.type) }
    rows.appendVarint(UInt64(collections.index(of: record.collection)))
    rows.append(contentChecksum)
    if form == .text {
      rows.appendVarint(UInt64(record.id.count))
      rows.append(record.id)
    } else {
      rows.append(packed.0.bigEndian)
      rows.append(packed.1.bigEndian)
    }
    addHlc(record.hlc, parts)
    if let author = record.author { rows.appendVarint(UInt64(authors.index(of: author))) }
    if let signature = record.signature {
      rows.appendVarint(UInt64(signature.count))
      rows.append(signature)
    }
    rows.appendVarint(UInt64(record.payload.count))
  }

  private mutating func addHlc(_ text: UnsafeRawBufferPointer, _ parts: HlcParts) {
    guard let shape = hlcShape(of: text.assumingMemoryBound(to: UInt8.self), parts: parts) else {
      rows.appendVarint(0)
      rows.appendVarint(UInt64(text.count))
      rows.append(text)
      return
    }
    let index: Int
    if let known = shapes.lastIndex(of: shape) {
      index = known
    } else {
      index = shapes.count
      shapes.append(shape)
    }
    rows.appendVarint(UInt64(index + 1))
    rows.appendZigzag(Int64(bitPattern: parts.physical &- lastPhysical))
    lastPhysical = parts.physical
    rows.appendVarint(parts.counter)
    if shape.separator2 != 0 {
      let node = UnsafeRawBufferPointer(rebasing: text[parts.nodeStart...])
      rows.appendVarint(UInt64(nodes.index(of: node)))
    }
  }

  /// Writes the block that is under way, if there is one, and answers how many blocks the frame
  /// has. `offsets` receives the offset in the file of each block.
  package mutating func finishFrame(
    into frame: inout ByteBuffer, frameStart: Int, file: UInt64, frameOffset: UInt64,
    offsets: inout [UInt64]
  ) -> UInt32 {
    if recordCount > 0 {
      finishBlock(
        into: &frame, frameStart: frameStart, file: file, frameOffset: frameOffset,
        offsets: &offsets)
    }
    let count = blockCount
    reset()
    return count
  }

  private mutating func finishBlock(
    into frame: inout ByteBuffer, frameStart: Int, file: UInt64, frameOffset: UInt64,
    offsets: inout [UInt64]
  ) {
    let start = frame.count
    let distance = start - frameStart
    frame.appendZeros(BlockHeader.size)
    collections.encode(into: &frame)
    frame.appendVarint(UInt64(shapes.count))
    for shape in shapes { shape.encode(into: &frame) }
    nodes.encode(into: &frame)
    authors.encode(into: &frame)
    frame.append(rows.bytes)
    let metadata = frame.count - start - BlockHeader.size
    let raw = payloads.count
    var stored = raw
    var codec = BlockHeader.Codec.stored
    if raw >= BlockHeader.leastToCompress {
      let room = frame.append(uninitialized: raw - 1)
      if let size = Lz4.compress(payloads.bytes, into: room) {
        frame.removeLast(raw - 1 - size)
        stored = size
        codec = .lz4
      } else {
        frame.removeLast(raw - 1)
      }
    }
    if codec == .stored { frame.append(payloads.bytes) }
    let header = BlockHeader(
      recordCount: recordCount, metadataLength: UInt32(metadata), storedLength: UInt32(stored),
      rawLength: UInt32(raw), codec: codec, firstRecord: firstRecord,
      frameDistance: UInt32(distance), hasOrdinals: hasOrdinals)
    let offset = frameOffset + UInt64(distance)
    header.encode(into: &frame, at: start, file: file, offset: offset)
    offsets.append(offset)
    firstRecord += recordCount
    blockCount += 1
    clearBlock()
  }
}

/// Distinct byte strings in order of first use.
private struct ByteTable: ~Copyable {
  private var bytes = ByteBuffer(capacity: 512)
  private var ends: [Int] = []
  /// Of each item its beginning and its length, in one number.
  private var tags: [UInt64] = []

  var size: Int { bytes.count }

  mutating func removeAll() {
    bytes.removeAll()
    ends.removeAll(keepingCapacity: true)
    tags.removeAll(keepingCapacity: true)
  }

  /// The index of an item, which is added if it is new. Linear: a block has few distinct ones.
  mutating func index(of item: UnsafeRawBufferPointer) -> Int {
    let tag =
      item.load(at: 0, width: min(item.count, 8)) &+ UInt64(item.count) &* 0x9E37_79B9_7F4A_7C15
    var index = tags.count - 1
    while index >= 0 {
      if tags[index] == tag {
        let start = index == 0 ? 0 : ends[index - 1]
        if UnsafeRawBufferPointer(rebasing: bytes.bytes[start..<ends[index]]).equals(item) {
          return index
        }
      }
      index -= 1
    }
    bytes.append(item)
    ends.append(bytes.count)
    tags.append(tag)
    return ends.count - 1
  }

  func encode(into out: inout ByteBuffer) {
    out.appendVarint(UInt64(ends.count))
    var start = 0
    for end in ends {
      out.appendVarint(UInt64(end - start))
      out.append(UnsafeRawBufferPointer(rebasing: bytes.bytes[start..<end]))
      start = end
    }
  }
}

extension HlcShape {
  /// The size of a shape in the format.
  static let size = 6

  fileprivate func encode(into out: inout ByteBuffer) {
    out.append(kind)
    out.append(physicalDigits)
    out.append(separator1)
    out.append(counterDigits)
    out.append(counterIsUpper)
    out.append(separator2)
  }
}
