internal import HlcText

/// Pages of the feed, as the adapter and the native API give them.
///
/// Each holds its snapshot to the end, and with it the files of segments that are replaced meanwhile.
extension Engine {
  /// Parses a cursor, which must be of the store's kind of clock.
  package func cursor(
    _ text: String, _ state: Published
  ) throws(LogStoreError) -> HlcKey {
    let key = withUTF8(text) { bytes -> (HlcKey, HlcPhysicalKind?)? in
      guard bytes.count <= Limits.hlc,
        let parts = parseHlc(bytes.assumingMemoryBound(to: UInt8.self), format: options.format)
      else { return nil }
      return (
        HlcKey(
          physical: parts.physical, counter: parts.counter,
          node: UnsafeRawBufferPointer(rebasing: bytes[parts.nodeStart...])), parts.kind
      )
    }
    guard let (key, kind) = key else {
      throw LogStoreError(
        .invalidTimestamp, "The cursor does not parse as a timestamp: \"\(text)\".")
    }
    if let kind, let pinned = state.physicalKind, kind != pinned {
      throw LogStoreError(
        .mixedTimestamps, "The cursor is of another kind of clock than the store's: \"\(text)\".")
    }
    return key
  }

  /// The adapter's page: ascending, strictly after the cursor, and never ending inside a run of
  /// equal timestamps.
  package func adapterPage(
    after text: String?, limit: Int
  ) throws(LogStoreError) -> [ChangeRecord] {
    guard limit > 0 else { return [] }
    try loadLiveness()
    let state = snapshot
    defer { withExtendedLifetime(state) {} }
    let start: HlcKey? = if let text { try cursor(text, state) } else { nil }
    return try readingRecords { (reader) throws(ReadFailure) in
      var feed = try Feed(self, state, after: start)
      var builder = PageBuilder(self, reader, limit: limit)
      var last: HlcKey?
      while let item = try feed.next() {
        if builder.records.count >= limit {
          // Past the limit only the rest of the run.
          let key = try feed.key(of: item)
          if let last, key != last { break }
          try builder.append(item.place)
          continue
        }
        try builder.append(item.place)
        if builder.records.count == limit { last = try feed.key(of: item) }
      }
      return builder.records
    }
  }

  /// Where a native page ended.
  package struct PageEnd {
    package var text: String
    package var sequence: UInt64
    package var ordinal: UInt64
  }

  /// A native page: limited by records and bytes, free to end inside a run.
  package func page(
    after end: PageEnd?, limit: Int, byteLimit: Int
  ) throws(LogStoreError) -> (records: [ChangeRecord], end: PageEnd?, isLast: Bool) {
    guard limit > 0 else { return ([], end, false) }
    try loadLiveness()
    let state = snapshot
    defer { withExtendedLifetime(state) {} }
    let start: HlcKey? = if let end { try cursor(end.text, state) } else { nil }
    return try readingRecords { (reader) throws(ReadFailure) in
      var feed = try Feed(self, state, after: start, orEqual: true)
      var builder = PageBuilder(self, reader, limit: limit)
      var isInFirstRun = start != nil
      var lastPlace: Place?
      while let item = try feed.next() {
        if isInFirstRun, let start, let end {
          if try feed.key(of: item) == start {
            let arrival = try builder.arrival(of: item.place)
            if arrival <= (end.sequence, end.ordinal) { continue }
          } else {
            isInFirstRun = false
          }
        }
        if builder.records.count >= limit || builder.bytes >= byteLimit {
          return (builder.records, try builder.end(at: lastPlace), false)
        }
        try builder.append(item.place)
        lastPlace = item.place
      }
      return (builder.records, try builder.end(at: lastPlace) ?? end, true)
    }
  }

