import AirDbLogStore
import TestSupport
import Testing

/// The index of a sealed segment, built from rows and asked back.
@Suite struct IndexLookupTests {
  /// Rows as a segment would have them, and the answers that its index must give.
  private struct Sample {
    let log = RowLog(fileId: 9, base: 100)
    /// The last row of each key, in HLC order, then order of arrival: the position is the rank.
    var ranked: [RowLog.Row] = []
    var keys: [Int: RowLog.Row] = [:]
    let secret = KeyHashSecret(first: 1, second: 2)

    struct Shape {
      var rows: Int
      var keys: Int
      var physicals: UInt64
      var counters: UInt64
      var nodes: Int
      var collections: Int
    }

    init(_ shape: Shape, seed: UInt64) {
      var random = SeededGenerator(seed: seed)
      var last: [Int: Int] = [:]
      for number in 0..<shape.rows {
        let key = Int.random(in: 0..<shape.keys, using: &random)
        let node = Self.node(Int.random(in: 0..<shape.nodes, using: &random))
        let collection = Self.collection(key % shape.collections)
        let hash = hash(key, shape)
        withBytes(of: node) { node in
          withBytes(of: collection) { collection in
            _ = log.append(
              RowLog.NewRow(
                hash: hash, physical: 1_700_000_000_000 + random.next() % shape.physicals,
                counter: random.next() % shape.counters, node: node, collection: collection,
                block: UInt64(number / 5) * 1_000, slot: UInt8(number % 5),
                contentChecksum: UInt32(truncatingIfNeeded: random.next()),
                isDeletion: random.next() % 4 == 0))
          }
        }
        last[key] = number
      }
      let rows = log.snapshot().rows
      keys = last.mapValues { rows[$0] }
      let nodes = log.snapshot().nodes
      ranked = last.values.sorted().map { rows[$0] }.enumerated().sorted { a, b in
        let order = Self.key(a.element, nodes).compare(Self.key(b.element, nodes))
        return order == 0 ? a.offset < b.offset : order < 0
      }.map(\.element)
    }

    func hash(_ key: Int, _ shape: Shape) -> KeyHash {
      secret.hash(
        String(decoding: Self.collection(key % shape.collections), as: UTF8.self), "\(key)")
    }

    static func node(_ number: Int) -> [UInt8] {
      number == 0 ? [] : Array("node \(number % 7) \(number)".utf8)
    }

    static func collection(_ number: Int) -> [UInt8] {
      number == 0 ? [] : Array("collection \(number % 3) \(number)".utf8)
    }

    static func key(_ row: RowLog.Row, _ nodes: [[UInt8]]) -> HlcKey {
      HlcKey(physical: row.physical, counter: row.counter, node: nodes[Int(row.node)])
    }

    func build() -> (bytes: [UInt8], rowOfRank: [UInt32]) {
      let result = IndexBuilder.build(
        log.snapshot(),
        IndexBuilder.Segment(
          storeId: StoreId(first: 3, second: 4), fileId: 9, length: 1 << 20, firstSequence: 1,
          lastSequence: 2, lastChecksum: 5))
      return (Array(result.bytes.bytes), result.rowOfRank)
    }
  }

  private static let shapes: [Sample.Shape] = [
    Sample.Shape(rows: 1, keys: 1, physicals: 1, counters: 1, nodes: 1, collections: 1),
    Sample.Shape(rows: 10, keys: 5, physicals: 1, counters: 1, nodes: 1, collections: 1),
    Sample.Shape(
      rows: 3_000, keys: 2_000, physicals: .max >> 8, counters: .max, nodes: 60, collections: 30),
    // Runs of equal numbers over many pages, told apart by nodes or by nothing.
    Sample.Shape(rows: 2_500, keys: 5_000, physicals: 1, counters: 1, nodes: 400, collections: 2),
    Sample.Shape(rows: 2_000, keys: 3_000, physicals: 2, counters: 2, nodes: 2, collections: 1),
    Sample.Shape(rows: 1_500, keys: 1_000, physicals: 300, counters: 1, nodes: 1, collections: 900),
    Sample.Shape(
      rows: 1_000, keys: 3, physicals: 1_000, counters: 70_000, nodes: 300, collections: 3),
  ]

  private func index(_ bytes: [UInt8]) throws(IndexError) -> SealedIndex {
    try SealedIndex(PageSource(fileId: 9, .memory(bytes), cache: BlockCache(capacity: 64 << 10))) {
      $0.lastChecksum == 5
    }
  }

