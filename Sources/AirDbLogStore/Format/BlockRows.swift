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
  package let rows: ContiguousArray<Row>
  /// Distinct; a row has an index into them.
  package let collections: [String]
  private let shapes: [HlcShape]
  /// Ranges of the metadata.
  private let nodes: [Range<Int>]
  private let authors: [Range<Int>]
  /// The metadata, then what a subclass has asked for.
  final let memory: UnsafeMutableRawBufferPointer
  final let metadataCount: Int

  /// One record's metadata. Offsets are into the block's metadata.
  package struct Row {
    package var type: Int64
    /// Of the timestamp, if there is a shape.
    var physical: UInt64 = 0
    var counter: UInt64 = 0
    package var contentChecksum: UInt32 = 0
    var id: UInt32 = 0
    var idCount: UInt32 = 0
    /// The text of the timestamp, if there is no shape.
    var hlc: UInt32 = 0
    var signature: UInt32 = 0
    var signatureCount: UInt32 = 0
    var payload: UInt32
    var payloadCount: UInt32 = 0
    /// Which record of its commit it is.
    package var ordinal: UInt32
    var hlcCount: UInt16 = 0
    // Indexes into the tables, which have at most as many items as there are rows: 256.
    var collection: UInt16 = 0
    var node: UInt16 = 0
    var author: UInt16 = 0
    /// Index of the shape plus 1; 0 if the text is stored as it is.
    var shape: UInt16 = 0
    var idForm: PackedUuid.Form
    var hasAuthor: Bool
    var hasSignature: Bool
  }

  /// Parses the metadata of a block whose checksum has been verified.
  ///
  /// Everything that it says is checked before it is used: a checksum proves that the bytes are those
  /// that were written, not that they make sense.
  package convenience init(rowsOf bytes: UnsafeRawBufferPointer) throws(FormatError) {
    try self.init(bytes, try Self.header(of: bytes), extra: 0)
  }

  /// Leaves `extra` bytes behind the metadata for the subclass to fill.
  init(
    _ bytes: UnsafeRawBufferPointer, _ header: BlockHeader, extra: Int
  ) throws(FormatError) {
    let metadata = UnsafeRawBufferPointer(
      rebasing: bytes[BlockHeader.size..<(BlockHeader.size + Int(header.metadataLength))])
    let parsed: Parser
    do throws(FormatError) {
      parsed = try Parser(metadata, header)
    } catch {
      throw FormatError(error.reason, at: BlockHeader.size + error.offset)
    }
    self.header = header
    rows = parsed.rows
    collections = parsed.collections
    shapes = parsed.shapes
    nodes = parsed.nodes
    authors = parsed.authors
    memory = .allocate(byteCount: metadata.count + extra, alignment: 8)
    memory.copyMemory(from: metadata)
    metadataCount = metadata.count
  }

  deinit { memory.deallocate() }

  /// How much of the cache this takes, in bytes: not less than it holds on the heap.
  package var cost: Int {
    var cost = Self.objectSize + Self.heapSize(memory.count)
    cost += Self.heapSize(of: rows.capacity, Row.self)
    cost += Self.heapSize(of: collections.capacity, String.self)
    for name in collections { cost += Self.heapSize(of: name.utf8.count + 1, UInt8.self) }
    cost += Self.heapSize(of: shapes.capacity, HlcShape.self)
    cost += Self.heapSize(of: nodes.capacity, Range<Int>.self)
    return cost + Self.heapSize(of: authors.capacity, Range<Int>.self)
  }

  /// The object itself, with room to spare.
  private static let objectSize = 256

  /// What an allocation of so many bytes takes: the allocator's own part, and what it rounds up.
  private static func heapSize(_ count: Int) -> Int { (count + 31) & ~15 }

  /// The same for the storage of an array, or of a text as one of bytes.
  private static func heapSize<Element>(of count: Int, _: Element.Type) -> Int {
    count == 0 ? 0 : heapSize(32 + count * MemoryLayout<Element>.stride)
  }

  /// The header of a block that fills `bytes`.
  static func header(of bytes: UnsafeRawBufferPointer) throws(FormatError) -> BlockHeader {
    let header = try BlockHeader.decode(bytes)
    guard UInt64(bytes.count) == header.length else {
      throw FormatError("the block's length does not match its header")
    }
    return header
  }

  @inline(__always)
  final func bytes(_ start: Int, _ count: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: memory[start..<(start + count)])
  }

  @inline(__always)
  final func bytes(_ start: UInt32, _ count: UInt32) -> UnsafeRawBufferPointer {
    bytes(Int(start), Int(count))
  }
}

// MARK: - Fields

extension BlockRows {
  /// The id of the record in a slot.
  package final func id(_ slot: Int) throws(FormatError) -> String {
    try withId(slot) { (id) throws(FormatError) in try Self.text(id) }
  }

