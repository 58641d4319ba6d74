internal import HlcText

/// Writes a segment of packed frames: what a compaction keeps of the segments it replaces.
///
/// Records are added in order of arrival, a commit at a time. Bounded memory: a frame is written
/// whenever enough has been gathered.
struct PackedWriter: ~Copyable {
  let fileId: UInt64
  /// The rows of what has been written.
  let log: RowLog
  /// Behind the last frame.
  private(set) var end: LogEnd
  private let engine: Engine
  private let header: SegmentHeader
  /// Nil until something is written, so that nothing takes no space.
  private var file: OpenFile?
  private var encoder: BlockEncoder
  private var bytes = ByteBuffer(capacity: 64 << 10)
  private var pending: [Pending] = []
  private var pendingBytes = 0
  /// Of the decoded blocks that hold what is pending.
  private var heldBytes = 0
  private var transactions: [Transaction] = []

  /// A record to be written, and its commit.
  struct Pending {
    var block: DecodedBlock
    var slot: Int
  }

  /// Raw bytes, records, and bytes of the blocks that hold them, at which a frame is written.
  private let frameBytes: Int
  private static let frameRecords = 8_192
  private let frameHeldBytes: Int

  /// Records added so far.
  private(set) var rowCount = 0

  /// `predecessor` is the header of the first of the replaced segments.
  init(
    _ engine: Engine, fileId: UInt64, predecessor: SegmentHeader, firstSequence: UInt64
  ) throws(LogStoreError) {
    self.engine = engine
    self.fileId = fileId
    // In proportion to the segments, since where these are small so is the heap.
    let segmentBytes = Int(clamping: engine.options.segmentBytes)
    frameBytes = min(max(segmentBytes / 8, 256 << 10), 1 << 20)
    frameHeldBytes = min(max(segmentBytes / 4, 256 << 10), 4 << 20)
    log = RowLog(fileId: fileId, base: 0, isOrdered: false)
    encoder = BlockEncoder(target: engine.options.blockBytes)
    end = LogEnd(
      segment: fileId, length: UInt64(SegmentHeader.size), sequence: firstSequence - 1,
      checksum: predecessor.predecessorChecksum)
    header = SegmentHeader(
      storeId: predecessor.storeId, fileId: fileId, predecessor: predecessor.predecessor,
      predecessorLength: predecessor.predecessorLength,
      predecessorChecksum: predecessor.predecessorChecksum)
  }

  private var path: String { engine.directory.segment(fileId) }

  private mutating func openFile() throws(LogStoreError) -> OpenFile {
    if let file { return file }
    let header = header
    let directory = engine.directory
    let path = path
    let created = try Checkpoint.attempt("create a segment", path) { () throws(SystemError) in
      let file = try directory.open(path, .createNew)
      try withBytes(of: header.encode()) { (bytes) throws(SystemError) in
        try file.writeAll(bytes, at: 0)
      }
      return file
    }
    file = created
    return created
  }

  /// Adds what is kept of a commit: records of one block after the other.
  mutating func add(
    _ transaction: Transaction, _ block: DecodedBlock, _ slot: Int
  ) throws(LogStoreError) {
    if transactions.last?.sequence == transaction.sequence {
      transactions[transactions.count - 1].recordCount += 1
    } else {
      // A frame holds whole commits, so that each has one place.
      if pendingBytes >= frameBytes || pending.count >= Self.frameRecords
        || heldBytes >= frameHeldBytes
      {
        try flush()
      }
      var transaction = transaction
      transaction.recordCount = 1
      transactions.append(transaction)
    }
    if pending.last?.block !== block { heldBytes += block.cost }
    pending.append(Pending(block: block, slot: slot))
    rowCount += 1
    pendingBytes += block.payloadCount(slot) + 128
  }

  /// Writes the frame that has been gathered.
  private mutating func flush() throws(LogStoreError) {
    guard !pending.isEmpty, let last = transactions.last else { return }
    bytes.removeAll()
    bytes.appendZeros(FrameHeader.size)
    TransactionTable.encode(transactions, into: &bytes)
    let tableLength = bytes.count - FrameHeader.size
    var body = Checksum.crc(UnsafeRawBufferPointer(rebasing: bytes.bytes[FrameHeader.size...]))
    var offsets: [UInt64] = []
    var places: [BlockEncoder.Place] = []
    for record in pending {
      places.append(try encode(record, &offsets))
    }
    let position = end.length
    let blockCount = encoder.finishFrame(
      into: &bytes, frameStart: 0, file: fileId, frameOffset: position, offsets: &offsets)
    for offset in offsets {
      body = Checksum.crc(bytes.bytes.load(UInt32.self, at: Int(offset - position)), from: body)
    }
    bytes.pad(to: 8)
    var header = FrameHeader(
      length: UInt64(bytes.count), sequence: last.sequence, durableSequence: last.sequence,
      commitDate: last.date, recordCount: UInt32(pending.count), blockCount: blockCount,
      previousChecksum: end.checksum, bodyChecksum: body, asksPowerLoss: false, labelLength: 0)
    header.kind = .packed
    header.tableLength = UInt32(tableLength)
    header.checksum = header.encode(into: &bytes, at: 0, file: fileId, offset: position)
    let file = try openFile()
    try Checkpoint.attempt("write a compacted segment", file.path) { () throws(SystemError) in
      try file.writeAll(bytes.bytes, at: position)
    }
    try appendRows(places, offsets)
    end = LogEnd(
      segment: fileId, length: position + header.length, sequence: last.sequence,
      checksum: header.checksum)
    pending.removeAll(keepingCapacity: true)
    transactions.removeAll(keepingCapacity: true)
    pendingBytes = 0
    heldBytes = 0
    bytes.shrink(toCapacity: 4 << 20)
  }

  private mutating func encode(
    _ record: Pending, _ offsets: inout [UInt64]
  ) throws(LogStoreError) -> BlockEncoder.Place {
    let row = record.block.rows[record.slot]
    let format = engine.options.format
    let position = end.length
    do throws(FormatError) {
      return try record.block.withFields(record.slot) { (fields) throws(FormatError) in
        let text = fields.hlc.assumingMemoryBound(to: UInt8.self)
        guard let parts = parseHlc(text, format: format) else {
          throw FormatError("a timestamp that does not parse")
        }
        return encoder.add(
          fields, parts: parts, contentChecksum: row.contentChecksum, ordinal: row.ordinal,
          to: &bytes, frameStart: 0, file: fileId, frameOffset: position, offsets: &offsets)
      }
    } catch {
      throw .corrupt(error, file: path)
    }
  }

  private func appendRows(
    _ places: [BlockEncoder.Place], _ offsets: [UInt64]
  ) throws(LogStoreError) {
    let manifest = engine.manifest.value
    for (record, place) in zip(pending, places) {
      do throws(FormatError) {
        try log.append(
          record.block, record.slot, format: engine.options.format, secret: manifest.hashSecret,
          deletions: manifest.deletionValues, block: offsets[Int(place.block)],
          slot: place.slot)
      } catch {
        throw .corrupt(error, file: path)
      }
    }
  }

  /// Writes what is left and makes the file durable; its directory entry is not.
  mutating func finish() throws(LogStoreError) {
    try flush()
    guard let file else { return }
    _ = try Checkpoint.attempt("sync a compacted segment", file.path) { () throws(SystemError) in
      try file.synchronize()
    }
  }
}
