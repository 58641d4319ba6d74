package import HlcText

/// What the files of a store say: the result of Recovery 2, steps 1 to 9. Nothing is written.
package struct Recovered {
  package var manifest: Manifest
  package var sealed: [SealedSegment]
  /// Unsealed segments with commits, in log order; the last one is the active one.
  package var tail: [Tail]
  package var end: LogEnd
  package var commitDate: Int64
  package var greatestHlc: Published.Greatest?
  package var physicalKind: HlcPhysicalKind?
  /// Bytes that are not part of the log and will be cut.
  package var discardedBytes: UInt64 = 0
  package var replayedRecords = 0
  /// The global number of the first row that the liveness file does not reflect.
  package var firstUnmarkedRow: UInt64 = 0
  /// Whether the log goes on behind what the manifest knows durable.
  package var isUnclosed: Bool

  /// Whether a close would seal some of the tail: it is more than the next open is to replay.
  package func hasUnsealedTail(_ options: EngineOptions) -> Bool {
    guard tail.count == 1 else { return !tail.isEmpty }
    return tail[0].length - UInt64(SegmentHeader.size) > options.replayBytes
  }

  package struct Tail {
    package var fileId: UInt64
    package var log: RowLog
    package var firstSequence: UInt64
    /// Behind the last good frame.
    package var end: LogEnd
    /// The offset of that.
    package var length: UInt64
    /// The size of the file.
    package var size: UInt64
    /// Of the last good frame.
    package var commitDate: Int64
    /// Whether there is something other than zeros behind `length`.
    package var isDirty: Bool
    /// Whether it has commits that asked to survive power loss and are not known durable: a reader
    /// must sync it before it shows them.
    package var needsSync: Bool
  }
}

