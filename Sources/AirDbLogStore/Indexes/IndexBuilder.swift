/// Builds the index file of a segment (Format 8) from its rows.
///
/// The result depends on the segment's frames alone, not on when they were superseded by later
/// segments: an index that is built again has the same ranks.
package struct IndexBuilder {
  private let log: RowLog.Snapshot
  /// The global number behind the last row.
  private let lastRow: UInt64
  private var header: IndexHeader
  /// Rows that are the last of their key in this segment, in HLC order: the position is the rank.
  private var ranked: [UInt32] = []
  /// For each node and collection number of the log its number in the index.
  private var nodeOrder: [UInt32] = []
  private var sortedNodes: [[UInt8]] = []
  private var collectionOrder: [UInt32] = []
  private var sortedCollections: [[UInt8]] = []

  /// What is known of the segment.
  package struct Segment {
    package var storeId: StoreId
    package var fileId: UInt64
    package var length: UInt64
    package var firstSequence: UInt64
    package var lastSequence: UInt64
    package var lastChecksum: UInt32

    package init(
      storeId: StoreId, fileId: UInt64, length: UInt64, firstSequence: UInt64,
      lastSequence: UInt64, lastChecksum: UInt32
    ) {
      self.storeId = storeId
      self.fileId = fileId
      self.length = length
      self.firstSequence = firstSequence
      self.lastSequence = lastSequence
      self.lastChecksum = lastChecksum
    }
  }

  /// An index, ready to be written.
  package struct Result: ~Copyable {
    package var bytes: ByteBuffer
    package var header: IndexHeader
    package var headerChecksum: UInt32
    /// For each rank the row (counted from the segment's first).
    package var rowOfRank: [UInt32]
  }

  package static func build(_ log: RowLog.Snapshot, _ segment: Segment) -> Result {
    var builder = IndexBuilder(log, segment)
    return builder.build()
  }

  private init(_ log: RowLog.Snapshot, _ segment: Segment) {
    self.log = log
    lastRow = log.base + UInt64(log.rows.count)
    header = IndexHeader(
      storeId: segment.storeId, fileId: segment.fileId, segmentLength: segment.length,
      firstSequence: segment.firstSequence, lastSequence: segment.lastSequence,
      recordCount: UInt64(log.rows.count), entryCount: 0, lastChecksum: segment.lastChecksum)
  }

  private mutating func build() -> Result {
    rank()
    measure()
    var out = ByteBuffer(capacity: size)
    out.appendZeros(Limits.pageSize)
    var pages = PageWriter(file: header.fileId)
    var hlcFences: [(UInt64, UInt64)] = []
    var keyFences: [(UInt32, UInt64)] = []
    writeHlcEntries(&out, &pages, &hlcFences)
    end(.hlcEntries, &out, &pages)
    let byKey = keyOrder()
    writeKeyEntries(byKey, &out, &pages, &keyFences)
    end(.keyEntries, &out, &pages)
    for (physical, counter) in hlcFences {
      pages.beginEntry(IndexHeader.fenceSize, &out)
      out.append(physical)
      out.append(counter)
    }
    end(.hlcFences, &out, &pages)
    for (collection, hash) in keyFences {
      pages.beginEntry(IndexHeader.fenceSize, &out)
      out.append(collection)
      out.append(UInt32(0))
      out.append(hash)
    }
    end(.keyFences, &out, &pages)
    writeFilter(&out, &pages)
    end(.filter, &out, &pages)
    writeCollections(byKey, &out, &pages)
    end(.collections, &out, &pages)
    writeNodes(&out, &pages)
    end(.nodes, &out, &pages)
    header.pageCount = UInt32(out.count / Limits.pageSize)
    var first = ByteBuffer(capacity: Limits.pageSize)
    header.encode(into: &first)
    out.replace(at: 0, with: first.bytes)
    let checksum = first.bytes.load(UInt32.self, at: 0)
    return Result(bytes: out, header: header, headerChecksum: checksum, rowOfRank: ranked)
  }

  /// The bytes of the file, or a few more: with those of its rows they are most of the heap that a
  /// compaction takes.
  private var size: Int {
    func pages(_ count: Int, of size: Int) -> Int {
      let entriesOfAPage = max(IndexHeader.pageContent / size, 1)
      return (count + entriesOfAPage - 1) / entriesOfAPage
    }
    let hlcPages = pages(ranked.count, of: header.widths.hlcEntry)
    let keyPages = pages(ranked.count, of: header.widths.keyEntry)
    var all = 1 + hlcPages + keyPages
    all += pages(hlcPages, of: IndexHeader.fenceSize)
    all += pages(keyPages, of: IndexHeader.fenceSize)
    all += pages(Int(header.filterBlockCount), of: IndexHeader.filterBlockSize)
    all += pages(sortedCollections.reduce(0) { $0 + 24 + $1.count }, of: 1)
    all += pages(sortedNodes.reduce(4) { $0 + 4 + $1.count }, of: 1)
    return all * Limits.pageSize
  }

  // MARK: Order and widths

  /// Chooses the entries, sorts them, and numbers nodes and collections in byte order.
  private mutating func rank() {
    ranked.reserveCapacity(log.rows.count)
    for index in log.rows.indices where log.superseders[index] >= lastRow {
      ranked.append(UInt32(index))
    }
    (sortedNodes, nodeOrder) = Self.sort(
      log.nodes, used: ranked.map { log.rows[Int($0)].node }, keepFirst: true)
    (sortedCollections, collectionOrder) = Self.sort(
      log.collections, used: ranked.map { log.rows[Int($0)].collection }, keepFirst: false)
    let rows = log.rows
    let nodeOrder = nodeOrder
    ranked.sort { a, b in
      let first = rows[Int(a)]
      let second = rows[Int(b)]
      if first.physical != second.physical { return first.physical < second.physical }
      if first.counter != second.counter { return first.counter < second.counter }
      if first.node != second.node {
        return nodeOrder[Int(first.node)] < nodeOrder[Int(second.node)]
      }
      return a < b
    }
    header.entryCount = UInt64(ranked.count)
  }

  /// The items that entries use in byte order, and for each item its new number.
  private static func sort(
    _ items: [[UInt8]], used: [UInt32], keepFirst: Bool
  ) -> ([[UInt8]], [UInt32]) {
    var isUsed = [Bool](repeating: false, count: items.count)
    if keepFirst { isUsed[0] = true }
    for item in used { isUsed[Int(item)] = true }
    let order = items.indices.filter { isUsed[$0] }.sorted { a, b in
      withBytes(of: items[a]) { first in withBytes(of: items[b]) { first.compare($0) < 0 } }
    }
    var numbers = [UInt32](repeating: 0, count: items.count)
    for (number, item) in order.enumerated() { numbers[item] = UInt32(number) }
    return (order.map { items[$0] }, numbers)
  }

  /// The least widths that hold the greatest values.
  private mutating func measure() {
    header.physicalBase = log.rows[Int(ranked[0])].physical
    var counter: UInt64 = 0
    var block: UInt64 = 0
    var slot: UInt64 = 0
    for index in ranked {
      let row = log.rows[Int(index)]
      counter = max(counter, row.counter)
      block = max(block, row.block)
      slot = max(slot, UInt64(row.slot))
    }
    let last = log.rows[Int(ranked[ranked.count - 1])].physical
    header.widths.physical = Self.width(last - header.physicalBase)
    header.widths.counter = Self.width(counter)
    header.widths.node = Self.width(UInt64(sortedNodes.count - 1))
    header.widths.collection = Self.width(UInt64(sortedCollections.count - 1))
    header.widths.block = max(1, Self.width(block))
    header.widths.slot = Self.width(slot)
    header.widths.rank = Self.width(UInt64(ranked.count - 1))
    header.nodeCount = UInt32(sortedNodes.count)
    header.collectionCount = UInt32(sortedCollections.count)
    header.filterBlockCount = UInt32(
      max(1, (header.entryCount + 31) / IndexHeader.entriesPerFilterBlock))
  }

  package static func width(_ value: UInt64) -> Int { (64 - value.leadingZeroBitCount + 7) / 8 }

  /// The ranks in the order of the key entries.
  private func keyOrder() -> [UInt32] {
    let rows = log.rows
    return (0..<UInt32(ranked.count)).sorted { a, b in
      let first = rows[Int(ranked[Int(a)])]
      let second = rows[Int(ranked[Int(b)])]
      if first.collection != second.collection {
        return collectionOrder[Int(first.collection)] < collectionOrder[Int(second.collection)]
      }
      return first.hash < second.hash
    }
  }

  // MARK: Sections

  /// Completes a section, which reaches from the end of the one before to here.
  private mutating func end(
    _ kind: IndexHeader.Section.Kind, _ out: inout ByteBuffer, _ pages: inout PageWriter
  ) {
    pages.finish(&out)
    let first =
      kind == .hlcEntries
      ? 1
      : header.sections[kind.rawValue - 1].firstPage + header.sections[kind.rawValue - 1].pageCount
    header[kind] = IndexHeader.Section(
      firstPage: first, pageCount: UInt32(out.count / Limits.pageSize) - first)
  }

  private func writeHlcEntries(
    _ out: inout ByteBuffer, _ pages: inout PageWriter, _ fences: inout [(UInt64, UInt64)]
  ) {
    let w = header.widths
    for index in ranked {
      let row = log.rows[Int(index)]
      if pages.beginEntry(w.hlcEntry, &out) { fences.append((row.physical, row.counter)) }
      out.append(row.physical - header.physicalBase, width: w.physical)
      out.append(row.counter, width: w.counter)
      out.append(UInt64(nodeOrder[Int(row.node)]), width: w.node)
      out.append(UInt64(collectionOrder[Int(row.collection)]), width: w.collection)
      out.append(row.block, width: w.block)
      out.append(UInt64(row.slot), width: w.slot)
      out.append(UInt8(row.isDeletion ? 1 : 0))
    }
  }

  private func writeKeyEntries(
    _ ranks: [UInt32], _ out: inout ByteBuffer, _ pages: inout PageWriter,
    _ fences: inout [(UInt32, UInt64)]
  ) {
    let w = header.widths
    for rank in ranks {
      let row = log.rows[Int(ranked[Int(rank)])]
      if pages.beginEntry(w.keyEntry, &out) {
        fences.append((collectionOrder[Int(row.collection)], row.hash.first))
      }
      out.append(row.hash.first)
      out.append(row.hash.second)
      out.append(row.physical - header.physicalBase, width: w.physical)
      out.append(row.counter, width: w.counter)
      out.append(UInt64(nodeOrder[Int(row.node)]), width: w.node)
      out.append(UInt64(rank), width: w.rank)
      out.append(row.contentChecksum)
    }
  }

  private func writeFilter(_ out: inout ByteBuffer, _ pages: inout PageWriter) {
    let size = Int(header.filterBlockCount) * IndexHeader.filterBlockSize
    var bits = ByteBuffer(capacity: size)
    bits.appendZeros(size)
    let region = UnsafeMutableRawBufferPointer(start: bits.base, count: size)
    for index in ranked {
      KeyFilter.insert(log.rows[Int(index)].hash, into: region, count: header.filterBlockCount)
    }
    for block in 0..<Int(header.filterBlockCount) {
      pages.beginEntry(IndexHeader.filterBlockSize, &out)
      let start = block * IndexHeader.filterBlockSize
      out.append(
        UnsafeRawBufferPointer(
          rebasing: bits.bytes[start..<(start + IndexHeader.filterBlockSize)]))
    }
  }

  private func writeCollections(
    _ byKey: [UInt32], _ out: inout ByteBuffer, _ pages: inout PageWriter
  ) {
    var counts = [UInt64](repeating: 0, count: sortedCollections.count)
    for index in ranked {
      counts[Int(collectionOrder[Int(log.rows[Int(index)].collection)])] += 1
    }
    var stream = ByteBuffer(capacity: sortedCollections.count * 64)
    var first: UInt64 = 0
    var nameOffset: UInt32 = 0
    for (number, name) in sortedCollections.enumerated() {
      stream.append(first)
      stream.append(counts[number])
      stream.append(nameOffset)
      stream.append(UInt32(name.count))
      first += counts[number]
      nameOffset += UInt32(name.count)
    }
    for name in sortedCollections { stream.append(name) }
    pages.stream(stream.bytes, &out)
  }

  private func writeNodes(_ out: inout ByteBuffer, _ pages: inout PageWriter) {
    var stream = ByteBuffer(capacity: sortedNodes.count * 24)
    var offset: UInt32 = 0
    for node in sortedNodes {
      stream.append(offset)
      offset += UInt32(node.count)
    }
    stream.append(offset)
    for node in sortedNodes { stream.append(node) }
    pages.stream(stream.bytes, &out)
  }
}

