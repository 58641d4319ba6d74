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
///
/// `@unchecked Sendable`: every stored property that can change is only touched under `lock`.
package final class RowLog: @unchecked Sendable {
  package let fileId: UInt64
  /// The global number of the first row.
  package let base: UInt64
  /// Keeps the segment's file: a reader may have it as rows when it has long been sealed, and more.
  package let hold = FileHold()
  /// Where its frames are.
  package let frames: FrameMap
  /// What its first frame follows: the end of the log before it.
  package let start: LogEnd

  private let lock = Lock()
  private var rows: ContiguousArray<Row> = []
  /// For each row the global number of the row that superseded it, or `never`.
  private var superseders: ContiguousArray<UInt64> = []
  private var byKey = HashIndex()
  private var byHlc = SortedRows()
  private var nodes = InternTable()
  private var collections = InternTable()
  /// Entries of sealed segments that rows of this log superseded.
  private var marks: [Mark] = []
  /// The length of the segment once no frame is added any more.
  private var length: UInt64 = 0

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

  /// `start` is what the segment follows; of no use for a log whose frames are not read again.
  package init(fileId: UInt64, base: UInt64, after start: LogEnd = LogEnd()) {
    self.fileId = fileId
    self.base = base
    self.start = start
    frames = FrameMap(
      start: FrameMap.Boundary(
        offset: UInt64(SegmentHeader.size), sequence: start.sequence, checksum: start.checksum))
    // Number 0 is the absent node, as in the index.
    _ = nodes.index(of: UnsafeRawBufferPointer(start: nil, count: 0))
  }

  package var count: Int { lock.withLock { rows.count } }

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
    lock.withLock {
      let index = UInt32(rows.count)
      let number = base + UInt64(index)
      rows.append(
        Row(
          hash: new.hash, physical: new.physical, counter: new.counter, block: new.block,
          contentChecksum: new.contentChecksum,
          node: new.node.isEmpty ? 0 : nodes.index(of: new.node),
          collection: collections.index(of: new.collection), slot: new.slot,
          isDeletion: new.isDeletion))
      superseders.append(Self.never)
      var olderRow: UInt32 = 0
      rows.withUnsafeBufferPointer { rows in
        if let older = byKey.find(new.hash, hash: { rows[Int($0)].hash }) {
          superseders[Int(older)] = number
          olderRow = older + 1
        }
        byKey.set(new.hash, index, hash: { rows[Int($0)].hash })
        byHlc.insert(index) { isBefore($0, $1, rows) }
      }
      rows[Int(index)].older = olderRow
      return number
    }
  }

  /// Says that a row of this log has been superseded by a row of a later one.
  package func supersede(_ row: UInt64, by number: UInt64) {
    lock.withLock { superseders[Int(row - base)] = number }
  }

  /// Says where the last frame ends.
  package func finish(at length: UInt64) { lock.withLock { self.length = length } }

  /// Where the last frame of a log that gets no more ends.
  package var finalLength: UInt64 { lock.withLock { length } }

  /// Remembers that a row of this log superseded an entry of a sealed segment.
  package func add(_ mark: Mark) {
    lock.withLock { marks.append(mark) }
  }

  private func isBefore(_ a: UInt32, _ b: UInt32, _ rows: UnsafeBufferPointer<Row>) -> Bool {
    let order = compare(rows[Int(a)], rows[Int(b)])
    return order == 0 ? a < b : order < 0
  }

  private func compare(_ a: Row, _ b: Row) -> Int {
    let numbers = compareNumbers(a.physical, a.counter, b.physical, b.counter)
    if numbers != 0 || a.node == b.node { return numbers }
    return withBytes(of: nodes.items[Int(a.node)]) { first in
      withBytes(of: nodes.items[Int(b.node)]) { second in first.compare(second) }
    }
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
    lock.withLock {
      guard var index = byKey.find(hash, hash: { rows[Int($0)].hash }) else { return nil }
      while base + UInt64(index) >= bound {
        let older = rows[Int(index)].older
        if older == 0 { return nil }
        index = older - 1
      }
      return found(index)
    }
  }

  private func found(_ index: UInt32) -> Found {
    let row = rows[Int(index)]
    return Found(number: base + UInt64(index), row: row, node: nodes.items[Int(row.node)])
  }

  /// Up to `limit` live rows below `bound` in HLC order, whose key is greater than `cursor`. Of the
  /// rows with an equal key those with a number of at least `fromRow`.
  package func page(
    after cursor: HlcKey?, fromRow: UInt64 = .max, below bound: UInt64, limit: Int
  ) -> [Found] {
    lock.withLock {
      var result: [Found] = []
      byHlc.forEach(
        from: { index in
          guard let cursor else { return false }
          let row = rows[Int(index)]
          var order = compareNumbers(row.physical, row.counter, cursor.physical, cursor.counter)
          if order == 0 {
            order = withBytes(of: nodes.items[Int(row.node)]) { a in
              withBytes(of: cursor.node) { b in a.compare(b) }
            }
          }
          return order == 0 ? base + UInt64(index) < fromRow : order < 0
        },
        { index in
          if isLive(index, below: bound) { result.append(found(index)) }
          return result.count < limit
        })
      return result
    }
  }

  private func isLive(_ index: UInt32, below bound: UInt64) -> Bool {
    base + UInt64(index) < bound && superseders[Int(index)] >= bound
  }

  /// The live rows below `bound` of one collection, in order of arrival.
  package func liveRows(in collection: UnsafeRawBufferPointer, below bound: UInt64) -> [Found] {
    lock.withLock {
      guard
        let number = collections.items.firstIndex(where: {
          withBytes(of: $0) { $0.equals(collection) }
        })
      else { return [] }
      return rows.indices.compactMap { index in
        rows[index].collection == UInt32(number) && isLive(UInt32(index), below: bound)
          ? found(UInt32(index)) : nil
      }
    }
  }

  /// How many rows below `bound` are live.
  package func liveCount(below bound: UInt64) -> Int {
    lock.withLock {
      let visible = Int(min(UInt64(rows.count), bound > base ? bound - base : 0))
      return superseders[..<visible].count { $0 >= bound }
    }
  }

  /// How many of them are deletions.
  package func liveDeletionCount(below bound: UInt64) -> Int {
    lock.withLock {
      rows.indices.count { rows[$0].isDeletion && isLive(UInt32($0), below: bound) }
    }
  }

  /// Everything, for the builder of the index and for checks.
  package struct Snapshot: Sendable {
    package var base: UInt64
    package var rows: ContiguousArray<Row>
    package var superseders: ContiguousArray<UInt64>
    package var nodes: [[UInt8]]
    package var collections: [[UInt8]]
    package var marks: [Mark]
  }

  /// What the log holds now. Shares its storage: for a log that gets no more rows.
  package func snapshot() -> Snapshot {
    lock.withLock {
      Snapshot(
        base: base, rows: rows, superseders: superseders, nodes: nodes.items,
        collections: collections.items, marks: marks)
    }
  }

  /// Gives marks on entries of replaced segments their new place; those that answer nil go.
  package func moveMarks(from segments: Set<UInt64>, _ move: (Mark) -> Mark?) {
    lock.withLock {
      guard marks.contains(where: { segments.contains($0.segment) }) else { return }
      marks = marks.compactMap { segments.contains($0.segment) ? move($0) : $0 }
    }
  }

  package var supersededEntries: [Mark] { lock.withLock { marks } }
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