  /// The text of the timestamp of the record in a slot.
  package final func hlc(_ slot: Int) throws(FormatError) -> String {
    try withHlc(slot) { (hlc) throws(FormatError) in try Self.text(hlc) }
  }

  /// The type of the record in a slot.
  package final func type(_ slot: Int) throws(FormatError) -> MutationType {
    guard let type = Int(exactly: rows[slot].type).flatMap(MutationType.init(rawValue:)) else {
      throw FormatError("a mutation type that cannot be made")
    }
    return type
  }

  package final func payloadCount(_ slot: Int) -> Int { Int(rows[slot].payloadCount) }

  /// The collection of the record in a slot.
  package final func collection(_ slot: Int) -> String { collections[Int(rows[slot].collection)] }

  /// Calls `body` with the id of the record in a slot.
  package final func withId<Result, Failure: Error>(
    _ slot: Int, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let row = rows[slot]
    let stored = bytes(row.id, row.idCount)
    if row.idForm == .text { return try body(stored) }
    return try withScratch(PackedUuid.textSize) { (scratch) throws(Failure) in
      PackedUuid.unpack(stored, row.idForm, into: scratch)
      return try body(UnsafeRawBufferPointer(scratch))
    }
  }

  /// Calls `body` with the text of the timestamp of the record in a slot.
  package final func withHlc<Result>(
    _ slot: Int, _ body: (UnsafeRawBufferPointer) throws(FormatError) -> Result
  ) throws(FormatError) -> Result {
    let row = rows[slot]
    if row.shape == 0 { return try body(bytes(row.hlc, UInt32(row.hlcCount))) }
    let shape = shapes[Int(row.shape - 1)]
    let node = node(of: row)
    return try withScratch(Limits.hlc) { (scratch) throws(FormatError) in
      guard
        let count = renderHlc(
          shape: shape, physical: row.physical, counter: row.counter,
          node: node.assumingMemoryBound(to: UInt8.self),
          into: scratch.assumingMemoryBound(to: UInt8.self))
      else { throw FormatError("a timestamp that its shape cannot show") }
      return try body(UnsafeRawBufferPointer(rebasing: scratch[..<count]))
    }
  }

  private final func node(of row: Row) -> UnsafeRawBufferPointer {
    guard row.shape > 0, shapes[Int(row.shape - 1)].separator2 != 0 else {
      return UnsafeRawBufferPointer(start: nil, count: 0)
    }
    let range = nodes[Int(row.node)]
    return bytes(range.lowerBound, range.count)
  }

  /// Calls `body` with the order key of the timestamp of the record in a slot.
  package final func withHlcKey<Result>(
    _ slot: Int, format: HlcFormat,
    _ body: (HlcPhysicalKind?, UInt64, UInt64, UnsafeRawBufferPointer) throws(FormatError) -> Result
  ) throws(FormatError) -> Result {
    let row = rows[slot]
    if row.shape > 0 {
      let kind = HlcPhysicalKind(rawValue: shapes[Int(row.shape - 1)].kind)
      return try body(kind, row.physical, row.counter, node(of: row))
    }
    let text = bytes(row.hlc, UInt32(row.hlcCount))
    guard let parts = parseHlc(text.assumingMemoryBound(to: UInt8.self), format: format) else {
      throw FormatError("a timestamp that does not parse", at: BlockHeader.size + Int(row.hlc))
    }
    return try body(
      parts.kind, parts.physical, parts.counter,
      UnsafeRawBufferPointer(rebasing: text[parts.nodeStart...]))
  }

  final func author(of row: Row) -> UnsafeRawBufferPointer {
    let range = authors[Int(row.author)]
    return bytes(range.lowerBound, range.count)
  }

  /// A text of the file, which must be valid UTF-8: repairing it would change its bytes.
  private static func text(_ bytes: UnsafeRawBufferPointer) throws(FormatError) -> String {
    let text = String(decoding: bytes, as: UTF8.self)
    guard withUTF8(text, { $0.equals(bytes) }) else {
      throw FormatError("a text that is not UTF-8")
    }
    return text
  }
}

private func withScratch<Result, Failure: Error>(
  _ size: Int, _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
) throws(Failure) -> Result {
  try withUnsafeTemporaryAllocation(byteCount: size, alignment: 8) {
    (scratch) throws(Failure) in try body(scratch)
  }
}

// MARK: - Parsing

/// The tables and rows of a block's metadata, every index and length checked.
private struct Parser {
  var collections: [String] = []
  var shapes: [HlcShape] = []
  var nodes: [Range<Int>] = []
  var authors: [Range<Int>] = []
  var rows: ContiguousArray<BlockRows.Row> = []