/// Follows the log from the manifest to its end.
package struct Recovery {
  private let directory: StoreDirectory
  private let options: EngineOptions
  private let manifest: Manifest
  private var result: Recovered
  private var firstRow: UInt64 = 0

  /// Reads the log. `known` are sealed segments from an earlier state of the same store, which are
  /// kept where they are still listed.
  package static func run(
    _ directory: StoreDirectory, _ manifest: Manifest, _ options: EngineOptions,
    known: [UInt64: SealedSegment] = [:]
  ) throws(LogStoreError) -> Recovered {
    var recovery = Recovery(directory, manifest, options)
    recovery.listSealed(known)
    try recovery.checkSealedFiles(known)
    try recovery.followTail()
    try recovery.checkEnd()
    return recovery.result
  }

  private init(_ directory: StoreDirectory, _ manifest: Manifest, _ options: EngineOptions) {
    self.directory = directory
    self.manifest = manifest
    self.options = options
    result = Recovered(
      manifest: manifest, sealed: [], tail: [], end: LogEnd(),
      commitDate: manifest.lastCommitDate,
      physicalKind: HlcPhysicalKind(rawValue: manifest.hlcPhysicalKind), isUnclosed: false)
  }

  // MARK: Sealed segments

  private mutating func listSealed(_ known: [UInt64: SealedSegment]) {
    result.sealed = manifest.segments.map { known[$0.fileId] ?? SealedSegment($0) }
    result.end = manifest.sealedEnd
    // An older manifest's end may lie before the last seal's in date only.
    if let last = manifest.segments.last {
      result.commitDate = max(result.commitDate, last.lastCommitDate)
    }
  }

  /// A segment that is missing or cut short is found at the open, not by the read that needs it.
  private func checkSealedFiles(_ known: [UInt64: SealedSegment]) throws(LogStoreError) {
    let present: Set<UInt64>
    do throws(SystemError) {
      present = Set(
        try directory.list().compactMap { name in
          if case .segment(let id) = name { id } else { nil }
        })
    } catch {
      throw LogStoreError(error, "list the store's directory", file: directory.path)
    }
    for segment in manifest.segments where !present.contains(segment.fileId) {
      throw .corrupt("a segment of the log is missing", file: directory.segment(segment.fileId))
    }
    for segment in manifest.segments where known[segment.fileId] == nil {
      let path = directory.segment(segment.fileId)
      let size: UInt64
      do throws(SystemError) {
        size = try directory.open(path, .read).size()
      } catch {
        // Beside a writer that compacts, it may have gone since it was listed.
        guard !error.isNotFound else {
          throw .corrupt("a segment of the log is missing", file: path)
        }
        throw LogStoreError(error, "look at a segment", file: path)
      }
      guard size >= segment.length else {
        throw .corrupt(
          "a segment of the log is cut short: it has \(segment.length) bytes of frames", file: path,
          offset: size)
      }
    }
  }

  // MARK: Tail

  private mutating func followTail() throws(LogStoreError) {
    result.greatestHlc = Published.Greatest(manifest.greatestHlc, options.format)
    var evidence = SegmentScan.Evidence()
    var passedEnd = manifest.end == LogEnd() || manifest.end == result.end
    let candidates = try tailCandidates()
    if let later = candidates.first(where: { $0.id >= manifest.fileIdLimit }) {
      throw .corrupt(
        "it has an id that this manifest never gave out: an old manifest was put back",
        file: directory.segment(later.id))
    }
    // Where the last scan stopped, which is where the damage is if there is any.
    var stop = (segment: max(result.end.segment, 1), length: result.end.length)
    // A segment follows one with a lower id, so that one pass sees them in order.
    for candidate in candidates {
      guard let header = candidate.header, header.predecessor == result.end.segment,
        header.predecessorLength == result.end.length,
        header.predecessorChecksum == result.end.checksum
      else { continue }
      let found = try scan(candidate, after: result.end)
      evidence.add(found.evidence)
      passedEnd = passedEnd || found.passedEnd
      stop = (candidate.id, found.length)
      // A segment without a commit is an orphan: nothing says that its header and its entry in the
      // directory are durable, as they are before the first commit in it.
      guard let end = found.end else { continue }
      result.end = end
    }
    // What belongs to no segment of the log was left by a crash; but it, too, may bear witness.
    let inTail = Set(result.tail.map(\.fileId))
    for candidate in candidates where !inTail.contains(candidate.id) {
      let (found, length) = try examine(candidate)
      evidence.add(found)
      result.discardedBytes += length
    }
    let last = result.end
    let durable = max(manifest.end.sequence, evidence.watermark)
    guard passedEnd, last.sequence >= durable else {
      throw LogStoreError(
        .corrupt,
        "The log ends at commit \(describe(last.sequence)), but commit \(describe(durable)) was durable.",
        file: directory.segment(stop.segment), offset: stop.length)
    }
    guard evidence.sequence >> 32 <= UInt64(manifest.epoch) else {
      throw LogStoreError(
        .corrupt,
        "The log holds commit \(describe(evidence.sequence)), of a session later than any that the manifest knows: an old manifest was put back.",
        file: directory.manifest)
    }
    result.isUnclosed = last != manifest.end || result.tail.contains { $0.isDirty }
  }

  private func checkEnd() throws(LogStoreError) {
    if let kind = result.physicalKind, options.format == .utf8Order {
      throw LogStoreError(.corrupt, "A clock kind (\(kind)) in a store of plain texts.")
    }
  }

  private struct Candidate {
    var id: UInt64
    var file: OpenFile
    /// Nil if it is damaged.
    var header: SegmentHeader?
    var size: UInt64
  }

  /// What the frame headers in a file that is not part of the log say, and the length of what is
  /// there behind its header.
  private func examine(
    _ candidate: Candidate
  ) throws(LogStoreError) -> (SegmentScan.Evidence, UInt64) {
    var scan = SegmentScan(
      candidate.file, fileId: candidate.id, size: candidate.size, after: LogEnd(),
      maximumEpoch: manifest.epoch)
    let rest = try reading(directory.segment(candidate.id)) { () throws(SystemError) in
      try scan.examineRest()
    }
    return (scan.evidence, rest.isDirty ? rest.dirtyEnd - scan.offset : 0)
  }

  /// The segment files that the manifest does not list and that could be the tail, by id.
  private func tailCandidates() throws(LogStoreError) -> [Candidate] {
    let listed = Set(manifest.segments.map(\.fileId))
    let least = manifest.sealedEnd.segment
    do throws(SystemError) {
      var ids: [UInt64] = []
      for case .segment(let id) in try directory.list() {
        if !listed.contains(id), id > least { ids.append(id) }
      }
      var result: [Candidate] = []
      for id in ids.sorted() {
        let file: OpenFile
        do throws(SystemError) {
          file = try directory.open(directory.segment(id), .read)
        } catch {
          // Beside a live writer, a file may go between the listing and here.
          if error.isNotFound { continue }
          throw error
        }
        let size = try file.size()
        var bytes = [UInt8](repeating: 0, count: SegmentHeader.size)
        let count = try bytes.withUnsafeMutableBufferPointer { (buffer) throws(SystemError) in
          try file.readExactly(into: UnsafeMutableRawBufferPointer(buffer), at: 0)
        }
        let header = try? withBytes(of: Array(bytes[..<count])) { (bytes) throws(FormatError) in
          try SegmentHeader.decode(bytes, fileId: id)
        }
        // A file of another store, or one that only looks like ours, is foreign.
        if let header, header.storeId != manifest.storeId { continue }
        if header == nil, id >= manifest.fileIdLimit { continue }
        result.append(Candidate(id: id, file: file, header: header, size: size))
      }
      return result
    } catch {
      throw LogStoreError(error, "read the end of the log", file: directory.path)
    }
  }

  private struct Scanned {
    /// Nil if there is no commit.
    var end: LogEnd?
    /// The offset at which the scan stopped.
    var length: UInt64
    var evidence: SegmentScan.Evidence
    var passedEnd: Bool
  }

  /// Replays one segment into memory. It belongs to the tail if it has a commit.
  private mutating func scan(
    _ candidate: Candidate, after position: LogEnd
  ) throws(LogStoreError) -> Scanned {
    let id = candidate.id
    let path = directory.segment(id)
    let log = RowLog(fileId: id, base: firstRow, after: position)
    var tail = Recovered.Tail(
      fileId: id, log: log, firstSequence: 0, end: position, length: UInt64(SegmentHeader.size),
      size: candidate.size, commitDate: result.commitDate, isDirty: false, needsSync: false)
    var scan = SegmentScan(
      candidate.file, fileId: id, size: candidate.size, after: position,
      maximumEpoch: manifest.epoch)
    var passedEnd = false
    while let frame = try reading(path, { () throws(SystemError) in try scan.next() }) {
      try replay(frame, into: log, path)
      if frame.header.sequence <= manifest.livenessSequence { result.firstUnmarkedRow = log.end }
      if tail.firstSequence == 0 { tail.firstSequence = frame.header.sequence }
      tail.length = scan.offset
      passedEnd = passedEnd || scan.end == manifest.end
      result.commitDate = max(result.commitDate, frame.header.commitDate)
      tail.needsSync =
        tail.needsSync
        || frame.header.asksPowerLoss && frame.header.sequence > manifest.end.sequence
    }
    let rest = try reading(path) { () throws(SystemError) in try scan.examineRest() }
    guard tail.firstSequence > 0 else {
      return Scanned(
        end: nil, length: scan.offset, evidence: scan.evidence, passedEnd: false)
    }
    tail.isDirty = rest.isDirty
    if rest.isDirty { result.discardedBytes += rest.dirtyEnd - scan.offset }
    tail.end = scan.end
    tail.commitDate = result.commitDate
    log.finish(at: scan.offset)
    firstRow = log.end
    result.replayedRecords += log.count
    result.tail.append(tail)
    return Scanned(
      end: scan.end, length: scan.offset, evidence: scan.evidence, passedEnd: passedEnd)
  }

  private func reading<Result>(
    _ path: String, _ body: () throws(SystemError) -> Result
  ) throws(LogStoreError) -> Result {
    do throws(SystemError) {
      return try body()
    } catch {
      throw LogStoreError(error, "read the end of the log", file: path)
    }
  }

  private mutating func replay(
    _ frame: SegmentScan.Frame, into log: RowLog, _ path: String
  ) throws(LogStoreError) {
    do throws(FormatError) {
      try FrameReader(frame).forEachBlock { (block, offset) throws(FormatError) in
        for slot in block.rows.indices {
          try append(block, slot, at: offset, to: log)
        }
      }
    } catch {
      // The frame's checksums hold, so that no crash wrote this.
      throw .corrupt(error, file: path, base: frame.offset)
    }
  }

  private mutating func append(
    _ block: DecodedBlock, _ slot: Int, at offset: UInt64, to log: RowLog
  ) throws(FormatError) {
    let greatest = result.greatestHlc?.key
    var newGreatest: HlcKey?
    let secret = manifest.hashSecret
    let deletions = manifest.deletionValues
    let kind = try block.withHlcKey(slot, format: options.format) {
      (kind, physical, counter, node) throws(FormatError) -> HlcPhysicalKind? in
      let row = block.rows[slot]
      withUTF8(block.collection(slot)) { collection in
        let hash = block.withId(slot) { secret.hash(collection: collection, id: $0) }
        log.append(
          RowLog.NewRow(
            hash: hash, physical: physical, counter: counter, node: node, collection: collection,
            block: offset, slot: UInt8(slot), contentChecksum: row.contentChecksum,
            isDeletion: deletions.contains(row.type)))
      }
      if let greatest {
        var order = compareNumbers(physical, counter, greatest.physical, greatest.counter)
        if order == 0 { order = withBytes(of: greatest.node) { node.compare($0) } }
        if order <= 0 { return kind }
      }
      newGreatest = HlcKey(physical: physical, counter: counter, node: node)
      return kind
    }
    if let kind {
      if let pinned = result.physicalKind, pinned != kind {
        throw FormatError("a clock of another kind than the store's")
      }
      result.physicalKind = kind
    }
    if let newGreatest {
      let text = try block.withHlc(slot) { (text) throws(FormatError) in
        String(decoding: text, as: UTF8.self)
      }
      result.greatestHlc = Published.Greatest(key: newGreatest, text: text)
    }
  }
}

/// A sequence as epoch and counter, for messages.
package func describe(_ sequence: UInt64) -> String {
  "\(sequence >> 32).\(sequence & 0xFFFF_FFFF)"
}
