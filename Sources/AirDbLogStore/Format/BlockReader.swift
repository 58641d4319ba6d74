package import HlcText

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// A block as it lies in the file, its checksum verified: what the cache keeps, because it is a
/// third of what it decodes to. Immutable.
///
/// `@unchecked Sendable`: the memory is written in the initializer only.
package final class StoredBlock: @unchecked Sendable {
  package let header: BlockHeader
  private let memory: UnsafeMutableRawBufferPointer

  /// Copies a block whose checksum has been verified.
  package init(_ bytes: UnsafeRawBufferPointer) throws(FormatError) {
    header = try BlockHeader.decode(wholeBlock: bytes)
    memory = .allocate(byteCount: bytes.count, alignment: 16)
    memory.copyMemory(from: bytes)
  }

  deinit { memory.deallocate() }

  /// How much of the cache this takes, in bytes.
  package var cost: Int { HeapCost.allocation(memory.count) + HeapCost.allocation(96) }

  fileprivate var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(memory) }
}

/// Gives single records of a block: parses its rows as far as the one that is asked for.
///
/// Of the payloads it decompresses those up to the record that is asked for first, which is half of
/// the work for one record, and all of them when another one behind it is asked for.
///
/// Of what is not asked for nothing is checked but the checksum. Its memory serves one block after the
/// other; for one thread at a time. No call reaches another one of the same reader, which is why the
/// checks for exclusive access can be done without.
package final class BlockReader {
  @exclusivity(unchecked) package private(set) var header: BlockHeader
  /// What `bytes` and `metadata` point into: a block of the cache, or memory of its own.
  @exclusivity(unchecked) private var block: StoredBlock?
  @exclusivity(unchecked) private var copy = ReusableMemory()
  @exclusivity(unchecked) private var metadata: UnsafeRawBufferPointer
  @exclusivity(unchecked) private var storedPayloads: UnsafeRawBufferPointer
  @exclusivity(unchecked) private var parser: BlockParser
  @exclusivity(unchecked) private var rows: ContiguousArray<BlockRow> = []
  /// Why the rows behind those are not to be had: a parser that has thrown would go on anywhere.
  @exclusivity(unchecked) private var failure: FormatError?
  @exclusivity(unchecked) private var payloads = ReusableMemory()
  /// How many bytes of the payloads have been decompressed.
  @exclusivity(unchecked) private var decompressed = 0

  deinit {
    copy.deallocate()
    payloads.deallocate()
  }

  /// Without a block, and so without records.
  package init() {
    header = .empty
    let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
    metadata = nothing
    storedPayloads = nothing
    parser = BlockParser(header)
  }

  package convenience init(_ block: StoredBlock) throws(FormatError) {
    self.init()
    try open(block)
  }

  /// Turns to another block. If it throws, this is of no more use.
  package func open(_ block: StoredBlock) throws(FormatError) {
    header = block.header
    self.block = block
    metadata = header.metadata(of: block.bytes)
    storedPayloads = header.storedPayloads(of: block.bytes)
    try start()
  }

  /// Turns to a block whose checksum has been verified, of which it makes a copy.
  package func open(copying bytes: UnsafeRawBufferPointer) throws(FormatError) {
    header = try BlockHeader.decode(wholeBlock: bytes)
    block = nil
    let own = copy.bytes(bytes.count)
    own.copyMemory(from: bytes)
    metadata = header.metadata(of: UnsafeRawBufferPointer(own))
    storedPayloads = header.storedPayloads(of: UnsafeRawBufferPointer(own))
    try start()
  }

  private func start() throws(FormatError) {
    rows.removeAll(keepingCapacity: true)
    rows.reserveCapacity(Int(header.recordCount))
    failure = nil
    decompressed = 0
    if header.codec == .lz4 { _ = payloads.bytes(Int(header.rawLength) + Lz4.slack) }
    do throws(FormatError) {
      try parser.start(metadata, header)
    } catch {
      throw FormatError(error.reason, at: BlockHeader.size + error.offset)
    }
  }

  /// Bytes of heap, the block itself included. Changes when another block is opened.
  package var cost: Int {
    HeapCost.object + (block?.cost ?? 0) + HeapCost.allocation(copy.count)
      + HeapCost.allocation(payloads.count) + parser.cost
      + HeapCost.array(of: rows.capacity, BlockRow.self)
  }
}

