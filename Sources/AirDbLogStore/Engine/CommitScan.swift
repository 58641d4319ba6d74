/// Walks the commits that a snapshot shows, in the order of the log, frame by frame (Format 5).
///
/// Everything it gives out has been verified: headers, bodies, and that the frames connect, up to the
/// ends that the snapshot knows.
struct CommitScan {
  private let engine: Engine
  private let parts: [Part]
  /// The part that is read, and its scan once it has begun.
  private var index = 0
  private var scan: SegmentScan?
  /// What is known of the place behind the last frame read.
  private var boundary: FrameMap.Boundary?
  /// Commits up to this one are passed over.
  private var passed: UInt64 = 0

  /// A segment as far as the snapshot shows it.
  struct Part {
    var fileId: UInt64
    var frames: FrameMap
    var hold: FileHold
    /// Of its last commit; for a sealed segment that may have been cleaned away.
    var lastSequence: UInt64
    /// The header checksum of the last frame.
    var lastChecksum: UInt32
    /// What the manifest says of it, if it is sealed.
    var info: Manifest.Segment?
    /// The greatest date in it, if that is known.
    var lastDate: Int64?
  }

  /// A frame, and those of its commits that have not been passed.
  struct Step {
    var frame: SegmentScan.Frame
    var transactions: [Transaction]
    /// The index in the frame of the first record of the first of them.
    var firstRecord: UInt32
    var part: Part
    /// Where the frame begins.
    var start: FrameMap.Boundary
  }

  /// Starts at the beginning of the log.
  init(_ engine: Engine, _ state: Published) {
    self.engine = engine
    parts = Self.parts(of: state)
  }

  private static func parts(of state: Published) -> [Part] {
    var parts = state.sealed.map { sealed in
      let info = sealed.segment.info
      return Part(
        fileId: info.fileId, frames: sealed.segment.frames, hold: sealed.segment.hold,
        lastSequence: info.lastSequence, lastChecksum: info.lastChecksum, info: info,
        lastDate: info.lastCommitDate)
    }
    for (position, log) in state.tail.enumerated() {
      // Where the next one starts, this one ends; the last one goes as far as the snapshot.
      let end = position + 1 < state.tail.count ? state.tail[position + 1].start : state.end
      guard log.start.sequence < end.sequence else { continue }
      parts.append(
        Part(
          fileId: log.fileId, frames: log.frames, hold: log.hold, lastSequence: end.sequence,
          lastChecksum: end.checksum))
    }
    return parts
  }

  // MARK: Frames

  /// The next frame with commits that have not been passed, or nil at the end of the snapshot.
  mutating func next() throws(LogStoreError) -> Step? {
    while let part = currentPart {
      if scan == nil { try open(part, at: try start(of: part)) }
      if try isAtEnd(of: part) {
        rememberPlace()
        index += 1
        scan = nil
        continue
      }
      let start = boundary
      guard let frame = try attempt(part, { (scan) throws(SystemError) in try scan.next() }),
        let start
      else { throw damage(part) }
      let step = try step(frame, in: part, from: start)
      if !step.transactions.isEmpty { return step }
    }
    return nil
  }

  /// Where the next frame is, once the place has been found.
  var place: (fileId: UInt64, offset: UInt64)? {
    guard let part = currentPart, let boundary else { return nil }
    return (part.fileId, boundary.offset)
  }

  private var currentPart: Part? { index < parts.count ? parts[index] : nil }

  private mutating func step(
    _ frame: SegmentScan.Frame, in part: Part, from start: FrameMap.Boundary
  ) throws(LogStoreError) -> Step {
    var transactions: [Transaction]
    do throws(FormatError) {
      transactions = try FrameReader(frame).transactions()
      guard let first = transactions.first, first.sequence > start.sequence else {
        throw FormatError("commits that do not follow the ones before", at: FrameHeader.size)
      }
    } catch {
      throw .corrupt(error, file: path(of: part), base: frame.offset)
    }
    advance(part, commit: transactions.last?.checksum, frame.header)
    let count = transactions.firstIndex { $0.sequence > passed } ?? transactions.count
    // The sum is at most that of the frame.
    let firstRecord = transactions[..<count].reduce(0) { $0 + $1.recordCount }
    transactions.removeFirst(count)
    return Step(
      frame: frame, transactions: transactions, firstRecord: firstRecord, part: part, start: start)
  }

  /// Remembers where the scan has come to: the next page goes on there.
  func rememberPlace() {
    guard let part = currentPart, let boundary, scan != nil else { return }
    part.frames.remember(boundary)
  }

  private mutating func advance(_ part: Part, commit: UInt32?, _ header: FrameHeader) {
    guard let end = scan?.end else { return }
    let known = FrameMap.Boundary(
      offset: end.length, sequence: end.sequence, checksum: end.checksum, commitChecksum: commit,
      date: header.commitDate)
    boundary = known
    part.frames.note(known)
  }