  /// The live records of a collection whose ids start with `prefix`, those with the `limit` least
  /// ids behind `after`, ascending by the bytes of the id; with deletions or without.
  package func records(
    in collection: String, idPrefix: String, after: String?, limit: Int, deletions: Bool = true
  ) throws(LogStoreError) -> [ChangeRecord] {
    guard limit > 0 else { return [] }
    try loadLiveness()
    let state = snapshot
    defer { withExtendedLifetime(state) {} }
    let prefix = Array(idPrefix.utf8)
    let lower = after.map { Array($0.utf8) }
    return try readingRecords { (reader) throws(ReadFailure) in
      var builder = PageBuilder(self, reader, limit: limit)
      var best: [(id: [UInt8], place: Place)] = []
      var bound: [UInt8]?
      try forEachLivePlace(in: collection, state, deletions: deletions) {
        (place) throws(ReadFailure) in
        let id = try builder.id(at: place)
        guard id.starts(with: prefix) else { return }
        if let lower, !lower.lexicographicallyPrecedes(id) { return }
        if let bound, !id.lexicographicallyPrecedes(bound) { return }
        best.append((id, place))
        // Let it grow to twice the limit before it is cut back, so that the cost is amortized.
        if best.count / 2 >= limit {
          best.sort { $0.id.lexicographicallyPrecedes($1.id) }
          best.removeLast(best.count - limit)
          bound = best.last?.id
        }
      }
      best.sort { $0.id.lexicographicallyPrecedes($1.id) }
      for item in best.prefix(limit) { try builder.append(item.place) }
      return builder.records
    }
  }

  /// ``reading(_:)`` with a reader of records.
  private func readingRecords<Result>(
    _ body: (RecordReader) throws(ReadFailure) -> Result
  ) throws(LogStoreError) -> Result {
    try withRecordReader { (reader) throws(LogStoreError) in
      try reading { () throws(ReadFailure) in try body(reader) }
    }
  }

  private func forEachLivePlace(
    in collection: String, _ state: Published, deletions: Bool,
    _ body: (Place) throws(ReadFailure) -> Void
  ) throws(ReadFailure) {
    for sealed in state.sealed {
      let index = try index(of: sealed.segment)
      guard let number = withUTF8(collection, { index.number(of: $0) }) else { continue }
      let range = index.collections[number]
      for position in range.firstKey..<(range.firstKey + range.keyCount) {
        let entry: SealedIndex.HlcEntry
        do throws(IndexError) {
          let rank = try index.key(at: position).rank
          if sealed.dead[rank] { continue }
          entry = try index.hlcEntry(rank)
        } catch {
          throw ReadFailure(error, sealed.segment)
        }
        if entry.isDeletion, !deletions { continue }
        try body(Place(file: sealed.segment.info.fileId, block: entry.block, slot: entry.slot))
      }
    }
    for log in state.tail {
      let rows = withUTF8(collection) { log.liveRows(in: $0, below: state.visibleRows) }
      for found in rows where deletions || !found.row.isDeletion {
        try body(Place(file: log.fileId, block: found.row.block, slot: Int(found.row.slot)))
      }
    }
  }
}

/// Collects the records of a page.
private struct PageBuilder {
  private let engine: Engine
  private let reader: RecordReader
  private(set) var records: [ChangeRecord] = []
  private(set) var bytes = 0

  /// `limit` may be anything: only for so many as a page usually has is memory reserved.
  init(_ engine: Engine, _ reader: RecordReader, limit: Int) {
    self.engine = engine
    self.reader = reader
    records.reserveCapacity(min(limit, 64))
  }

  mutating func append(_ place: Engine.Place) throws(ReadFailure) {
    do throws(LogStoreError) {
      bytes += 64 + (try reader.append(place, of: engine, to: &records))
    } catch {
      throw .failed(error)
    }
  }

  func id(at place: Engine.Place) throws(ReadFailure) -> [UInt8] {
    do throws(LogStoreError) {
      return try reader.id(at: place, of: engine)
    } catch {
      throw .failed(error)
    }
  }

  /// Sequence and ordinal of a record's arrival.
  func arrival(of place: Engine.Place) throws(ReadFailure) -> (UInt64, UInt64) {
    do throws(LogStoreError) {
      let (block, row) = try reader.row(at: place, of: engine)
      return (try engine.sequence(of: block.header, place), UInt64(row.ordinal))
    } catch {
      throw .failed(error)
    }
  }

  func end(at place: Engine.Place?) throws(ReadFailure) -> Engine.PageEnd? {
    guard let place, let last = records.last else { return nil }
    let (sequence, ordinal) = try arrival(of: place)
    return Engine.PageEnd(text: last.hlcTimestamp, sequence: sequence, ordinal: ordinal)
  }
}