  init(_ metadata: UnsafeRawBufferPointer, _ header: BlockHeader) throws(FormatError) {
    var reader = ByteReader(metadata)
    let most = UInt64(header.recordCount)

    for _ in 0..<(try reader.readTableCount(most: most)) {
      let name = try reader.readSized(limit: Limits.collection)
      let text = String(decoding: name, as: UTF8.self)
      guard withUTF8(text, { $0.equals(name) }) else {
        throw FormatError("a collection that is not UTF-8", at: reader.offset)
      }
      collections.append(text)
    }
    for _ in 0..<(try reader.readTableCount(most: most)) {
      let shape = HlcShape(
        kind: try reader.read(), physicalDigits: try reader.read(),
        separator1: try reader.read(), counterDigits: try reader.read(),
        counterIsUpper: try reader.read(), separator2: try reader.read())
      guard shape.isValid else { throw FormatError("an unknown HLC shape", at: reader.offset) }
      shapes.append(shape)
    }
    for _ in 0..<(try reader.readTableCount(most: most)) {
      let node = try reader.readSized(limit: Limits.hlc)
      nodes.append((reader.offset - node.count)..<reader.offset)
    }
    for _ in 0..<(try reader.readTableCount(most: most)) {
      let author = try reader.readSized(limit: Limits.key)
      authors.append((reader.offset - author.count)..<reader.offset)
    }
    rows.reserveCapacity(Int(header.recordCount))
    var physical: UInt64 = 0
    var payload = 0
    for _ in 0..<header.recordCount {
      let row = try parseRow(&reader, header, physical: &physical, payload: payload)
      payload += Int(row.payloadCount)
      guard payload <= Int(header.rawLength) else {
        throw FormatError("payloads longer than the block", at: reader.offset)
      }
      rows.append(row)
    }
    guard reader.remaining == 0, payload == Int(header.rawLength) else {
      throw FormatError("rows that do not fill the block", at: reader.offset)
    }
  }

  private func parseRow(
    _ reader: inout ByteReader, _ header: BlockHeader, physical: inout UInt64, payload: Int
  ) throws(FormatError) -> BlockRows.Row {
    let start = reader.offset
    let flags: UInt8 = try reader.read()
    guard let idForm = PackedUuid.Form(rawValue: flags & 3), flags & 0xC0 == 0 else {
      throw FormatError("unknown row flags", at: start)
    }
    var row = BlockRows.Row(
      type: Int64((flags >> 4) & 3), payload: UInt32(payload),
      ordinal: header.firstRecord &+ UInt32(rows.count), idForm: idForm,
      hasAuthor: flags & 4 != 0, hasSignature: flags & 8 != 0)
    if row.type == 3 {
      row.type = try reader.readZigzag()
      guard row.type < 0 || row.type > 2 else {
        throw FormatError("a type not in shortest form", at: start)
      }
    }
    row.collection = try reader.readIndex(below: collections.count)
    row.contentChecksum = try reader.read()
    let id =
      idForm == .text ? try reader.readSized(limit: Limits.id) : try reader.read(count: 16)
    row.id = UInt32(reader.offset - id.count)
    row.idCount = UInt32(id.count)
    row.shape = try reader.readIndex(below: shapes.count + 1)
    if row.shape == 0 {
      let text = try reader.readSized(limit: Limits.hlc)
      row.hlc = UInt32(reader.offset - text.count)
      row.hlcCount = UInt16(text.count)
    } else {
      physical = physical &+ UInt64(bitPattern: try reader.readZigzag())
      row.physical = physical
      row.counter = try reader.readVarint()
      if shapes[Int(row.shape - 1)].separator2 != 0 {
        row.node = try reader.readIndex(below: nodes.count)
      }
    }
    if row.hasAuthor { row.author = try reader.readIndex(below: authors.count) }
    if row.hasSignature {
      let signature = try reader.readSized(limit: Limits.key)
      row.signature = UInt32(reader.offset - signature.count)
      row.signatureCount = UInt32(signature.count)
    }
    let payloadCount = try reader.readVarint()
    guard payloadCount <= UInt64(Limits.payload) else {
      throw FormatError("a payload above the limit", at: reader.offset)
    }
    row.payloadCount = UInt32(payloadCount)
    if header.hasOrdinals {
      let ordinal = try reader.readVarint()
      guard ordinal <= UInt64(UInt32.max) else {
        throw FormatError("an impossible ordinal", at: reader.offset)
      }
      row.ordinal = UInt32(ordinal)
    }
    return row
  }
}

extension ByteReader {
  /// The count of a table, which cannot have more items than there are rows.
  fileprivate mutating func readTableCount(most: UInt64) throws(FormatError) -> Int {
    let start = offset
    let count = try readVarint()
    guard count <= most else { throw FormatError("a table larger than its rows", at: start) }
    return Int(count)
  }

  fileprivate mutating func readIndex(below count: Int) throws(FormatError) -> UInt16 {
    let start = offset
    let index = try readVarint()
    guard index < UInt64(count) else { throw FormatError("an index past its table", at: start) }
    return UInt16(index)
  }
}
