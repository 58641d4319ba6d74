/// A segment that is not sealed, in memory: one row a record in order of arrival, found by key and
/// in HLC order.
///
/// Rows are appended by the writer before they are durable and never change. Readers see those
/// below a bound of theirs, the number of rows that had been published; a row counts as superseded
/// for a reader if the row that superseded it is below that bound too. Row numbers are *global*:
/// they go on from one segment to the next.
///
/// Usable from any thread: everything is under one lock that is held briefly. A sealed log's rows
/// are read by the index builder through ``snapshot()`` without it.
package final class RowLog: Sendable {
  package let fileId: UInt64
  /// The global number of the first row.
  package let base: UInt64
  /// Keeps the segment's file: a reader may have it as rows when it has long been sealed, and more.
  package let hold = FileHold()
  /// Where its frames are.
  package let frames: FrameMap
  /// What its first frame follows: the end of the log before it.
  package let start: LogEnd

  private let contents: Locked<Contents>

  package struct Row: Sendable {
    package var hash: KeyHash
    package var physical: UInt64
    package var counter: UInt64
    /// Offset of the block in the segment.
    package var block: UInt64
    package var contentChecksum: UInt32
    package var node: UInt32
    package var collection: UInt32
    /// The row of this log that this one superseded, plus one; 0 if there is none.
    var older: UInt32 = 0
    package var slot: UInt8
    package var isDeletion: Bool

    /// Whether it superseded a row of this log.
    package var hasOlder: Bool { older > 0 }
  }

  /// An entry of a sealed segment, superseded by a row.
  package struct Mark: Sendable {
    package var row: UInt64
    package var segment: UInt64
    package var rank: UInt64
  }

  package static let never = UInt64.max

  /// `start` is what the segment follows; of no use for a log whose frames are not read again. Only
  /// an ordered log gives pages.
  package init(
    fileId: UInt64, base: UInt64, after start: LogEnd = LogEnd(), isOrdered: Bool = true
  ) {
    self.fileId = fileId
    self.base = base
    self.start = start
    frames = FrameMap(
      start: FrameMap.Boundary(
        offset: UInt64(SegmentHeader.size), sequence: start.sequence, checksum: start.checksum))
    contents = Locked(Contents(base: base, isOrdered: isOrdered))
  }

  package var count: Int { contents.withLock { $0.rows.count } }

  /// The global number behind the last row.
  package var end: UInt64 { base + UInt64(count) }
}

// MARK: - Writing

extension RowLog {
  /// One row to append. Borrowed: valid for the length of the call.
  package struct NewRow {
    package var hash: KeyHash
    package var physical: UInt64
    package var counter: UInt64
    package var node: UnsafeRawBufferPointer
    package var collection: UnsafeRawBufferPointer
    package var block: UInt64
    package var slot: UInt8
    package var contentChecksum: UInt32
    package var isDeletion: Bool

    package init(
      hash: KeyHash, physical: UInt64, counter: UInt64, node: UnsafeRawBufferPointer,
      collection: UnsafeRawBufferPointer, block: UInt64, slot: UInt8, contentChecksum: UInt32,
      isDeletion: Bool
    ) {
      self.hash = hash
      self.physical = physical
      self.counter = counter
      self.node = node
      self.collection = collection
      self.block = block
      self.slot = slot
      self.contentChecksum = contentChecksum
      self.isDeletion = isDeletion
    }
  }

  /// Appends a row, which supersedes the newest one of its key in this log. Answers its global
  /// number.
  @discardableResult
  package func append(_ new: NewRow) -> UInt64 {
    contents.withLock { $0.append(new) }
  }

  /// Says that a row of this log has been superseded by a row of a later one.
  package func supersede(_ row: UInt64, by number: UInt64) {
    contents.withLock { contents in
      contents.superseders[Int(row - base)] = number
      contents.supersededLater.append(Supersession(row: UInt32(row - base), number: number))
    }
  }

  /// A row of a log, and the global number of the row of a later one that superseded it.
  package struct Supersession: Sendable {
    package var row: UInt32
    package var number: UInt64
  }

  /// The rows of this log that rows of later ones have superseded, in the order of those.
  package var supersededLater: PiecewiseArray<Supersession> {
    contents.withLock { $0.supersededLater }
  }

  /// Says where the last frame ends.
  package func finish(at length: UInt64) { contents.withLock { $0.length = length } }

  /// Where the last frame of a log that gets no more ends.
  package var finalLength: UInt64 { contents.withLock { $0.length } }

