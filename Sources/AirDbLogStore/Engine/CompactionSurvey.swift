/// Looks at the sealed segments for what a compaction could leave out of each.
///
/// Only what can be dropped counts, so that garbage which somebody still needs does not have its
/// segment rewritten again and again.
struct CompactionSurvey {
  private let engine: Engine
  let state: Published
  private let retention: RetentionBounds

  init(_ engine: Engine, keeping retention: RetentionBounds) throws(LogStoreError) {
    try engine.loadLiveness()
    self.engine = engine
    self.retention = retention
    state = engine.snapshot
  }

  /// The sealed segments, in log order.
  func candidates() throws(LogStoreError) -> [CompactionPlan.Candidate] {
    var droppable: [UInt64] = []
    var holders = Set<UInt64>()
    for position in state.sealed.indices {
      var count = try superseded(state.sealed[position])
      if retention.purging != nil {
        count += try purgeable(position, &holders)
      }
      droppable.append(count)
    }
    var result: [CompactionPlan.Candidate] = []
    for (sealed, droppable) in zip(state.sealed, droppable) {
      let info = sealed.segment.info
      var candidate = CompactionPlan.Candidate(
        id: info.fileId, bytes: info.bytes, records: info.recordCount,
        live: info.recordCount - min(droppable, info.recordCount),
        framing: try framing(of: sealed.segment))
      // It keeps tombstones from going that would be worth it.
      candidate.isWanted = holders.contains(info.fileId)
      result.append(candidate)
    }
    return result
  }

  // MARK: Superseded versions

  /// How many records are superseded and kept by nobody.
  private func superseded(_ sealed: Published.Sealed) throws(LogStoreError) -> UInt64 {
    let info = sealed.segment.info
    let all = sealed.supersededCount
    if all == 0 || info.firstSequence > retention.pinnedAfter { return 0 }
    let boundary = try boundary(.versions, of: sealed.segment, retention.keeps)
    if boundary.records == info.recordCount { return all }
    let basis = SurveyFindings.Basis(place: boundary.place, dead: sealed.dead.count)
    let live = try sealed.segment.survey.live(basis) { () throws(LogStoreError) in
      var live: UInt64 = 0
      try forEachLiveEntry(of: sealed) { _, entry in
        if entry.place < boundary.place { live += 1 }
      }
      return live
    }
    return boundary.records - min(live, boundary.records)
  }

  private typealias Boundary = SurveyFindings.Boundary

  private func boundary(
    _ rule: SurveyFindings.Rule, of segment: SealedSegment, _ isKept: (UInt64, Int64) -> Bool
  ) throws(LogStoreError) -> Boundary {
    let info = segment.info
    guard isKept(info.lastSequence, info.lastCommitDate) else {
      return Boundary(records: info.recordCount)
    }
    return try segment.survey.boundary(rule, isKept) { () throws(LogStoreError) in
      try findBoundary(in: segment, isKept)
    }
  }

  private func findBoundary(
    in segment: SealedSegment, _ isKept: (UInt64, Int64) -> Bool
  ) throws(LogStoreError) -> Boundary {
    var result = Boundary()
    try engine.forEachFrameHeader(of: segment) { (header, offset) throws(LogStoreError) in
      let commit = Boundary.Neighbour(sequence: header.sequence, date: header.commitDate)
      guard isKept(header.sequence, header.commitDate) else {
        result.records += UInt64(header.recordCount)
        result.last = commit
        return true
      }
      result.first = commit
      result.place = SealedIndex.HlcEntry.place(offset, 0)
      if header.kind == .packed {
        try add(&result, of: segment, header, offset, isKept)
      }
      return false
    }
    return result
  }

  /// Of a packed frame that has records on both sides of a boundary.
  private func add(
    _ boundary: inout Boundary, of segment: SealedSegment, _ header: FrameHeader,
    _ offset: UInt64, _ isKept: (UInt64, Int64) -> Bool
  ) throws(LogStoreError) {
    var before: UInt64 = 0
    for transaction in try engine.transactions(of: segment, header, at: offset) {
      let commit = Boundary.Neighbour(sequence: transaction.sequence, date: transaction.date)
      if isKept(transaction.sequence, transaction.date) {
        boundary.first = commit
        break
      }
      boundary.last = commit
      before += UInt64(transaction.recordCount)
    }
    boundary.records += before
    var position = offset + UInt64(header.bodyStart)
    for _ in 0..<header.blockCount {
      let block = try engine.blockHeader(
        try engine.segmentFile(segment.info.fileId), at: position
      ).header
      if before < UInt64(block.firstRecord) + UInt64(block.recordCount) {
        boundary.place = SealedIndex.HlcEntry.place(
          position, Int(before) - Int(block.firstRecord))
        return
      }
      position += block.length
    }
  }

  private func forEachLiveEntry(
    of sealed: Published.Sealed, _ body: (UInt64, SealedIndex.HlcEntry) -> Void
  ) throws(LogStoreError) {
    try engine.reading { () throws(ReadFailure) in
      try engine.forEachEntry(of: sealed.segment) { rank, entry in
        if !sealed.dead[rank] { body(rank, entry) }
      }
    }
  }

  // MARK: Tombstones

