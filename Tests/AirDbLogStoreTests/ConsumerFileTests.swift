import AirDbLogStore
import TestSupport
import Testing

/// The consumer file (Format 13): what is written is read again, and nothing else is.
struct ConsumerFileTests {
  private static let storeId = StoreId(first: 0x0102_0304_0506_0708, second: 0x1112_1314_1516_1718)
  private static let page = 4_096

  private static func table(_ progress: UInt64 = 7) -> ConsumerTable {
    var table = ConsumerTable()
    table.generation = 5
    table.nextNumber = 9
    var first = ConsumerTable.Entry(number: 8, name: Array("a".utf8), registeredDate: -1)
    first.place = ConsumerTable.Place(sequence: progress, checksum: 0xA5A5_5A5A, horizon: 3)
    first.retention = .history(maximumAge: 86_400_000, maximumBytes: nil)
    first.resets = 2
    table.insert(first)
    var second = ConsumerTable.Entry(
      number: 1, name: Array("Sök ☃".utf8), registeredDate: 1_700_000_000_000)
    second.retention = .history(maximumAge: nil, maximumBytes: .max)
    table.insert(second)
    table.insert(
      ConsumerTable.Entry(
        number: 2, name: Array(repeating: 0x7A, count: 256), registeredDate: 0))
    return table
  }

  /// A file whose slots differ, as one has them after progress.
  private static func sample() -> (bytes: [UInt8], older: ConsumerTable, newer: ConsumerTable) {
    var (file, bytes) = ConsumerFile.make(table(), storeId: storeId)
    var newer = table(99)
    newer.generation = 7
    #expect(file.nextSlot == 0)
    let slot = file.encode(newer, in: 0, storeId: storeId)
    bytes.replaceSubrange(page..<page + slot.count, with: slot)
    file.slots[0] = newer
    return (bytes, file.slots[1]!, newer)
  }

  private static func decode(_ bytes: [UInt8]) -> ConsumerTable? {
    try? withBytes(of: bytes) { (bytes) throws(ConsumerFile.Failure) in
      try ConsumerFile.decode(bytes, storeId: storeId)
    }.current
  }

  @Test func `A new file holds the table twice, and the slot with the greater generation counts`()
    throws
  {
    let (file, bytes) = ConsumerFile.make(Self.table(), storeId: Self.storeId)
    #expect(bytes.count == 3 * Self.page)
    let read = try withBytes(of: bytes) { (bytes) throws(ConsumerFile.Failure) in
      try ConsumerFile.decode(bytes, storeId: Self.storeId)
    }
    #expect(read == file)
    #expect(read.slots.map { $0?.generation } == [5, 6])
    #expect(read.slots.allSatisfy { $0?.consumers == Self.table().consumers })
    #expect(read.nextSlot == 0)

    let sample = Self.sample()
    #expect(Self.decode(sample.bytes) == sample.newer)
  }

  @Test func `Whatever bit flips, the file reads as one of its tables, or not at all`() {
    let (bytes, older, newer) = Self.sample()
    let meaningful = 64 + newer.encodedSize
    var outcomes = (none: 0, older: 0, newer: 0)
    for offset in bytes.indices {
      // Behind the tables there are only zeros, which are all alike.
      for bit in offset % Self.page < meaningful ? 0..<8 : offset % 8..<offset % 8 + 1 {
        var damaged = bytes
        damaged[offset] ^= 1 << bit
        let found = Self.decode(damaged)
        let expected = [nil, older, newer][offset / Self.page]
        #expect(found == expected, "bit \(bit) of byte \(offset)")
        switch found {
        case nil: outcomes.none += 1
        case older?: outcomes.older += 1
        default: outcomes.newer += 1
        }
      }
    }
    #expect(outcomes.none > 0 && outcomes.older > 0 && outcomes.newer > 0)
  }

  @Test func `Cut anywhere, the file reads as the slot that is whole, or not at all`() {
    let (bytes, _, newer) = Self.sample()
    for length in 0...bytes.count {
      let found = Self.decode(Array(bytes[..<length]))
      #expect(found == (length < 2 * Self.page ? nil : newer), "\(length) bytes")
    }
    #expect(Self.decode(bytes + [0]) == nil)
  }

  @Test func `A slot at the other one's place, of another store or of another file counts as none`()
  {
    let (bytes, older, newer) = Self.sample()
    func pages(_ bytes: [UInt8]) -> [[UInt8]] {
      stride(from: 0, to: bytes.count, by: Self.page).map { Array(bytes[$0..<$0 + Self.page]) }
    }
    let own = pages(bytes)
    #expect(Self.decode(own[0] + own[2] + own[2]) == older)
    #expect(Self.decode(own[0] + own[1] + own[1]) == newer)
    #expect(Self.decode(own[0] + own[2] + own[1]) == nil)
    let foreign = pages(
      ConsumerFile.make(Self.table(), storeId: StoreId(first: 1, second: 2)).bytes)
    #expect(Self.decode(foreign[0] + foreign[1] + foreign[2]) == nil)
    #expect(Self.decode(own[0] + foreign[1] + foreign[2]) == nil)
    #expect(Self.decode(own[0] + own[1] + foreign[2]) == newer)
  }

