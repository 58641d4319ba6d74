/// The named consumers of a store, as one slot of the consumer file holds them (Format 13).
package struct ConsumerTable: Sendable, Equatable {
  /// Raised by every change. The valid slot with the greater one is the current one.
  package var generation: UInt64 = 0
  /// Every number given out is below it, so that none returns.
  package var nextNumber: UInt64 = 1
  /// Ascending by the bytes of their names.
  package var consumers: [Entry] = []

  package init() {}

  /// A consumer.
  package struct Entry: Sendable, Equatable {
    /// Tells the consumer from one that had its name before.
    package var number: UInt64
    package var name: [UInt8]
    package var place = Place()
    package var retention = Retention.latestVersions
    /// Milliseconds since 1970.
    package var registeredDate: Int64
    /// How often it was moved by something else than progress.
    package var resets: UInt64 = 0

    package init(number: UInt64, name: [UInt8], registeredDate: Int64) {
      self.number = number
      self.name = name
      self.registeredDate = registeredDate
    }
  }

  /// Behind which commit a consumer is.
  package struct Place: Sendable, Equatable {
    /// The commit; 0: before the first one.
    package var sequence: UInt64 = 0
    /// Its checksum; 0 where there is none.
    package var checksum: UInt32 = 0
    /// The retention horizon that does not concern the consumer: it began from nothing behind it.
    package var horizon: UInt64 = 0

    package init(sequence: UInt64 = 0, checksum: UInt32 = 0, horizon: UInt64 = 0) {
      self.sequence = sequence
      self.checksum = checksum
      self.horizon = horizon
    }
  }

  /// What is kept for a consumer.
  package enum Retention: Sendable, Equatable {
    case latestVersions
    /// Every version behind its place, up to an age in milliseconds and a number of bytes.
    case history(maximumAge: Int64?, maximumBytes: UInt64?)
  }

  package func index(named name: [UInt8]) -> Int? {
    consumers.firstIndex { $0.name == name }
  }

  /// Adds a consumer in its place.
  package mutating func insert(_ entry: Entry) {
    let place =
      consumers.firstIndex { entry.name.lexicographicallyPrecedes($0.name) } ?? consumers.count
    consumers.insert(entry, at: place)
  }
}

// MARK: - Coding

extension ConsumerTable {
  static let headerSize = 64
  static let entrySize = 64

  /// The bytes of the table, without the space behind it.
  package var encodedSize: Int {
    consumers.reduce(Self.headerSize) { $0 + Self.entrySize + ($1.name.count + 7) / 8 * 8 }
  }

  /// A slot at an offset of the file. The table must fit.
  func encode(slotLength: Int, at offset: UInt64, storeId: StoreId) -> [UInt8] {
    var out = ByteBuffer(capacity: slotLength)
    out.append(UInt32(0))
    out.append(UInt32(consumers.count))
    out.append(generation)
    out.append(storeId.first)
    out.append(storeId.second)
    out.append(UInt64(encodedSize))
    out.append(nextNumber)
    out.appendZeros(16)
    for consumer in consumers { consumer.encode(into: &out) }
    out.appendZeros(slotLength - out.count)
    out.store(
      Checksum.bound(
        .consumers, file: generation, offset: offset,
        UnsafeRawBufferPointer(rebasing: out.bytes[4...])),
      at: 0)
    return Array(out.bytes)
  }