  /// How many tombstones may go; adds the segments that keep others from going.
  private func purgeable(
    _ position: Int, _ holders: inout Set<UInt64>
  ) throws(LogStoreError) -> UInt64 {
    let sealed = state.sealed[position]
    guard try engine.deletionCount(of: sealed.segment) > 0 else { return 0 }
    let boundary = try boundary(.tombstones, of: sealed.segment) {
      !retention.mayPurge(sequence: $0, date: $1)
    }
    if boundary.records == 0 { return 0 }
    let basis = SurveyFindings.Basis(
      place: boundary.place, dead: sealed.dead.count,
      earlier: state.sealed[..<position].map(\.segment.info.fileId))
    let found = try sealed.segment.survey.purgeable(basis) { () throws(LogStoreError) in
      var ranks = Set<UInt64>()
      try forEachLiveEntry(of: sealed) { rank, entry in
        if entry.isDeletion, entry.place < boundary.place { ranks.insert(rank) }
      }
      if ranks.isEmpty { return SurveyFindings.Purgeable() }
      return try engine.reading { () throws(ReadFailure) in try purgeable(ranks, position) }
    }
    // A few tombstones are not worth the rewrite of other segments.
    if 20 * found.held >= sealed.segment.info.recordCount { holders.formUnion(found.holders) }
    return found.count
  }

  private func purgeable(
    _ ranks: Set<UInt64>, _ position: Int
  ) throws(ReadFailure) -> SurveyFindings.Purgeable {
    let index = try engine.index(of: state.sealed[position].segment)
    var result = SurveyFindings.Purgeable()
    for collection in index.collections {
      for place in collection.firstKey..<(collection.firstKey + collection.keyCount) {
        let key: SealedIndex.KeyEntry
        do throws(IndexError) {
          key = try index.key(at: place)
        } catch {
          throw ReadFailure(error, state.sealed[position].segment)
        }
        guard ranks.contains(key.rank) else { continue }
        var isHeld = false
        for earlier in state.sealed[..<position] {
          if try engine.holds(earlier.segment, key.hash, in: collection.name) {
            isHeld = true
            result.holders.insert(earlier.segment.info.fileId)
          }
        }
        if isHeld { result.held += 1 } else { result.count += 1 }
      }
    }
    return result
  }

  // MARK: Small frames

  /// What the frames of small commits take more than packed ones, about.
  private func framing(of segment: SealedSegment) throws(LogStoreError) -> UInt64 {
    let info = segment.info
    let commits = info.lastSequence - info.firstSequence + 1
    guard info.firstSequence >> 32 == info.lastSequence >> 32, info.recordCount < 8 * commits,
      try !engine.isPacked(segment)
    else { return 0 }
    return min(commits * Self.frameCost, info.length / 2)
  }

  /// Two headers, the tables of the metadata, padding; less what a transaction table has of it.
  private static let frameCost: UInt64 = 120
}

extension Engine {
  /// Whether a segment was made by compaction.
  func isPacked(_ segment: SealedSegment) throws(LogStoreError) -> Bool {
    if let known = segment.isPacked.withLock({ $0 }) { return known }
    var kind = FrameHeader.Kind.commit
    try forEachFrameHeader(of: segment) { (header, _) throws(LogStoreError) in
      kind = header.kind
      return false
    }
    segment.isPacked.withLock { $0 = kind == .packed }
    return kind == .packed
  }

  /// How many entries of a segment are deletions, dead ones among them.
  func deletionCount(of segment: SealedSegment) throws(LogStoreError) -> UInt64 {
    if let known = segment.deletionCount.withLock({ $0 }) { return known }
    let count = try reading { () throws(ReadFailure) in
      var count: UInt64 = 0
      try forEachEntry(of: segment) { _, entry in if entry.isDeletion { count += 1 } }
      return count
    }
    segment.deletionCount.withLock { $0 = count }
    return count
  }

  /// Whether a segment has a version of a key.
  func holds(
    _ segment: SealedSegment, _ hash: KeyHash, in collection: [UInt8]
  ) throws(ReadFailure) -> Bool {
    let index = try index(of: segment)
    do throws(IndexError) {
      return try withBytes(of: collection) { (name) throws(IndexError) in
        try index.find(hash, in: name) != nil
      }
    } catch {
      throw ReadFailure(error, segment)
    }
  }

  /// Calls `body` with the header of each frame of a sealed segment and its offset, until it answers
  /// false. The bodies are not read.
  func forEachFrameHeader(
    of segment: SealedSegment, _ body: (FrameHeader, UInt64) throws(LogStoreError) -> Bool
  ) throws(LogStoreError) {
    let info = segment.info
    let file = try segmentFile(info.fileId)
    var offset = UInt64(SegmentHeader.size)
    while offset < info.length {
      let header = try frameHeader(file, at: offset, info.fileId)
      guard header.length <= info.length - offset, UInt64(header.bodyStart) <= header.length
      else {
        throw .corrupt("a frame past the end of its segment", file: file.path, offset: offset)
      }
      guard try body(header, offset) else { return }
      offset += header.length
    }
  }

  /// The commits of a packed frame.
  func transactions(
    of segment: SealedSegment, _ header: FrameHeader, at offset: UInt64
  ) throws(LogStoreError) -> [Transaction] {
    let id = segment.info.fileId
    return try transactions(try segmentFile(id), header, id, at: offset)
  }
}
