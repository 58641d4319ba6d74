internal import HlcText

/// One record's metadata. Where it says where something is, it means in the block's metadata, which
/// is given to each call that reads it.
package struct BlockRow: Sendable {
  package var type: Int64
  /// Of the timestamp, if there is a shape.
  var physical: UInt64 = 0
  var counter: UInt64 = 0
  package var contentChecksum: UInt32 = 0
  /// Which record of its commit it is.
  package var ordinal: UInt32
  var collection = Field()
  var id = Field()
  var node = Field()
  /// The text of the timestamp, if there is no shape.
  var hlc = Field()
  var author = Field()
  var signature = Field()
  /// In the decompressed payloads of the block.
  var payload: Field
  var shape: HlcShape?
  /// Of the collection, in its table.
  var collectionIndex: UInt16 = 0
  var idForm: PackedUuid.Form
  var hasAuthor: Bool
  var hasSignature: Bool

  struct Field {
    var start: UInt32 = 0
    var count: UInt32 = 0
  }
}

extension UnsafeRawBufferPointer {
  @inline(__always)
  subscript(field: BlockRow.Field) -> UnsafeRawBufferPointer {
    let start = Int(field.start)
    return UnsafeRawBufferPointer(rebasing: self[start..<(start + Int(field.count))])
  }
}

// MARK: - Fields

extension BlockRow {
  func mutationType() throws(FormatError) -> MutationType {
    guard let type = Int(exactly: type).flatMap(MutationType.init(rawValue:)) else {
      throw FormatError("a mutation type that cannot be made")
    }
    return type
  }

  func id(_ metadata: UnsafeRawBufferPointer) throws(FormatError) -> String {
    if idForm == .text { return try validText(metadata[id]) }
    return String(unsafeUninitializedCapacity: PackedUuid.textSize) { text in
      PackedUuid.unpack(metadata[id], idForm, into: UnsafeMutableRawBufferPointer(text))
      return PackedUuid.textSize
    }
  }

  func withId<Result, Failure: Error>(
    _ metadata: UnsafeRawBufferPointer,
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    if idForm == .text { return try body(metadata[id]) }
    return try withScratch(PackedUuid.textSize) { (scratch) throws(Failure) in
      PackedUuid.unpack(metadata[id], idForm, into: scratch)
      return try body(UnsafeRawBufferPointer(scratch))
    }
  }

  /// The text of the timestamp.
  func hlc(_ metadata: UnsafeRawBufferPointer) throws(FormatError) -> String {
    let node = metadata[node]
    guard let length = shape?.textLength(nodeLength: node.count), length <= Limits.hlc,
      node.isASCII
    else { return try withHlc(metadata, validText) }
    // All of it is ASCII then, so that it need not be looked at again.
    var isRendered = false
    let text = String(unsafeUninitializedCapacity: length) { text in
      isRendered = render(metadata, into: text) == length
      return isRendered ? length : 0
    }
    guard isRendered else { throw Self.unshowable }
    return text
  }

  func withHlc<Result>(
    _ metadata: UnsafeRawBufferPointer,
    _ body: (UnsafeRawBufferPointer) throws(FormatError) -> Result
  ) throws(FormatError) -> Result {
    if shape == nil { return try body(metadata[hlc]) }
    return try withScratch(Limits.hlc) { (scratch) throws(FormatError) in
      guard let count = render(metadata, into: scratch.assumingMemoryBound(to: UInt8.self))
      else { throw Self.unshowable }
      return try body(UnsafeRawBufferPointer(rebasing: scratch[..<count]))
    }
  }

  private static var unshowable: FormatError {
    FormatError("a timestamp that its shape cannot show")
  }

  private func render(
    _ metadata: UnsafeRawBufferPointer, into text: UnsafeMutableBufferPointer<UInt8>
  ) -> Int? {
    guard let shape else { return nil }
    return renderHlc(
      shape: shape, physical: physical, counter: counter,
      node: metadata[node].assumingMemoryBound(to: UInt8.self), into: text)
  }

