/// Finds the newest version of a key for the writer, which also sees what is not published yet.
///
/// Used by the leader of the commit queue only.
package struct Lookup {
  /// The sealed segments, newest last, with their indexes once loaded.
  private var segments: [SealedSegment] = []
  private var indexes: ContiguousArray<SealedIndex> = []
  private var isPrepared = false
  private var probe = RedeliveryProbe()
  /// Nodes of these segments that were needed, which are few as a rule.
  private var nodes: [NodeName: [UInt8]] = [:]

  private struct NodeName: Hashable {
    var segment: UInt64
    var node: UInt32
  }

  private static let mostNodes = 1_024

  package init() {}

  /// Loads what every lookup needs: the filters of all segments, and the liveness, which this
  /// writer is about to change.
  package mutating func prepare(_ engine: Engine) throws(LogStoreError) {
    if isPrepared { return }
    segments = engine.snapshot.sealed.map(\.segment)
    if !segments.isEmpty { try engine.loadLiveness() }
    try loadIndexes(engine)
    isPrepared = true
  }

  private mutating func loadIndexes(_ engine: Engine) throws(LogStoreError) {
    let segments = segments
    probe.reset()
    indexes = try engine.reading { () throws(ReadFailure) in
      var result = ContiguousArray<SealedIndex>()
      for segment in segments { result.append(try engine.index(of: segment)) }
      return result
    }
  }

  /// The sealed segments have changed: they are looked at again before the next lookup.
  package mutating func invalidate() {
    isPrepared = false
    segments = []
    indexes = []
    probe.reset()
    nodes = [:]
  }

  /// Whether a record is known to be in the log already, without a lookup of its key; true is certain.
  @inline(__always)
  package mutating func isRedelivered(
    _ batch: PreparedBatch, _ record: Int, in engine: Engine
  ) -> Bool {
    probe.recognises(batch, record, in: engine)
  }

  /// A record was found to be a redelivery of what is there: those that follow it may be, too.
  package mutating func foundRedelivered(_ existing: Existing) {
    guard case .entry(let segment, let entry) = existing,
      let place = segments.lastIndex(where: { $0.info.fileId == segment.info.fileId })
    else { return }
    probe.found(entry.rank, of: indexes[place], segment)
  }

  /// To be called when a batch has been decided.
  package mutating func finish(_ engine: Engine) { probe.finish(engine) }

  /// The newest version of a key.
  package enum Existing {
    case row(RowLog, RowLog.Found)
    case entry(SealedSegment, SealedIndex.KeyEntry)

    /// Physical part and counter of its timestamp.
    var clock: (physical: UInt64, counter: UInt64) {
      switch self {
      case .row(_, let found): (found.row.physical, found.row.counter)
      case .entry(_, let entry): (entry.physical, entry.counter)
      }
    }
  }

  package mutating func find(
    _ batch: PreparedBatch, _ record: Int, in engine: Engine, active: RowLog?, sealing: RowLog?
  ) throws(LogStoreError) -> Existing? {
    try batch.withCollection(of: record) { (collection) throws(LogStoreError) in
      try find(
        batch.items[record].hash, in: engine, collection: collection, active: active,
        sealing: sealing)
    }
  }

  package mutating func find(
    _ hash: KeyHash, in engine: Engine, collection: UnsafeRawBufferPointer,
    active: RowLog?, sealing: RowLog?
  ) throws(LogStoreError) -> Existing? {
    if let active, let row = active.newest(hash, below: .max) { return .row(active, row) }
    if let sealing, let row = sealing.newest(hash, below: .max) { return .row(sealing, row) }
    while true {
      do throws(ReadFailure) {
        for place in indexes.indices.reversed() where indexes[place].mayContain(hash) {
          let entry: SealedIndex.KeyEntry?
          do throws(IndexError) {
            entry = try indexes[place].find(hash, in: collection)
          } catch {
            throw ReadFailure(error, segments[place])
          }
          if let entry { return .entry(segments[place], entry) }
        }
        return nil
      } catch {
        try mend(error, engine)
      }
    }
  }

  private mutating func mend(_ failure: ReadFailure, _ engine: Engine) throws(LogStoreError) {
    switch failure {
    case .failed(let error): throw error
    case .damagedIndex(let segment, let reason):
      try engine.rebuildIndex(of: segment, because: reason)
      try loadIndexes(engine)
    }
  }

  /// Whether a version is a deletion.
  package func isDeletion(
    _ existing: Existing, in engine: Engine
  ) throws(LogStoreError) -> Bool {
    switch existing {
    case .row(_, let found): return found.row.isDeletion
    case .entry(let segment, let entry):
      return try engine.reading { () throws(ReadFailure) in
        let index = try engine.index(of: segment)
        do throws(IndexError) {
          guard entry.rank < index.header.entryCount else {
            throw .damaged(FormatError("a rank past the last entry"))
          }
          return try index.hlcEntry(entry.rank).isDeletion
        } catch {
          throw ReadFailure(error, segment)
        }
      }
    }
  }

  /// How a new version relates to the one that is there.
  package enum Comparison {
    case newer
    case older
    /// Equal timestamps and equal content: a redelivery.
    case same
    /// Equal timestamps, but another content.
    case conflicting

    init(_ order: Int, _ checksum: UInt32, _ otherChecksum: UInt32) {
      self =
        order > 0
        ? .newer : order < 0 ? .older : checksum == otherChecksum ? .same : .conflicting
    }
  }

  package mutating func compare(
    _ batch: PreparedBatch, _ record: Int, with existing: Existing, in engine: Engine
  ) throws(LogStoreError) -> Comparison {
    let item = batch.items[record]
    switch existing {
    case .row(_, let row):
      var order = compareNumbers(
        item.parts.physical, item.parts.counter, row.row.physical, row.row.counter)
      if order == 0 { order = compareNodes(batch, record, row.node) }
      return Comparison(order, item.contentChecksum, row.row.contentChecksum)
    case .entry(let segment, let entry):
      var order = compareNumbers(
        item.parts.physical, item.parts.counter, entry.physical, entry.counter)
      if order == 0 {
        order = compareNodes(batch, record, try node(entry.node, of: segment, in: engine))
      }
      return Comparison(order, item.contentChecksum, entry.contentChecksum)
    }
  }

  private mutating func node(
    _ number: UInt32, of segment: SealedSegment, in engine: Engine
  ) throws(LogStoreError) -> [UInt8] {
    let name = NodeName(segment: segment.info.fileId, node: number)
    if let known = nodes[name] { return known }
    let node = try engine.reading { () throws(ReadFailure) in
      let index = try engine.index(of: segment)
      do throws(IndexError) {
        return try index.node(number)
      } catch {
        throw ReadFailure(error, segment)
      }
    }
    if nodes.count >= Self.mostNodes { nodes = [:] }
    nodes[name] = node
    return node
  }

  private func compareNodes(_ batch: PreparedBatch, _ record: Int, _ node: [UInt8]) -> Int {
    batch.withNode(of: record) { own in withBytes(of: node) { own.compare($0) } }
  }
}