  /// A slot. Throws for one that was torn by a crash, is damaged, or has never been written.
  static func decode(
    _ slot: UnsafeRawBufferPointer, at offset: UInt64, storeId: StoreId
  ) throws(FormatError) -> ConsumerTable {
    var reader = ByteReader(slot)
    let checksum: UInt32 = try reader.read()
    let count: UInt32 = try reader.read()
    var table = ConsumerTable()
    table.generation = try reader.read()
    let covered = UnsafeRawBufferPointer(rebasing: slot[4...])
    guard
      checksum
        == Checksum.bound(.consumers, file: table.generation, offset: offset, covered)
    else { throw FormatError("the checksum of a slot does not match", at: 0) }
    let owner = StoreId(first: try reader.read(), second: try reader.read())
    guard owner == storeId else { throw FormatError("a slot of another store", at: 16) }
    let size: UInt64 = try reader.read()
    table.nextNumber = try reader.read()
    try reader.readZeros(16)
    guard table.generation > 0, table.generation < Limits.number, table.nextNumber > 0,
      table.nextNumber < Limits.number, count <= Limits.consumers
    else { throw FormatError("an impossible slot", at: 4) }
    var numbers = Set<UInt64>()
    for _ in 0..<count {
      let start = reader.offset
      let entry = try Entry.decode(&reader)
      if let last = table.consumers.last, !last.name.lexicographicallyPrecedes(entry.name) {
        throw FormatError("consumers out of order", at: start)
      }
      guard entry.number > 0, entry.number < table.nextNumber,
        numbers.insert(entry.number).inserted
      else { throw FormatError("a number that was not given out", at: start) }
      table.consumers.append(entry)
    }
    guard size == UInt64(reader.offset) else {
      throw FormatError("the length does not match the table", at: 32)
    }
    try reader.readZeros(reader.remaining)
    return table
  }
}

extension ConsumerTable.Entry {
  fileprivate func encode(into out: inout ByteBuffer) {
    var kind: UInt8 = 1
    var flags: UInt8 = 0
    var age: Int64 = 0
    var bytes: UInt64 = 0
    if case .history(let maximumAge, let maximumBytes) = retention {
      kind = 2
      flags = (maximumAge == nil ? 0 : 1) | (maximumBytes == nil ? 0 : 2)
      age = maximumAge ?? 0
      bytes = maximumBytes ?? 0
    }
    out.append(number)
    out.append(place.sequence)
    out.append(place.horizon)
    out.append(place.checksum)
    out.append(kind)
    out.append(flags)
    out.append(UInt16(name.count))
    out.append(age)
    out.append(bytes)
    out.append(registeredDate)
    out.append(resets)
    out.append(name)
    out.pad(to: 8)
  }

  fileprivate static func decode(
    _ reader: inout ByteReader
  ) throws(FormatError) -> ConsumerTable.Entry {
    let start = reader.offset
    let number: UInt64 = try reader.read()
    var place = ConsumerTable.Place()
    place.sequence = try reader.read()
    place.horizon = try reader.read()
    place.checksum = try reader.read()
    let kind: UInt8 = try reader.read()
    let flags: UInt8 = try reader.read()
    let nameLength: UInt16 = try reader.read()
    let age: Int64 = try reader.read()
    let bytes: UInt64 = try reader.read()
    let date: Int64 = try reader.read()
    let resets: UInt64 = try reader.read()
    guard nameLength > 0, nameLength <= Limits.consumerName else {
      throw FormatError("a name without a possible length", at: start + 30)
    }
    let name = Array(try reader.read(count: Int(nameLength)))
    try reader.readZeros((8 - reader.offset % 8) % 8)
    guard isUtf8(name) else { throw FormatError("a name that is not UTF-8", at: start + 64) }
    guard place.sequence > 0 || place.checksum == 0 else {
      throw FormatError("a checksum without a commit", at: start + 24)
    }
    guard kind == 1 || kind == 2, flags & ~3 == 0, kind == 2 || flags == 0, age >= 0,
      flags & 1 == 1 || age == 0, flags & 2 == 2 || bytes == 0
    else { throw FormatError("a retention that is none", at: start + 28) }
    var entry = ConsumerTable.Entry(number: number, name: name, registeredDate: date)
    entry.place = place
    entry.resets = resets
    if kind == 2 {
      entry.retention = .history(
        maximumAge: flags & 1 == 1 ? age : nil, maximumBytes: flags & 2 == 2 ? bytes : nil)
    }
    return entry
  }

  private static func isUtf8(_ name: [UInt8]) -> Bool {
    // Decoding repairs what is not UTF-8, and so changes it.
    Array(String(decoding: name, as: UTF8.self).utf8) == name
  }
}