  /// Calls `body` with the order key of the timestamp.
  func withHlcKey<Result>(
    _ metadata: UnsafeRawBufferPointer, format: HlcFormat,
    _ body: (HlcPhysicalKind?, UInt64, UInt64, UnsafeRawBufferPointer) throws(FormatError) -> Result
  ) throws(FormatError) -> Result {
    if let shape {
      return try body(HlcPhysicalKind(rawValue: shape.kind), physical, counter, metadata[node])
    }
    let text = metadata[hlc]
    guard let parts = parseHlc(text.assumingMemoryBound(to: UInt8.self), format: format) else {
      throw FormatError("a timestamp that does not parse", at: BlockHeader.size + Int(hlc.start))
    }
    return try body(
      parts.kind, parts.physical, parts.counter,
      UnsafeRawBufferPointer(rebasing: text[parts.nodeStart...]))
  }
}

/// A text of the file, which must be valid UTF-8: repairing it would change its bytes.
func validText(_ bytes: UnsafeRawBufferPointer) throws(FormatError) -> String {
  let text = String(decoding: bytes, as: UTF8.self)
  guard bytes.isASCII || withUTF8(text, { $0.equals(bytes) }) else {
    throw FormatError("a text that is not UTF-8")
  }
  return text
}

private func withScratch<Result, Failure: Error>(
  _ size: Int, _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
) throws(Failure) -> Result {
  try withUnsafeTemporaryAllocation(byteCount: size, alignment: 8) {
    (scratch) throws(Failure) in try body(scratch)
  }
}

// MARK: - Parsing

/// Parses the metadata of a block whose checksum has been verified: the tables, then row by row.
///
/// Everything that it says is checked before it is used: a checksum proves that the bytes are those
/// that were written, not that they make sense.
struct BlockParser {
  private(set) var collections: [BlockRow.Field] = []
  private var shapes: [HlcShape] = []
  private var nodes: [BlockRow.Field] = []
  private var authors: [BlockRow.Field] = []
  private var header: BlockHeader
  private var reader: ByteReader
  private var rowCount: UInt32 = 0
  private var physical: UInt64 = 0
  private var payload: UInt32 = 0

  /// Of no use before ``start(_:_:)``.
  init(_ header: BlockHeader) {
    self.header = header
    reader = ByteReader(UnsafeRawBufferPointer(start: nil, count: 0))
  }

  init(_ metadata: UnsafeRawBufferPointer, _ header: BlockHeader) throws(FormatError) {
    self.init(header)
    try parseTables(metadata)
  }

  /// Turns to another block. If it throws, this is of no more use.
  mutating func start(
    _ metadata: UnsafeRawBufferPointer, _ header: BlockHeader
  ) throws(FormatError) {
    self.header = header
    rowCount = 0
    physical = 0
    payload = 0
    try parseTables(metadata)
  }

  private mutating func parseTables(
    _ metadata: UnsafeRawBufferPointer
  ) throws(FormatError) {
    var reader = ByteReader(metadata)
    let most = UInt64(header.recordCount)
    try reader.readFields(most: most, limit: Limits.collection, into: &collections)
    shapes.removeAll(keepingCapacity: true)
    for _ in 0..<(try reader.readTableCount(most: most)) {
      let shape = HlcShape(
        kind: try reader.read(), physicalDigits: try reader.read(),
        separator1: try reader.read(), counterDigits: try reader.read(),
        counterIsUpper: try reader.read(), separator2: try reader.read())
      guard shape.isValid else { throw FormatError("an unknown HLC shape", at: reader.offset) }
      shapes.append(shape)
    }
    try reader.readFields(most: most, limit: Limits.hlc, into: &nodes)
    try reader.readFields(most: most, limit: Limits.key, into: &authors)
    self.reader = reader
  }

  /// Bytes of heap.
  var cost: Int {
    HeapCost.array(of: collections.capacity, BlockRow.Field.self)
      + HeapCost.array(of: shapes.capacity, HlcShape.self)
      + HeapCost.array(of: nodes.capacity, BlockRow.Field.self)
      + HeapCost.array(of: authors.capacity, BlockRow.Field.self)
  }

  /// Appends rows up to the one in a slot, which must be there. If it throws, this is of no more use.
  mutating func parseRows(
    through slot: Int, into rows: inout ContiguousArray<BlockRow>
  ) throws(FormatError) {
    // A copy, whose offset stays in a register.
    var reader = reader
    while rows.count <= slot { rows.append(try nextRow(&reader)) }
    self.reader = reader
  }