  @Test(arguments: shapes.indices)
  func `Keys are found, and only those`(number: Int) throws {
    let shape = Self.shapes[number]
    let sample = Sample(shape, seed: UInt64(number))
    let (bytes, rowOfRank) = sample.build()
    let index = try index(bytes)
    #expect(Int(index.header.entryCount) == sample.ranked.count)
    #expect(Int(index.header.recordCount) == shape.rows)
    #expect(bytes.count == Int(index.header.pageCount) * 4_096)
    let rows = sample.log.snapshot().rows
    for (rank, row) in sample.ranked.enumerated() { #expect(rows[Int(rowOfRank[rank])] == row) }

    for key in 0..<(shape.keys + 200) {
      let hash = sample.hash(key, shape)
      let collection = Sample.collection(key % shape.collections)
      let found = try withBytes(of: collection) { (name) throws(IndexError) in
        try index.find(hash, in: name)
      }
      guard let row = sample.keys[key] else {
        #expect(found == nil)
        continue
      }
      #expect(index.mayContain(hash))
      let entry = try #require(found)
      #expect(sample.ranked[Int(entry.rank)] == row)
      #expect(entry.hash == hash && entry.contentChecksum == row.contentChecksum)
      #expect(entry.physical == row.physical && entry.counter == row.counter)
      // In another collection the same hash is not found.
      let elsewhere = try withBytes(of: Array("elsewhere".utf8)) { (name) throws(IndexError) in
        try index.find(hash, in: name)
      }
      #expect(elsewhere == nil)
    }
  }

  @Test(arguments: shapes.indices)
  func `The HLC order, its nodes and its collections are those of the rows`(number: Int) throws {
    let shape = Self.shapes[number]
    let sample = Sample(shape, seed: UInt64(number))
    let index = try index(sample.build().bytes)
    let snapshot = sample.log.snapshot()
    for (rank, row) in sample.ranked.enumerated() {
      let entry = try index.hlcEntry(UInt64(rank))
      #expect(entry.physical == row.physical && entry.counter == row.counter)
      #expect(entry.block == row.block && entry.slot == Int(row.slot))
      #expect(entry.isDeletion == row.isDeletion)
      #expect(try index.node(entry.node) == snapshot.nodes[Int(row.node)])
      let collection = index.collections[Int(entry.collection)]
      #expect(collection.name == snapshot.collections[Int(row.collection)])
    }
    // The key entries of each collection are its range, in the order of their hashes.
    var next: UInt64 = 0
    for (place, collection) in index.collections.enumerated() {
      #expect(collection.firstKey == next && collection.keyCount > 0)
      #expect(withBytes(of: collection.name) { index.number(of: $0) } == place)
      var last: KeyHash?
      for position in next..<(next + collection.keyCount) {
        let entry = try index.key(at: position)
        #expect(last.map { $0 < entry.hash } ?? true)
        last = entry.hash
        #expect(try Int(index.hlcEntry(entry.rank).collection) == place)
      }
      next += collection.keyCount
    }
    #expect(next == index.header.entryCount)
    let names = index.collections.map(\.name)
    #expect(zip(names, names.dropFirst()).allSatisfy { $0.lexicographicallyPrecedes($1) })
  }

  @Test(arguments: shapes.indices)
  func `A cursor is found where a linear search finds it`(number: Int) throws {
    let sample = Sample(Self.shapes[number], seed: UInt64(number))
    let index = try index(sample.build().bytes)
    let nodes = sample.log.snapshot().nodes
    let keys = sample.ranked.map { Sample.key($0, nodes) }
    var random = SeededGenerator(seed: 61)
    var cursors = (0..<150).map { _ in keys.randomElement(using: &random)! }
    for place in 0..<100 {
      var near = cursors[place]
      switch place % 5 {
      case 0: near.counter &+= 1
      case 1: near.physical &-= 1
      case 2: near.node.append(0)
      case 3: near.node = near.node.dropLast()
      default: near.counter &-= 1
      }
      cursors.append(near)
    }
    cursors += [
      HlcKey(physical: 0, counter: 0, node: [UInt8]()),
      HlcKey(physical: .max, counter: .max, node: [255]), keys[0], keys[keys.count - 1],
    ]
    for cursor in cursors {
      let after = keys.firstIndex { $0 > cursor } ?? keys.count
      #expect(try index.rank(after: cursor) == UInt64(after))
      let from = keys.firstIndex { $0 >= cursor } ?? keys.count
      #expect(try index.rank(after: cursor, orEqual: true) == UInt64(from))
    }
  }

  @Test func `A damaged index is refused, or its undamaged pages are read`() throws {
    let shape = Self.shapes[2]
    let sample = Sample(shape, seed: 2)
    let bytes = sample.build().bytes
    var random = SeededGenerator(seed: 62)
    for _ in 0..<300 {
      var other = bytes
      let bit = Int(random.next() % UInt64(bytes.count * 8))
      other[bit / 8] ^= 1 << UInt8(bit % 8)
      guard let index = try? index(other) else { continue }
      // Each answer is right or an error.
      for key in stride(from: 0, to: shape.keys, by: 37) {
        let collection = Sample.collection(key % shape.collections)
        let found: SealedIndex.KeyEntry??
        do throws(IndexError) {
          found = .some(
            try withBytes(of: collection) { (name) throws(IndexError) in
              try index.find(sample.hash(key, shape), in: name)
            })
        } catch {
          found = nil
        }
        if let found { #expect(found?.contentChecksum == sample.keys[key]?.contentChecksum) }
      }
    }
    for pages in 0..<(bytes.count / 4_096) {
      let cut = Array(bytes[..<(pages * 4_096)])
      #expect(throws: IndexError.self) {
        let index = try index(cut)
        _ = try index.hlcEntry(0)
        _ = try index.key(at: index.header.entryCount - 1)
        _ = try index.node(index.header.nodeCount - 1)
      }
    }
  }

  @Test func `Hostile index headers are refused or read, and never trap`() {
    let sample = Sample(Self.shapes[4], seed: 4)
    let bytes = sample.build().bytes
    for place in 4..<184 {
      for value in [0, 1, 0x7F, 0x80, 0xFF] as [UInt8] {
        for width in [1, 4, 8] {
          var other = bytes
          for index in place..<(place + width) { other[index] = value }
          seal(page: 0, of: &other, file: 9)
          exercise(other, sample)
        }
      }
    }
  }

  @Test func `Hostile index pages are refused or read, and never trap`() {
    let sample = Sample(Self.shapes[2], seed: 2)
    let bytes = sample.build().bytes
    var random = SeededGenerator(seed: 63)
    for round in 0..<600 {
      var other = bytes
      let page = 1 + round % (bytes.count / 4_096 - 1)
      for _ in 0..<3 {
        let place = page * 4_096 + 4 + Int(random.next() % 4_080)
        let value = [0, 1, 0x7F, 0xFF, UInt8(truncatingIfNeeded: random.next())][round % 5]
        for index in place..<(place + [1, 4, 8][round % 3]) { other[index] = value }
      }
      seal(page: page, of: &other, file: 9)
      exercise(other, sample)
    }
  }

  /// Asks everything of an index that may say anything.
  private func exercise(_ bytes: [UInt8], _ sample: Sample) {
    guard let index = try? index(bytes) else { return }
    for key in 0..<40 {
      let hash = sample.secret.hash("", "\(key)")
      for collection in index.collections.prefix(3) {
        _ = withBytes(of: collection.name) { try? index.find(hash, in: $0) }
      }
    }
    let count = index.header.entryCount
    for position in [0, 1, count / 2, count - 1] where position < count {
      _ = try? index.key(at: position)
      if let entry = try? index.hlcEntry(position) { _ = try? index.node(entry.node) }
    }
    for node in [0, 1, index.header.nodeCount - 1, .max] { _ = try? index.node(node) }
    let cursor = HlcKey(physical: 1_700_000_000_000, counter: 1, node: [1])
    _ = try? index.rank(after: cursor)
  }

  private func seal(page: Int, of bytes: inout [UInt8], file: UInt64) {
    let start = page * 4_096
    let checksum = bytes[(start + 4)..<(start + 4_096)].withUnsafeBytes {
      Checksum.bound(.page, file: file, offset: UInt64(start), $0)
    }
    bytes.withUnsafeMutableBytes {
      $0.storeBytes(of: checksum.littleEndian, toByteOffset: start, as: UInt32.self)
    }
  }
}

private func == (a: RowLog.Row, b: RowLog.Row) -> Bool {
  a.hash == b.hash && a.block == b.block && a.slot == b.slot && a.physical == b.physical
}