  /// Remembers that a row of this log superseded an entry of a sealed segment.
  package func add(_ mark: Mark) {
    contents.withLock { $0.marks.append(mark) }
  }

  /// Remembers that rows of this log superseded entries of sealed segments.
  package func add(_ marks: [Mark]) {
    contents.withLock { $0.marks.append(contentsOf: marks) }
  }
}

// MARK: - Reading

extension RowLog {
  /// A row with what is needed to order it among rows of other logs.
  package struct Found: Sendable {
    package var number: UInt64
    package var row: Row
    package var node: [UInt8]
  }

  /// The newest row of a key below `bound`.
  package func newest(_ hash: KeyHash, below bound: UInt64) -> Found? {
    contents.withLock { contents in
      guard var index = contents.byKey.find(hash, hash: { contents.rows[Int($0)].hash }) else {
        return nil
      }
      while base + UInt64(index) >= bound {
        let older = contents.rows[Int(index)].older
        if older == 0 { return nil }
        index = older - 1
      }
      return contents.found(index)
    }
  }

  /// Up to `limit` live rows below `bound` in HLC order, whose key is greater than `cursor`. Of the
  /// rows with an equal key those with a number of at least `fromRow`.
  package func page(
    after cursor: HlcKey?, fromRow: UInt64 = .max, below bound: UInt64, limit: Int
  ) -> [Found] {
    contents.withLock { contents in
      var result: [Found] = []
      contents.byHlc.forEach(
        from: { index in
          guard let cursor else { return false }
          let row = contents.rows[Int(index)]
          var order = compareNumbers(row.physical, row.counter, cursor.physical, cursor.counter)
          if order == 0 {
            order = withBytes(of: contents.nodes.items[Int(row.node)]) { a in
              withBytes(of: cursor.node) { b in a.compare(b) }
            }
          }
          return order == 0 ? base + UInt64(index) < fromRow : order < 0
        },
        { index in
          if contents.isLive(index, below: bound) { result.append(contents.found(index)) }
          return result.count < limit
        })
      return result
    }
  }

  /// The live rows below `bound` of one collection, in order of arrival.
  package func liveRows(in collection: UnsafeRawBufferPointer, below bound: UInt64) -> [Found] {
    contents.withLock { contents in
      guard
        let number = contents.collections.items.firstIndex(where: {
          withBytes(of: $0) { $0.equals(collection) }
        })
      else { return [] }
      return contents.rows.indices.compactMap { index in
        contents.rows[index].collection == UInt32(number)
          && contents.isLive(UInt32(index), below: bound)
          ? contents.found(UInt32(index)) : nil
      }
    }
  }

  /// Whether any row is a deletion.
  package var hasDeletions: Bool { contents.withLock { $0.rows.contains { $0.isDeletion } } }

  /// How many rows below `bound` are live.
  package func liveCount(below bound: UInt64) -> Int {
    contents.withLock { contents in
      let visible = Int(min(UInt64(contents.rows.count), bound > base ? bound - base : 0))
      return contents.superseders[..<visible].count { $0 >= bound }
    }
  }

  /// How many of them are deletions.
  package func liveDeletionCount(below bound: UInt64) -> Int {
    contents.withLock { contents in
      contents.rows.indices.count {
        contents.rows[$0].isDeletion && contents.isLive(UInt32($0), below: bound)
      }
    }
  }

  /// Everything, for the builder of the index and for checks.
  package struct Snapshot: Sendable {
    package var base: UInt64
    package var rows: PiecewiseArray<Row>
    package var superseders: PiecewiseArray<UInt64>
    package var nodes: [[UInt8]]
    package var collections: [[UInt8]]
    package var marks: PiecewiseArray<Mark>
  }

  /// What the log holds now. Shares its storage: for a log that gets no more rows.
  package func snapshot() -> Snapshot {
    contents.withLock { contents in
      Snapshot(
        base: base, rows: contents.rows, superseders: contents.superseders,
        nodes: contents.nodes.items,
        collections: contents.collections.items, marks: contents.marks)
    }
  }

  /// Gives marks on entries of replaced segments their new place; those that answer nil go.
  package func moveMarks(from segments: Set<UInt64>, _ move: (Mark) -> Mark?) {
    contents.withLock { contents in
      guard contents.marks.contains(where: { segments.contains($0.segment) }) else { return }
      var moved = PiecewiseArray<Mark>()
      for mark in contents.marks {
        if let place = segments.contains(mark.segment) ? move(mark) : mark { moved.append(place) }
      }
      contents.marks = moved
    }
  }