  /// Parses the next row. There must be one.
  @inline(__always)
  private mutating func nextRow(_ reader: inout ByteReader) throws(FormatError) -> BlockRow {
    let start = reader.offset
    let flags: UInt8 = try reader.read()
    guard let idForm = PackedUuid.Form(rawValue: flags & 3), flags & 0xC0 == 0 else {
      throw FormatError("unknown row flags", at: start)
    }
    var row = BlockRow(
      type: Int64((flags >> 4) & 3), ordinal: header.firstRecord &+ rowCount,
      payload: BlockRow.Field(start: payload), idForm: idForm, hasAuthor: flags & 4 != 0,
      hasSignature: flags & 8 != 0)
    if row.type == 3 {
      row.type = try reader.readZigzag()
      guard row.type < 0 || row.type > 2 else {
        throw FormatError("a type not in shortest form", at: start)
      }
    }
    row.collectionIndex = try reader.readIndex(below: collections.count)
    row.collection = collections[Int(row.collectionIndex)]
    row.contentChecksum = try reader.read()
    let id =
      idForm == .text ? try reader.readSized(limit: Limits.id) : try reader.read(count: 16)
    row.id = reader.field(endingHere: id)
    let shape = try reader.readIndex(below: shapes.count + 1)
    if shape == 0 {
      let text = try reader.readSized(limit: Limits.hlc)
      row.hlc = reader.field(endingHere: text)
    } else {
      row.shape = shapes[Int(shape - 1)]
      physical = physical &+ UInt64(bitPattern: try reader.readZigzag())
      row.physical = physical
      row.counter = try reader.readVarint()
      if shapes[Int(shape - 1)].separator2 != 0 {
        row.node = nodes[Int(try reader.readIndex(below: nodes.count))]
      }
    }
    if row.hasAuthor {
      row.author = authors[Int(try reader.readIndex(below: authors.count))]
    }
    if row.hasSignature {
      let signature = try reader.readSized(limit: Limits.key)
      row.signature = reader.field(endingHere: signature)
    }
    let payloadCount = try reader.readVarint()
    guard payloadCount <= UInt64(header.rawLength - payload) else {
      throw FormatError("payloads longer than the block", at: reader.offset)
    }
    row.payload.count = UInt32(payloadCount)
    if header.hasOrdinals {
      let ordinal = try reader.readVarint()
      guard ordinal <= UInt64(UInt32.max) else {
        throw FormatError("an impossible ordinal", at: reader.offset)
      }
      row.ordinal = UInt32(ordinal)
    }
    payload += row.payload.count
    rowCount += 1
    if rowCount == header.recordCount {
      guard reader.remaining == 0, payload == header.rawLength else {
        throw FormatError("rows that do not fill the block", at: reader.offset)
      }
    }
    return row
  }
}

extension ByteReader {
  /// The count of a table, which cannot have more items than there are rows.
  @inline(__always)
  fileprivate mutating func readTableCount(most: UInt64) throws(FormatError) -> Int {
    let start = offset
    let count = try readVarint()
    guard count <= most else { throw FormatError("a table larger than its rows", at: start) }
    return Int(count)
  }

  /// What was read last.
  @inline(__always)
  fileprivate func field(endingHere item: UnsafeRawBufferPointer) -> BlockRow.Field {
    BlockRow.Field(start: UInt32(offset - item.count), count: UInt32(item.count))
  }

  /// A table of byte strings.
  @inline(__always)
  fileprivate mutating func readFields(
    most: UInt64, limit: Int, into fields: inout [BlockRow.Field]
  ) throws(FormatError) {
    fields.removeAll(keepingCapacity: true)
    let count = try readTableCount(most: most)
    for _ in 0..<count {
      let item = try readSized(limit: limit)
      fields.append(field(endingHere: item))
    }
  }

  @inline(__always)
  fileprivate mutating func readIndex(below count: Int) throws(FormatError) -> UInt16 {
    let start = offset
    let index = try readVarint()
    guard index < UInt64(count) else { throw FormatError("an index past its table", at: start) }
    return UInt16(index)
  }
}
