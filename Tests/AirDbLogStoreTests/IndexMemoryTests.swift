import AirDbLogStore
import TestSupport
import Testing

/// The structures in memory, each against the plainest thing that does the same.
@Suite struct IndexMemoryTests {
  @Test func `Dead bits are a set of ranks`() throws {
    var random = SeededGenerator(seed: 71)
    for entryCount in [1, 7, 8, 63, 64, 65, 4_095, 4_096, 4_097, 20_000] as [UInt64] {
      var bits = DeadBits(entryCount: entryCount)
      var set: Set<UInt64> = []
      var copies: [(DeadBits, Set<UInt64>)] = []
      for step in 0..<400 {
        let rank = random.next() % entryCount
        if step % 4 == 3 {
          bits.remove(rank)
          set.remove(rank)
        } else {
          bits.insert(rank)
          set.insert(rank)
        }
        if step % 100 == 50 { copies.append((bits, set)) }
      }
      // A copy keeps its state.
      for (bits, set) in copies + [(bits, set)] {
        #expect(bits.count == UInt64(set.count))
        #expect((0..<entryCount).allSatisfy { bits[$0] == set.contains($0) })
        var out = ByteBuffer()
        bits.encode(into: &out)
        #expect(out.count == bits.bitmapSize)
        let decoded = try DeadBits(
          decoding: out.bytes, entryCount: entryCount, deadCount: bits.count)
        #expect(decoded.count == bits.count)
        #expect((0..<entryCount).allSatisfy { decoded[$0] == set.contains($0) })
        #expect(throws: FormatError.self) {
          try DeadBits(decoding: out.bytes, entryCount: entryCount, deadCount: bits.count + 1)
        }
      }
    }
  }

  @Test func `A bit past the last entry is refused`() {
    for entryCount in [1, 7, 9, 4_097] as [UInt64] {
      var bytes = [UInt8](repeating: 0, count: Int((entryCount + 7) / 8))
      bytes[bytes.count - 1] = 0x80
      #expect(throws: FormatError.self) {
        try withBytes(of: bytes) { (bytes) throws(FormatError) in
          try DeadBits(decoding: bytes, entryCount: entryCount, deadCount: 1)
        }
      }
    }
  }

  @Test func `Sorted rows are sorted, wherever they are inserted`() {
    for order in 0..<4 {
      var random = SeededGenerator(seed: UInt64(order))
      var rows = SortedRows()
      var values: [UInt64] = []
      for number in 0..<3_000 {
        let value: UInt64 =
          switch order {
          case 0: UInt64(number)
          case 1: UInt64(10_000 - number)
          case 2: random.next() % 50
          default: random.next()
          }
        values.append(value)
        rows.insert(UInt32(number)) { a, b in
          (values[Int(a)], a) < (values[Int(b)], b)
        }
      }
      let expected = values.indices.sorted { (values[$0], $0) < (values[$1], $1) }
      #expect(rows.count == 3_000)
      for start in [0, 1, 25, 5_000, 9_999, UInt64.max / 2, .max] {
        var found: [Int] = []
        func isBelow(_ row: UInt32) -> Bool { values[Int(row)] < start }
        rows.forEach(from: isBelow) { row in
          found.append(Int(row))
          return found.count < 700
        }
        #expect(found == Array(expected.drop { values[$0] < start }.prefix(700)))
      }
    }
  }

  @Test func `The hash index finds the last row of each key`() {
    var random = SeededGenerator(seed: 72)
    var index = HashIndex()
    var hashes: [KeyHash] = []
    var last: [KeyHash: UInt32] = [:]
    for number in 0..<5_000 {
      // Many that fall into the same slot.
      let hash = KeyHash(first: random.next() % 700 * 1_024, second: random.next() % 3)
      hashes.append(hash)
      #expect(index.find(hash) { hashes[Int($0)] } == last[hash])
      index.set(hash, UInt32(number)) { hashes[Int($0)] }
      last[hash] = UInt32(number)
    }
    for (hash, row) in last { #expect(index.find(hash) { hashes[Int($0)] } == row) }
    #expect(index.find(KeyHash(first: 1, second: 9)) { hashes[Int($0)] } == nil)
    index.removeAll()
    #expect(last.keys.allSatisfy { hash in index.find(hash) { hashes[Int($0)] } == nil })
  }

  @Test func `So does one in parts, whichever part a key falls into`() {
    var random = SeededGenerator(seed: 76)
    var index = PartitionedHashIndex()
    var hashes: [KeyHash] = []
    var last: [KeyHash: UInt32] = [:]
    #expect(index.find(KeyHash(first: 0, second: 0)) { hashes[Int($0)] } == nil)
    for number in 0..<5_000 {
      let hash = KeyHash(
        first: random.next() % 100 << 57 | random.next() % 7, second: random.next() % 3)
      hashes.append(hash)
      #expect(index.find(hash) { hashes[Int($0)] } == last[hash])
      #expect(index.set(hash, UInt32(number)) { hashes[Int($0)] } == last[hash])
      last[hash] = UInt32(number)
    }
    for (hash, row) in last { #expect(index.find(hash) { hashes[Int($0)] } == row) }
    #expect(index.find(KeyHash(first: 1, second: 9)) { hashes[Int($0)] } == nil)
  }

  @Test func `An array in pieces is an array, and a copy of it keeps what it had`() {
    var random = SeededGenerator(seed: 77)
    var pieces = PiecewiseArray<UInt64>()
    var model: [UInt64] = []
    var copies: [(PiecewiseArray<UInt64>, [UInt64])] = []
    for step in 0..<5_000 {
      let value = random.next()
      if step % 3 == 2 {
        let place = Int(random.next() % UInt64(model.count))
        pieces[place] = value
        model[place] = value
      } else {
        pieces.append(value)
        model.append(value)
      }
      if step % 700 == 5 { copies.append((pieces, model)) }
    }
    pieces.append(contentsOf: model)
    model += model
    copies.append((pieces, model))
    for (copy, model) in copies {
      #expect(copy.count == model.count)
      #expect(copy.elementsEqual(model))
    }
  }

  @Test func `Interned strings keep their numbers`() {
    var random = SeededGenerator(seed: 73)
    var table = InternTable()
    var numbers: [[UInt8]: UInt32] = [:]
    for _ in 0..<4_000 {
      let item = Array("item \(random.next() % 900)".utf8.prefix(Int(random.next() % 9)))
      let number = withBytes(of: item) { table.index(of: $0) }
      #expect(number == numbers[item] ?? UInt32(numbers.count))
      numbers[item] = number
      #expect(table.items[Int(number)] == item)
    }
    #expect(table.items.count == numbers.count)
  }

  @Test func `A log of rows shows each reader what was below its bound`() {
    var random = SeededGenerator(seed: 74)
    let base: UInt64 = 1_000
    let log = RowLog(fileId: 1, base: base)
    struct Plain {
      var key: UInt64
      var order: HlcKey
      var collection: [UInt8]
      var number: UInt64
    }
    var plain: [Plain] = []
    for number in 0..<1_500 {
      let row = Plain(
        key: random.next() % 300,
        order: HlcKey(
          physical: random.next() % 200, counter: random.next() % 3,
          node: random.next() % 4 == 0 ? [] : [UInt8(random.next() % 5)]),
        collection: [UInt8(random.next() % 6)], number: base + UInt64(number))
      plain.append(row)
      let appended = withBytes(of: row.order.node) { node in
        withBytes(of: row.collection) { collection in
          log.append(
            RowLog.NewRow(
              hash: KeyHash(first: row.key, second: 0), physical: row.order.physical,
              counter: row.order.counter, node: node, collection: collection, block: row.number,
              slot: 0, contentChecksum: 0, isDeletion: false))
        }
      }
      #expect(appended == row.number)
    }
    #expect(log.end == base + 1_500)
    for bound in [0, base, base + 1, base + 700, base + 1_500, .max] as [UInt64] {
      let visible = plain.filter { $0.number < bound }
      var newest: [UInt64: Plain] = [:]
      for row in visible { newest[row.key] = row }
      for key in 0..<310 as Range<UInt64> {
        let found = log.newest(KeyHash(first: key, second: 0), below: bound)
        #expect(found?.number == newest[key]?.number)
      }
      let live = newest.values.sorted {
        $0.order == $1.order ? $0.number < $1.number : $0.order < $1.order
      }
      #expect(log.liveCount(below: bound) == live.count)
      for cursor in [
        nil, plain[3].order, plain[800].order, HlcKey(physical: 9_999, counter: 0, node: []),
      ]
        as [HlcKey?]
      {
        for fromRow in [UInt64.max, 0, base + 400] {
          let page = log.page(after: cursor, fromRow: fromRow, below: bound, limit: 90)
          let expected = live.drop { row in
            guard let cursor else { return false }
            return row.order < cursor || row.order == cursor && row.number < fromRow
          }.prefix(90)
          #expect(page.map(\.number) == expected.map(\.number))
          #expect(page.map(\.node) == expected.map(\.order.node))
        }
      }
      for collection in 0..<7 as Range<UInt8> {
        let found = withBytes(of: [collection]) { log.liveRows(in: $0, below: bound) }
        let expected = live.filter { $0.collection == [collection] }.map(\.number).sorted()
        #expect(found.map(\.number) == expected)
      }
    }
  }
}