/// Memory that is allocated anew only when more is needed.
private struct ReusableMemory {
  private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)

  var count: Int { memory.count }

  var all: UnsafeMutableRawBufferPointer { memory }

  /// So many bytes, whose content is lost with the next call.
  mutating func bytes(_ count: Int) -> UnsafeMutableRawBufferPointer {
    if count > memory.count {
      memory.deallocate()
      memory = .allocate(byteCount: count, alignment: 16)
    }
    return UnsafeMutableRawBufferPointer(rebasing: memory[..<count])
  }

  func deallocate() { memory.deallocate() }
}

// MARK: - Records

extension BlockReader {
  /// The metadata of the record in a slot.
  package func row(_ slot: Int) throws(FormatError) -> BlockRow {
    if slot >= rows.count { try parseRows(through: slot) }
    return rows[slot]
  }

  private func parseRows(through slot: Int) throws(FormatError) {
    guard slot < Int(header.recordCount) else {
      throw FormatError("an index names a record that is not there")
    }
    if let failure { throw failure }
    do throws(FormatError) {
      try parser.parseRows(through: slot, into: &rows)
    } catch {
      let error = FormatError(error.reason, at: BlockHeader.size + error.offset)
      failure = error
      throw error
    }
  }

  /// The record in a slot, built anew but for what `shared` has of it.
  @inline(__always)
  package func record(
    _ slot: Int, sharing shared: inout SharedFields
  ) throws(FormatError) -> ChangeRecord {
    let row = try row(slot)
    let metadata = metadata
    let payload = try payload(of: row)
    return ChangeRecord(
      id: try row.id(metadata), collection: try shared.text(metadata[row.collection]),
      type: try row.mutationType(), payload: Data(payload), hlcTimestamp: try row.hlc(metadata),
      authorPublicKey: row.hasAuthor ? shared.data(metadata[row.author]) : nil,
      signature: row.hasSignature ? Data(metadata[row.signature]) : nil)
  }

  /// Appends the record in a slot to an array, and answers the bytes of its payload, id and timestamp.
  package func append(
    _ slot: Int, sharing shared: inout SharedFields, to records: inout [ChangeRecord]
  ) throws(FormatError) -> Int {
    records.append(try record(slot, sharing: &shared))
    let last = records.count - 1
    return records[last].payload.count + records[last].id.utf8.count
      + records[last].hlcTimestamp.utf8.count
  }

  /// Whether the record in a slot has a record's key and content, and a timestamp of the same order.
  package func holds(
    _ slot: Int, _ record: RecordBytes, _ parts: HlcParts, contentChecksum: UInt32,
    format: HlcFormat
  ) throws(FormatError) -> Bool {
    let row = try row(slot)
    let metadata = metadata
    guard row.contentChecksum == contentChecksum,
      metadata[row.collection].equals(record.collection),
      row.withId(metadata, { $0.equals(record.id) })
    else { return false }
    return try row.withHlcKey(metadata, format: format) { _, physical, counter, node in
      physical == parts.physical && counter == parts.counter
        && node.equals(UnsafeRawBufferPointer(rebasing: record.hlc[parts.nodeStart...]))
    }
  }

  /// The id of the record in a slot, as bytes.
  package func id(_ slot: Int) throws(FormatError) -> [UInt8] {
    let row = try row(slot)
    return row.withId(metadata) { Array($0) }
  }

  private func payload(of row: BlockRow) throws(FormatError) -> UnsafeRawBufferPointer {
    if header.codec == .stored { return storedPayloads[row.payload] }
    let end = Int(row.payload.start) + Int(row.payload.count)
    if end > decompressed { try decompress(upTo: end) }
    return UnsafeRawBufferPointer(payloads.all)[row.payload]
  }

  private func decompress(upTo end: Int) throws(FormatError) {
    let whole = Int(header.rawLength)
    let wanted = decompressed == 0 ? end : whole
    let target = payloads.bytes(whole + Lz4.slack)
    // If it fails, what was there may have been written over.
    decompressed = 0
    guard let count = Lz4.decompress(storedPayloads, upTo: wanted, into: target) else {
      throw FormatError(
        "the payloads do not decompress", at: BlockHeader.size + Int(header.metadataLength))
    }
    decompressed = count
  }
}