  /// The memory of the log, for whoever is to give it back.
  package var memory: any Sendable { contents.withLock { $0 } }

  package var supersededEntries: PiecewiseArray<Mark> { contents.withLock { $0.marks } }
}

/// What a log holds: one value, so that reaching several parts of it is one access.
private struct Contents {
  let base: UInt64
  var rows = PiecewiseArray<RowLog.Row>()
  /// For each row the global number of the row that superseded it, or `never`.
  var superseders = PiecewiseArray<UInt64>()
  var byKey = PartitionedHashIndex()
  var byHlc = SortedRows()
  /// Whether rows are kept in HLC order, which only those who read pages need.
  let isOrdered: Bool
  var nodes = InternTable()
  var collections = InternTable()
  /// Entries of sealed segments that rows of this log superseded.
  var marks = PiecewiseArray<RowLog.Mark>()
  /// Rows that rows of later logs superseded.
  var supersededLater = PiecewiseArray<RowLog.Supersession>()
  /// The length of the segment once no frame is added any more.
  var length: UInt64 = 0

  init(base: UInt64, isOrdered: Bool) {
    self.base = base
    self.isOrdered = isOrdered
    // Number 0 is the absent node, as in the index.
    _ = nodes.index(of: UnsafeRawBufferPointer(start: nil, count: 0))
  }

  mutating func append(_ new: RowLog.NewRow) -> UInt64 {
    let index = UInt32(rows.count)
    let number = base + UInt64(index)
    rows.append(
      RowLog.Row(
        hash: new.hash, physical: new.physical, counter: new.counter, block: new.block,
        contentChecksum: new.contentChecksum,
        node: new.node.isEmpty ? 0 : nodes.index(of: new.node),
        collection: collections.index(of: new.collection), slot: new.slot,
        isDeletion: new.isDeletion))
    superseders.append(RowLog.never)
    if isOrdered { Self.insert(index, into: &byHlc, of: rows, nodes.items) }
    if let older = Self.set(new.hash, index, in: &byKey, of: rows) {
      superseders[Int(older)] = number
      rows[Int(index)].older = older + 1
    }
    return number
  }

  // They take their parts one by one, since these are accessed at the same time.

  private static func insert(
    _ index: UInt32, into order: inout SortedRows, of rows: PiecewiseArray<RowLog.Row>,
    _ nodes: [[UInt8]]
  ) {
    order.insert(index) { isBefore($0, $1, rows, nodes) }
  }

  private static func set(
    _ hash: KeyHash, _ index: UInt32, in keys: inout PartitionedHashIndex,
    of rows: PiecewiseArray<RowLog.Row>
  ) -> UInt32? {
    keys.set(hash, index, hash: { rows[Int($0)].hash })
  }

  private static func isBefore(
    _ a: UInt32, _ b: UInt32, _ rows: PiecewiseArray<RowLog.Row>, _ nodes: [[UInt8]]
  ) -> Bool {
    let order = compare(rows[Int(a)], rows[Int(b)], nodes)
    return order == 0 ? a < b : order < 0
  }

  private static func compare(_ a: RowLog.Row, _ b: RowLog.Row, _ nodes: [[UInt8]]) -> Int {
    let numbers = compareNumbers(a.physical, a.counter, b.physical, b.counter)
    if numbers != 0 || a.node == b.node { return numbers }
    return withBytes(of: nodes[Int(a.node)]) { first in
      withBytes(of: nodes[Int(b.node)]) { second in first.compare(second) }
    }
  }

  func found(_ index: UInt32) -> RowLog.Found {
    let row = rows[Int(index)]
    return RowLog.Found(
      number: base + UInt64(index), row: row, node: nodes.items[Int(row.node)])
  }

  func isLive(_ index: UInt32, below bound: UInt64) -> Bool {
    base + UInt64(index) < bound && superseders[Int(index)] >= bound
  }
}

/// Whoever has one uses the files of a segment: once the segment has been replaced, they are removed
/// when the last reference goes.
package final class FileHold: Sendable {
  private let onRelease = Locked<(@Sendable () -> Void)?>(nil)

  package init() {}

  /// Has `work` done when nobody has this any more.
  package func whenReleased(_ work: @escaping @Sendable () -> Void) {
    onRelease.withLock { $0 = work }
  }

  deinit { onRelease.withLock { $0 }?() }
}