  @Test func `Fields that no writer writes are refused although the checksums hold`() {
    let entry = 64
    let changes: [(at: Int, bytes: [UInt8])] = [
      (4, [0xFF, 0xFF, 0xFF, 0xFF]), (4, [2]), (4, [4]), (8, Array(repeating: 0, count: 8)),
      (15, [0xFF]), (32, [1]), (32, Array(repeating: 0xFF, count: 8)), (40, [0]), (40, [8]),
      (47, [0xFF]), (48, [1]), (63, [1]),
      // The first consumer is the one that was named "Sök ☃".
      (entry, [0]), (entry, [2]), (entry, [9]), (entry + 24, [1]), (entry + 28, [0]),
      (entry + 28, [1]), (entry + 28, [3]), (entry + 29, [4]), (entry + 29, [0]),
      (entry + 30, [0, 0]), (entry + 30, [1, 1]), (entry + 30, [0xFF, 0xFF]), (entry + 32, [1]),
      (entry + 64, [0xFF]), (entry + 64, [0x7A]), (entry + 72, [1]), (4_095, [1]),
    ]
    for (at, new) in changes {
      var bytes = Array(ConsumerFile.make(Self.table(), storeId: Self.storeId).bytes)
      for slot in 1...2 {
        let start = slot * Self.page
        bytes.replaceSubrange(start + at..<start + at + new.count, with: new)
        Self.seal(&bytes, slot: start)
      }
      #expect(Self.decode(bytes) == nil, "\(new) at \(at)")
    }
    // The same without a change is accepted.
    var bytes = Array(ConsumerFile.make(Self.table(), storeId: Self.storeId).bytes)
    for slot in 1...2 { Self.seal(&bytes, slot: slot * Self.page) }
    #expect(Self.decode(bytes) != nil)
  }

  /// Makes the checksum of a slot right.
  private static func seal(_ bytes: inout [UInt8], slot start: Int) {
    bytes.withUnsafeMutableBytes { raw in
      let slot = UnsafeMutableRawBufferPointer(rebasing: raw[start..<start + page])
      let checksum = Checksum.bound(
        .consumers, file: UnsafeRawBufferPointer(slot).load(UInt64.self, at: 8),
        offset: UInt64(start), UnsafeRawBufferPointer(rebasing: slot[4...]))
      slot.storeBytes(of: checksum.littleEndian, as: UInt32.self)
    }
  }

  @Test func `A header that no writer writes is refused although its checksum holds`() {
    let changes: [(at: Int, bytes: [UInt8], isUnsupported: Bool)] = [
      (12, [0], false), (12, [2], true), (16, [0xFF], false), (32, [1], false), (33, [0], false),
      (33, [0, 0xFF], false), (39, [0xFF], false), (40, [1], false),
    ]
    for (at, new, isUnsupported) in changes {
      var bytes = Array(ConsumerFile.make(Self.table(), storeId: Self.storeId).bytes)
      bytes.replaceSubrange(at..<at + new.count, with: new)
      bytes.withUnsafeMutableBytes { raw in
        let checksum = Checksum.bound(
          .consumers, file: 0, offset: 0, UnsafeRawBufferPointer(rebasing: raw[12..<64]))
        raw.storeBytes(of: checksum.littleEndian, toByteOffset: 8, as: UInt32.self)
      }
      do throws(ConsumerFile.Failure) {
        _ = try withBytes(of: bytes) { (bytes) throws(ConsumerFile.Failure) in
          try ConsumerFile.decode(bytes, storeId: Self.storeId)
        }
        Issue.record("\(new) at \(at) was accepted")
      } catch {
        switch error {
        case .damaged: #expect(!isUnsupported, "\(new) at \(at)")
        case .unsupported: #expect(isUnsupported, "\(new) at \(at)")
        }
      }
    }
  }

  @Test func `The most consumers with the longest names fit into the greatest file`() throws {
    var table = ConsumerTable()
    table.generation = 1
    table.nextNumber = 1_025
    for number in 1...1_024 {
      let digits = Array(String(10_000 + number).utf8)
      table.insert(
        ConsumerTable.Entry(
          number: UInt64(number), name: digits + Array(repeating: 0x61, count: 256 - digits.count),
          registeredDate: 0))
    }
    let (file, bytes) = ConsumerFile.make(table, storeId: Self.storeId)
    #expect(UInt64(bytes.count) == ConsumerFile.greatestLength)
    #expect(Self.decode(bytes) == file.slots[1])
  }

  @Test func `A file is made of random bytes in vain`() {
    var generator = SeededGenerator(seed: 7)
    let good = Self.sample().bytes
    for _ in 0..<300 {
      var bytes = good
      for _ in 0..<Int.random(in: 1...6, using: &generator) {
        let start = Int.random(in: 0..<bytes.count, using: &generator)
        let end = min(bytes.count, start + Int.random(in: 1...64, using: &generator))
        for index in start..<end { bytes[index] = UInt8.random(in: 0...255, using: &generator) }
      }
      let found = Self.decode(bytes)
      #expect(found == nil || found?.consumers.count == 3)
    }
  }
}
