/// Merges the live records of all segments in HLC order, as one snapshot shows them.
///
/// Ties come in order of arrival: an older segment first, and within a segment by its log.
package struct Feed {
  private let engine: Engine
  private let state: Published
  private var sources: [Source] = []
  /// A binary heap of indices into `sources`, the least first.
  private var heap: [Int] = []

  /// What comes next.
  package struct Item {
    package var place: Engine.Place
    package var physical: UInt64
    package var counter: UInt64
    fileprivate var source: Int
    fileprivate var node: UInt32
    fileprivate var nodeBytes: [UInt8]?
  }

  /// Starts behind `cursor`, or at the first record that is equal to it, or at the beginning.
  package init(
    _ engine: Engine, _ state: Published, after cursor: HlcKey?, orEqual: Bool = false
  ) throws(ReadFailure) {
    self.engine = engine
    self.state = state
    for sealed in state.sealed {
      let index = try engine.index(of: sealed.segment)
      if let source = try SealedSource(sealed, index, after: cursor, orEqual: orEqual) {
        sources.append(.sealed(source))
      }
    }
    for log in state.tail {
      let source = RowSource(log, below: state.visibleRows, after: cursor, orEqual: orEqual)
      if source.current != nil { sources.append(.rows(source)) }
    }
    heap = Array(sources.indices)
    for position in stride(from: heap.count / 2 - 1, through: 0, by: -1) { try sift(position) }
  }

  private enum Source {
    case sealed(SealedSource)
    case rows(RowSource)
  }

  /// The next record, or nil at the end.
  package mutating func next() throws(ReadFailure) -> Item? {
    guard let top = heap.first else { return nil }
    let item: Item
    let hasMore: Bool
    switch sources[top] {
    case .sealed(let source):
      item = Item(
        place: Engine.Place(
          file: source.fileId, block: source.entry.block, slot: source.entry.slot),
        physical: source.entry.physical, counter: source.entry.counter, source: top,
        node: source.entry.node)
      hasMore = try source.advance()
    case .rows(let source):
      let found = source.current!
      item = Item(
        place: Engine.Place(
          file: source.fileId, block: found.row.block, slot: Int(found.row.slot)),
        physical: found.row.physical, counter: found.row.counter, source: top, node: 0,
        nodeBytes: found.node)
      hasMore = source.advance()
    }
    if hasMore {
      try sift(0)
    } else {
      let last = heap.removeLast()
      if !heap.isEmpty {
        heap[0] = last
        try sift(0)
      }
    }
    return item
  }

  /// The order key of an item.
  package func key(of item: Item) throws(ReadFailure) -> HlcKey {
    HlcKey(physical: item.physical, counter: item.counter, node: try node(of: item))
  }

  private func node(of item: Item) throws(ReadFailure) -> [UInt8] {
    if let node = item.nodeBytes { return node }
    guard case .sealed(let source) = sources[item.source] else { return [] }
    return try source.node(item.node)
  }

  // MARK: Heap

  private mutating func sift(_ start: Int) throws(ReadFailure) {
    var position = start
    while true {
      let left = 2 * position + 1
      guard left < heap.count else { return }
      var least = left
      if left + 1 < heap.count, try isBefore(heap[left + 1], heap[left]) { least = left + 1 }
      guard try isBefore(heap[least], heap[position]) else { return }
      heap.swapAt(least, position)
      position = least
    }
  }

  private func isBefore(_ a: Int, _ b: Int) throws(ReadFailure) -> Bool {
    let first = numbers(a)
    let second = numbers(b)
    let order = compareNumbers(first.0, first.1, second.0, second.1)
    if order != 0 { return order < 0 }
    let firstNode = try currentNode(a)
    let secondNode = try currentNode(b)
    let nodes = withBytes(of: firstNode) { x in withBytes(of: secondNode) { x.compare($0) } }
    return nodes == 0 ? a < b : nodes < 0
  }

  private func numbers(_ source: Int) -> (UInt64, UInt64) {
    switch sources[source] {
    case .sealed(let source): (source.entry.physical, source.entry.counter)
    case .rows(let source): (source.current!.row.physical, source.current!.row.counter)
    }
  }

  private func currentNode(_ source: Int) throws(ReadFailure) -> [UInt8] {
    switch sources[source] {
    case .sealed(let source): return try source.node(source.entry.node)
    case .rows(let source): return source.current!.node
    }
  }
}

/// The live entries of one sealed segment, from a rank on.
private final class SealedSource {
  let fileId: UInt64
  private let sealed: Published.Sealed
  private let index: SealedIndex
  @exclusivity(unchecked) private var rank: UInt64
  @exclusivity(unchecked) private var page: IndexPage
  @exclusivity(unchecked) private(set) var entry: SealedIndex.HlcEntry
  @exclusivity(unchecked) private var knownNode: (number: UInt32, bytes: [UInt8]) = (0, [])

  /// Nil if there is no live entry behind the cursor.
  init?(
    _ sealed: Published.Sealed, _ index: SealedIndex, after cursor: HlcKey?, orEqual: Bool
  ) throws(ReadFailure) {
    self.sealed = sealed
    self.index = index
    fileId = sealed.segment.info.fileId
    do throws(IndexError) {
      var rank: UInt64 = 0
      if let cursor { rank = try index.rank(after: cursor, orEqual: orEqual) }
      while rank < index.header.entryCount, sealed.dead[rank] { rank += 1 }
      guard rank < index.header.entryCount else { return nil }
      self.rank = rank
      page = try index.hlcPage(holding: rank)
      entry = try index.hlcEntry(rank, in: page)
    } catch {
      throw ReadFailure(error, sealed.segment)
    }
  }

  /// Moves to the next live entry; false if there is none.
  func advance() throws(ReadFailure) -> Bool {
    let before = rank
    repeat { rank += 1 } while rank < index.header.entryCount && sealed.dead[rank]
    guard rank < index.header.entryCount else { return false }
    do throws(IndexError) {
      let perPage = index.hlcEntriesPerPage
      if rank / perPage != before / perPage { page = try index.hlcPage(holding: rank) }
      entry = try index.hlcEntry(rank, in: page)
    } catch {
      throw ReadFailure(error, sealed.segment)
    }
    return true
  }

  func node(_ number: UInt32) throws(ReadFailure) -> [UInt8] {
    if number == knownNode.number { return knownNode.bytes }
    do throws(IndexError) {
      knownNode = (number, try index.node(number))
      return knownNode.bytes
    } catch {
      throw ReadFailure(error, sealed.segment)
    }
  }
}

/// The live rows of one segment in memory.
private final class RowSource {
  let fileId: UInt64
  private let log: RowLog
  private let bound: UInt64
  private var batch: [RowLog.Found]
  private var position = 0

  /// How many rows are taken out under the log's lock at a time.
  private static let batchSize = 256

  init(_ log: RowLog, below bound: UInt64, after cursor: HlcKey?, orEqual: Bool) {
    self.log = log
    self.bound = bound
    fileId = log.fileId
    batch = log.page(
      after: cursor, fromRow: orEqual ? 0 : .max, below: bound, limit: Self.batchSize)
  }

  var current: RowLog.Found? { position < batch.count ? batch[position] : nil }

  func advance() -> Bool {
    position += 1
    if position == batch.count, batch.count == Self.batchSize, let last = batch.last {
      batch = log.page(
        after: HlcKey(physical: last.row.physical, counter: last.row.counter, node: last.node),
        fromRow: last.number + 1, below: bound, limit: Self.batchSize)
      position = 0
    }
    return position < batch.count
  }
}