/// Lays content out in checksummed pages.
private struct PageWriter {
  let file: UInt64
  /// Where the page under way starts, if one is.
  private var start: Int?

  init(file: UInt64) { self.file = file }

  /// Makes sure that an entry of `size` bytes can follow in one page. True if it is the first of
  /// its page.
  @discardableResult
  mutating func beginEntry(_ size: Int, _ out: inout ByteBuffer) -> Bool {
    if let start {
      if out.count - start + size <= Limits.pageSize { return false }
      finish(&out)
    }
    start = out.count
    out.append(UInt32(0))
    return true
  }

  /// Appends a byte stream.
  mutating func stream(_ bytes: UnsafeRawBufferPointer, _ out: inout ByteBuffer) {
    var position = 0
    while position < bytes.count {
      beginEntry(IndexHeader.pageContent, &out)
      let size = min(IndexHeader.pageContent, bytes.count - position)
      out.append(UnsafeRawBufferPointer(rebasing: bytes[position..<(position + size)]))
      position += size
    }
  }

  /// Completes the page under way.
  mutating func finish(_ out: inout ByteBuffer) {
    guard let start else { return }
    out.appendZeros(Limits.pageSize - (out.count - start))
    let covered = UnsafeRawBufferPointer(rebasing: out.bytes[(start + 4)...])
    out.store(
      Checksum.bound(.page, file: file, offset: UInt64(start), covered), at: start)
    self.start = nil
  }
}