  /// Whether the part has been read to its end, which must be the one that is known.
  private func isAtEnd(of part: Part) throws(LogStoreError) -> Bool {
    guard let scan else { return false }
    if let info = part.info {
      guard scan.offset >= info.length else { return false }
      guard scan.offset == info.length, scan.end.checksum == part.lastChecksum,
        scan.end.sequence <= part.lastSequence
      else { throw damage(part) }
    } else {
      guard scan.end.sequence >= part.lastSequence else { return false }
      guard scan.end.sequence == part.lastSequence, scan.end.checksum == part.lastChecksum else {
        throw damage(part)
      }
    }
    return true
  }

  // MARK: Opening

  private mutating func open(
    _ part: Part, at boundary: FrameMap.Boundary
  ) throws(LogStoreError) {
    do throws(SystemError) {
      let file = try engine.files.file(.segment(part.fileId))
      let size = try file.size()
      var scan = SegmentScan(
        file, fileId: part.fileId, size: min(part.info?.length ?? size, size), after: LogEnd(),
        maximumEpoch: engine.manifest.value.epoch, isSealed: part.info != nil)
      scan.seek(to: boundary)
      self.scan = scan
      self.boundary = boundary
    } catch {
      throw engine.segmentFailure(error, "open a segment", path(of: part))
    }
  }

  /// The place of the first frame.
  private func start(of part: Part) throws(LogStoreError) -> FrameMap.Boundary {
    if let known = part.frames.start { return known }
    // The commit before the segment's first need not exist any more.
    let header = try engine.segmentHeader(part.fileId)
    let start = FrameMap.Boundary(
      offset: UInt64(SegmentHeader.size), sequence: (part.info?.firstSequence ?? 1) - 1,
      checksum: header.predecessorChecksum)
    part.frames.note(start)
    return start
  }

  private mutating func attempt<Result>(
    _ part: Part, _ body: (inout SegmentScan) throws(SystemError) -> Result?
  ) throws(LogStoreError) -> Result? {
    guard scan != nil else { return nil }
    do throws(SystemError) {
      return try body(&scan!)
    } catch {
      throw LogStoreError(error, "read a segment", file: path(of: part))
    }
  }

  private func path(of part: Part) -> String { engine.directory.segment(part.fileId) }

  private func damage(_ part: Part) -> LogStoreError {
    .corrupt("a frame is damaged", file: path(of: part), offset: scan?.offset ?? 0)
  }
}

// MARK: - Seeking

extension CommitScan {
  /// Goes behind the commit with a sequence. Answers its checksum, or nil if there is no such commit
  /// any more.
  ///
  /// From the closest place known on, it reads only the headers of frames.
  mutating func seek(behind sequence: UInt64) throws(LogStoreError) -> UInt32? {
    passed = sequence
    scan = nil
    index = parts.firstIndex { $0.lastSequence >= sequence } ?? parts.count
    guard let part = currentPart else { return nil }
    let place: FrameMap.Boundary
    if let known = part.frames.last(upTo: sequence) {
      place = known
    } else {
      place = try start(of: part)
    }
    try open(part, at: place)
    if place.sequence == sequence { return place.commitChecksum }
    while try !isAtEnd(of: part) {
      guard let header = try attempt(part, { (scan) throws(SystemError) in try scan.peek() }) else {
        throw damage(part)
      }
      if header.sequence >= sequence, header.kind == .packed {
        return try checksum(of: sequence, in: part)
      }
      if header.sequence > sequence { return nil }
      scan?.skip(header)
      advance(part, commit: header.kind == .commit ? header.checksum : nil, header)
      if header.sequence == sequence { return header.checksum }
    }
    return nil
  }

  /// The checksum of a commit in the packed frame that comes next, which stays the next.
  private mutating func checksum(
    of sequence: UInt64, in part: Part
  ) throws(LogStoreError) -> UInt32? {
    let start = boundary
    guard let frame = try attempt(part, { (scan) throws(SystemError) in try scan.next() }),
      let start
    else { throw damage(part) }
    do throws(FormatError) {
      let transactions = try FrameReader(frame).transactions()
      scan?.seek(to: start)
      return transactions.first { $0.sequence == sequence }?.checksum
    } catch {
      throw .corrupt(error, file: path(of: part), base: frame.offset)
    }
  }

  /// The last commit that is older than a date, or nil if none is.
  mutating func last(before date: Int64) throws(LogStoreError) -> LogEnd? {
    // Dates never decrease: nothing is older behind the first segment that goes up to the date.
    let count = parts.firstIndex { $0.lastDate.map { $0 >= date } ?? false }.map { $0 + 1 }
    for candidate in parts.indices.prefix(count ?? parts.count).reversed() {
      if let found = try last(before: date, in: candidate) { return found }
    }
    return nil
  }

  private mutating func last(
    before date: Int64, in candidate: Int
  ) throws(LogStoreError) -> LogEnd? {
    let part = parts[candidate]
    index = candidate
    passed = 0
    var found: LogEnd?
    if let known = part.frames.last(before: date), let checksum = known.commitChecksum {
      found = LogEnd(sequence: known.sequence, checksum: checksum)
      try open(part, at: known)
    } else {
      try open(part, at: try start(of: part))
    }
    while index == candidate, let step = try next(), step.part.fileId == part.fileId {
      for transaction in step.transactions {
        if transaction.date >= date { return found }
        found = LogEnd(sequence: transaction.sequence, checksum: transaction.checksum)
      }
    }
    return found
  }
}
