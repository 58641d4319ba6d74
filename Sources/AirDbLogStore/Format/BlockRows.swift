package import HlcText

/// The rows of a block: what its metadata says of each record. Immutable.
///
/// The metadata is not compressed, so that rows cost no decompression; ``DecodedBlock`` adds the
/// payloads.
///
/// `@unchecked Sendable`: the raw memory is written before the initializer of the class at hand
/// returns and freed in the deinitializer; everything else is a constant.
package class BlockRows: @unchecked Sendable {
  package let header: BlockHeader
  package let rows: ContiguousArray<BlockRow>
  /// Distinct; a row has an index into them.
  package let collections: [String]
  /// The metadata, then what a subclass has asked for.
  final let memory: UnsafeMutableRawBufferPointer

  /// Parses the metadata of a block whose checksum has been verified.
  package convenience init(rowsOf bytes: UnsafeRawBufferPointer) throws(FormatError) {
    try self.init(bytes, try BlockHeader.decode(wholeBlock: bytes), extra: 0)
  }

  /// Leaves `extra` bytes behind the metadata for the subclass to fill.
  init(
    _ bytes: UnsafeRawBufferPointer, _ header: BlockHeader, extra: Int
  ) throws(FormatError) {
    let metadata = header.metadata(of: bytes)
    var rows: ContiguousArray<BlockRow> = []
    var collections: [String] = []
    do throws(FormatError) {
      var parser = try BlockParser(metadata, header)
      for name in parser.collections {
        collections.append(try validText(metadata[name]))
      }
      rows.reserveCapacity(Int(header.recordCount))
      try parser.parseRows(through: Int(header.recordCount) - 1, into: &rows)
    } catch {
      throw FormatError(error.reason, at: BlockHeader.size + error.offset)
    }
    self.header = header
    self.rows = rows
    self.collections = collections
    memory = .allocate(byteCount: metadata.count + extra, alignment: 8)
    memory.copyMemory(from: metadata)
  }

  deinit { memory.deallocate() }

  /// Bytes of heap, at most.
  package var cost: Int {
    var cost = HeapCost.object + HeapCost.allocation(memory.count)
    cost += HeapCost.array(of: rows.capacity, BlockRow.self)
    cost += HeapCost.array(of: collections.capacity, String.self)
    for name in collections { cost += HeapCost.array(of: name.utf8.count + 1, UInt8.self) }
    return cost
  }

  final var metadataCount: Int { Int(header.metadataLength) }

  final var metadata: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: memory[..<metadataCount])
  }
}

// MARK: - Fields

extension BlockRows {
  /// The id of the record in a slot.
  package final func id(_ slot: Int) throws(FormatError) -> String {
    try rows[slot].id(metadata)
  }

  /// The text of the timestamp of the record in a slot.
  package final func hlc(_ slot: Int) throws(FormatError) -> String {
    try rows[slot].hlc(metadata)
  }

  /// The type of the record in a slot.
  package final func type(_ slot: Int) throws(FormatError) -> MutationType {
    try rows[slot].mutationType()
  }

  package final func payloadCount(_ slot: Int) -> Int { Int(rows[slot].payload.count) }

  /// The collection of the record in a slot.
  package final func collection(_ slot: Int) -> String {
    collections[Int(rows[slot].collectionIndex)]
  }

  /// Calls `body` with the id of the record in a slot.
  package final func withId<Result, Failure: Error>(
    _ slot: Int, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try rows[slot].withId(metadata, body)
  }

  /// Calls `body` with the text of the timestamp of the record in a slot.
  package final func withHlc<Result>(
    _ slot: Int, _ body: (UnsafeRawBufferPointer) throws(FormatError) -> Result
  ) throws(FormatError) -> Result {
    try rows[slot].withHlc(metadata, body)
  }

  /// Calls `body` with the order key of the timestamp of the record in a slot.
  package final func withHlcKey<Result>(
    _ slot: Int, format: HlcFormat,
    _ body: (HlcPhysicalKind?, UInt64, UInt64, UnsafeRawBufferPointer) throws(FormatError) -> Result
  ) throws(FormatError) -> Result {
    try rows[slot].withHlcKey(metadata, format: format, body)
  }
}
