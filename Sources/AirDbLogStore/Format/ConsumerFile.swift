/// The file with the consumers: a header, and two slots of which each holds the whole table
/// (Format 13).
///
/// What changes a position writes the slot with the older table; everything else, a new file.
package struct ConsumerFile: Sendable, Equatable {
  /// Bytes of a slot: a multiple of ``pageSize``.
  package var slotLength: Int
  /// What each slot holds; nil for one that cannot be used.
  package var slots: [ConsumerTable?]

  static let headerSize = 64
  static let pageSize = 4_096

  /// No file is longer.
  package static var greatestLength: UInt64 {
    let table =
      ConsumerTable.headerSize
      + Limits.consumers * (ConsumerTable.entrySize + Limits.consumerName)
    return UInt64(pageSize + 2 * padded(table))
  }

  /// Why a file cannot be used.
  package enum Failure: Error {
    case damaged(FormatError)
    /// A version above ours.
    case unsupported(String)
  }

  /// The table that is in force.
  package var current: ConsumerTable? {
    slots.compactMap(\.self).max { $0.generation < $1.generation }
  }

  /// The slot that the next table goes to: never that of the current one.
  package var nextSlot: Int {
    guard let first = slots[0] else { return 0 }
    guard let second = slots[1] else { return 1 }
    return first.generation < second.generation ? 0 : 1
  }

  package func offset(of slot: Int) -> UInt64 {
    UInt64(Self.pageSize + slot * slotLength)
  }

  /// The bytes of a slot that holds a table, which must fit.
  package func encode(_ table: ConsumerTable, in slot: Int, storeId: StoreId) -> [UInt8] {
    table.encode(slotLength: slotLength, at: offset(of: slot), storeId: storeId)
  }

  private static func padded(_ length: Int) -> Int {
    (length + pageSize - 1) / pageSize * pageSize
  }

  private init(slotLength: Int, slots: [ConsumerTable?]) {
    self.slotLength = slotLength
    self.slots = slots
  }
}

extension ConsumerFile {
  /// A new file that holds a table twice, under two generations of which the lower one is the
  /// table's.
  package static func make(
    _ table: ConsumerTable, storeId: StoreId
  ) -> (file: ConsumerFile, bytes: [UInt8]) {
    var second = table
    second.generation += 1
    let file = ConsumerFile(slotLength: padded(table.encodedSize), slots: [table, second])
    var header = ByteBuffer(capacity: pageSize)
    header.append("AIRDBCON")
    header.append(UInt32(0))
    header.append(Limits.formatVersion)
    header.append(storeId.first)
    header.append(storeId.second)
    header.append(UInt64(file.slotLength))
    header.appendZeros(pageSize - header.count)
    header.store(
      Checksum.bound(
        .consumers, file: 0, offset: 0,
        UnsafeRawBufferPointer(rebasing: header.bytes[12..<headerSize])), at: 8)
    return (
      file,
      Array(header.bytes) + file.encode(table, in: 0, storeId: storeId)
        + file.encode(second, in: 1, storeId: storeId)
    )
  }

  /// Reads a file. Throws if the header or both slots cannot be used.
  package static func decode(
    _ bytes: UnsafeRawBufferPointer, storeId: StoreId
  ) throws(Failure) -> ConsumerFile {
    let version: UInt32
    do throws(FormatError) {
      version = try checkHeader(bytes)
    } catch {
      throw .damaged(error)
    }
    guard version <= Limits.formatVersion else {
      throw .unsupported("format version \(version)")
    }
    do throws(FormatError) {
      return try decodeSlots(bytes, storeId: storeId)
    } catch {
      throw .damaged(error)
    }
  }

  /// Checks what every version of the header has, and answers the version.
  private static func checkHeader(
    _ bytes: UnsafeRawBufferPointer
  ) throws(FormatError) -> UInt32 {
    var reader = ByteReader(bytes)
    guard try reader.read(count: 8).elementsEqual("AIRDBCON".utf8) else {
      throw FormatError("not a consumer file", at: 0)
    }
    let checksum: UInt32 = try reader.read()
    guard bytes.count >= pageSize else { throw FormatError("the header is cut short", at: 0) }
    let covered = UnsafeRawBufferPointer(rebasing: bytes[12..<headerSize])
    guard checksum == Checksum.bound(.consumers, file: 0, offset: 0, covered) else {
      throw FormatError("the checksum of the header does not match", at: 8)
    }
    return try reader.read()
  }

  private static func decodeSlots(
    _ bytes: UnsafeRawBufferPointer, storeId: StoreId
  ) throws(FormatError) -> ConsumerFile {
    var reader = ByteReader(bytes, at: 12)
    guard try reader.read(UInt32.self) == Limits.formatVersion else {
      throw FormatError("format version 0", at: 12)
    }
    guard StoreId(first: try reader.read(), second: try reader.read()) == storeId else {
      throw FormatError("the consumers of another store", at: 16)
    }
    let length: UInt64 = try reader.read()
    try reader.readZeros(pageSize - reader.offset)
    guard length >= UInt64(pageSize), length % UInt64(pageSize) == 0, length <= greatestLength,
      let slotLength = Int(exactly: length)
    else { throw FormatError("a slot length that is none", at: 32) }
    var file = ConsumerFile(slotLength: slotLength, slots: [nil, nil])
    guard UInt64(bytes.count) <= file.offset(of: 2) else {
      throw FormatError("bytes behind the slots", at: Int(file.offset(of: 2)))
    }
    var reason: FormatError?
    for slot in 0..<2 {
      let start = Int(file.offset(of: slot))
      guard start + slotLength <= bytes.count else {
        reason = reason ?? FormatError("a slot is cut short", at: bytes.count)
        continue
      }
      do throws(FormatError) {
        file.slots[slot] = try ConsumerTable.decode(
          UnsafeRawBufferPointer(rebasing: bytes[start..<start + slotLength]),
          at: UInt64(start), storeId: storeId)
      } catch {
        reason = reason ?? FormatError(error.reason, at: start + error.offset)
      }
    }
    if let reason, file.current == nil { throw reason }
    return file
  }
}
