internal import HlcText

/// Recognises records that are in a sealed segment already, when they come again in HLC order.
///
/// Peers send again what a store has, page after page of somebody's feed. The key index has such
/// neighbours far apart, each lookup on another page; the HLC order has them side by side. So where
/// one record was found to be there already, the next is expected one rank further on, and if its
/// row in the log says the same, that is all.
///
/// A probe only ever finds. What it does not recognise, for whatever reason, is looked up by its key.
struct RedeliveryProbe {
  /// Where the next record is expected; nil if there is nothing to go by.
  private var expected: (segment: SealedSegment, index: SealedIndex, rank: UInt64)?
  private var page: (number: UInt64, page: IndexPage)?
  /// In use while a batch is decided.
  private var reader: RecordReader?
  private var block: (offset: UInt64, reader: BlockReader)?

  /// How many ranks a record may be further on than expected: what lies between has been superseded
  /// or is not among what was sent.
  private static let reach: UInt64 = 8

  /// A record was found to be there already, at a rank.
  mutating func found(_ rank: UInt64, of index: SealedIndex, _ segment: SealedSegment) {
    if expected?.index !== index { forgetPlaces() }
    expected = (segment, index, rank + 1)
  }

  /// Forgets what it goes by: the segments may have changed.
  mutating func reset() {
    expected = nil
    forgetPlaces()
  }

  private mutating func forgetPlaces() {
    page = nil
    block = nil
  }

  /// Gives back what it reads with.
  mutating func finish(_ engine: Engine) {
    block = nil
    if let reader { engine.giveBack(reader) }
    reader = nil
  }

  /// Whether the record, timestamp and content included, is in the log.
  @inline(__always)
  mutating func recognises(
    _ batch: PreparedBatch, _ record: Int, in engine: Engine
  ) -> Bool {
    guard expected != nil else { return false }
    let isThere = (try? finds(batch, record, in: engine)) ?? false
    if !isThere { reset() }
    return isThere
  }

  private mutating func finds(
    _ batch: PreparedBatch, _ record: Int, in engine: Engine
  ) throws -> Bool {
    guard let (segment, index, first) = expected else { return false }
    let parts = batch.items[record].parts
    let end = min(first + Self.reach, index.header.entryCount)
    var rank = first
    while rank < end {
      let entry = try entry(rank, of: index)
      let order = compareNumbers(entry.physical, entry.counter, parts.physical, parts.counter)
      if order > 0 { return false }
      if order == 0, try isEqual(batch, record, to: entry, of: segment, in: engine) {
        expected = (segment, index, rank + 1)
        return true
      }
      rank += 1
    }
    return false
  }

  private mutating func entry(
    _ rank: UInt64, of index: SealedIndex
  ) throws -> SealedIndex.HlcEntry {
    let number = rank / index.hlcEntriesPerPage
    if page?.number != number { page = (number, try index.hlcPage(holding: rank)) }
    return try index.hlcEntry(rank, in: page!.page)
  }

  private mutating func isEqual(
    _ batch: PreparedBatch, _ record: Int, to entry: SealedIndex.HlcEntry,
    of segment: SealedSegment, in engine: Engine
  ) throws -> Bool {
    if block?.offset != entry.block {
      let reader = reader ?? engine.takeRecordReader()
      self.reader = reader
      block = (
        entry.block,
        try reader.block(
          at: Engine.Place(file: segment.info.fileId, block: entry.block, slot: entry.slot),
          of: engine)
      )
    }
    let item = batch.items[record]
    let reader = block!.reader
    return try batch.withBytes(of: record) { (bytes) throws(FormatError) in
      try reader.holds(
        entry.slot, bytes, item.parts, contentChecksum: item.contentChecksum,
        format: engine.options.format)
    }
  }
}
