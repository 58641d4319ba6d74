/// Where records are, and when they arrived.
extension Engine {
  /// Where a record is.
  package struct Place: Sendable, Hashable {
    package var file: UInt64
    package var block: UInt64
    package var slot: Int
  }

  /// The newest version of a key that a snapshot shows.
  package func find(
    _ state: Published, collection: UnsafeRawBufferPointer, id: UnsafeRawBufferPointer
  ) throws(ReadFailure) -> Place? {
    let hash = manifest.value.hashSecret.hash(collection: collection, id: id)
    for log in state.tail.reversed() {
      if let found = log.newest(hash, below: state.visibleRows) {
        return Place(file: log.fileId, block: found.row.block, slot: Int(found.row.slot))
      }
    }
    for sealed in state.sealed.reversed() {
      let index = try index(of: sealed.segment)
      do throws(IndexError) {
        guard let key = try index.find(hash, in: collection) else { continue }
        guard key.rank < index.header.entryCount else {
          throw .damaged(FormatError("a rank past the last entry"))
        }
        let entry = try index.hlcEntry(key.rank)
        return Place(file: sealed.segment.info.fileId, block: entry.block, slot: entry.slot)
      } catch {
        throw ReadFailure(error, sealed.segment)
      }
    }
    return nil
  }

  func segmentFile(_ id: UInt64) throws(LogStoreError) -> OpenFile {
    do throws(SystemError) {
      return try files.file(.segment(id))
    } catch {
      throw segmentFailure(error, "open a segment", directory.segment(id))
    }
  }

  func read(
    _ open: OpenFile, into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
  ) throws(LogStoreError) -> Int {
    do throws(SystemError) {
      return try open.readExactly(into: buffer, at: offset)
    } catch {
      throw LogStoreError(error, "read a segment", file: open.path)
    }
  }
}

extension Engine {
  /// The sequence of the commit with which a record arrived.
  package func sequence(
    of block: BlockHeader, _ place: Place
  ) throws(LogStoreError) -> UInt64 {
    let open = try segmentFile(place.file)
    let distance = UInt64(block.frameDistance)
    guard distance <= place.block else {
      throw .corrupt("a block before its frame", file: open.path, offset: place.block)
    }
    let start = place.block - distance
    let header = try frameHeader(open, at: start, place.file)
    guard header.kind == .packed else { return header.sequence }
    guard UInt64(FrameHeader.size) + UInt64(header.tableLength) <= distance else {
      throw .corrupt("a table past the blocks behind it", file: open.path, offset: start)
    }
    var left = UInt64(block.firstRecord) + UInt64(place.slot)
    for transaction in try transactions(open, header, place.file, at: start) {
      if left < UInt64(transaction.recordCount) { return transaction.sequence }
      left -= UInt64(transaction.recordCount)
    }
    throw .corrupt(
      "a record past the transactions of its frame", file: open.path,
      offset: start + UInt64(FrameHeader.size))
  }

  /// The transaction table of a packed frame, whose checksum is verified.
  func transactions(
    _ open: OpenFile, _ header: FrameHeader, _ file: UInt64, at start: UInt64
  ) throws(LogStoreError) -> [Transaction] {
    var table = [UInt8](repeating: 0, count: Int(header.tableLength))
    do throws(SystemError) {
      let got = try table.withUnsafeMutableBufferPointer { (buffer) throws(SystemError) in
        try open.readExactly(
          into: UnsafeMutableRawBufferPointer(buffer), at: start + UInt64(FrameHeader.size))
      }
      table.removeLast(table.count - got)
    } catch {
      throw LogStoreError(error, "read a segment", file: open.path)
    }
    let checksum = withBytes(of: table) { Checksum.crc($0) }
    if knownTables.checksum(file, start) != checksum {
      try verify(checksum, open, header, at: start)
      knownTables.note(file, start, checksum)
    }
    do throws(FormatError) {
      return try withBytes(of: table) { (bytes) throws(FormatError) in
        try TransactionTable.decode(bytes)
      }
    } catch {
      throw .corrupt(error, file: open.path, base: start)
    }
  }

  /// Checks a table by the checksum of its frame's body, which covers it and the blocks' checksums.
  private func verify(
    _ table: UInt32, _ open: OpenFile, _ header: FrameHeader, at start: UInt64
  ) throws(LogStoreError) {
    var checksum = table
    var position = start + UInt64(header.bodyStart)
    for _ in 0..<header.blockCount {
      guard position < start + header.length else { break }
      let (block, blockChecksum) = try blockHeader(open, at: position)
      checksum = Checksum.crc(blockChecksum, from: checksum)
      position += block.length
    }
    guard checksum == header.bodyChecksum else {
      throw .corrupt(
        "the checksum of a frame's body does not match", file: open.path, offset: start)
    }
  }

  /// The header of a block and the checksum that it states, which has not been verified.
  func blockHeader(
    _ open: OpenFile, at offset: UInt64
  ) throws(LogStoreError) -> (header: BlockHeader, checksum: UInt32) {
    try withUnsafeTemporaryAllocation(byteCount: BlockHeader.size, alignment: 8) {
      (buffer) throws(LogStoreError) in
      let got = try read(open, into: buffer, at: offset)
      do throws(FormatError) {
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<got])
        return (try BlockHeader.decode(bytes), bytes.load(UInt32.self, at: 0))
      } catch {
        throw .corrupt(error, file: open.path, base: offset)
      }
    }
  }

  func frameHeader(
    _ open: OpenFile, at start: UInt64, _ file: UInt64
  ) throws(LogStoreError) -> FrameHeader {
    try withUnsafeTemporaryAllocation(byteCount: FrameHeader.size, alignment: 8) {
      (buffer) throws(LogStoreError) in
      let got = try read(open, into: buffer, at: start)
      do throws(FormatError) {
        return try FrameHeader.decode(
          UnsafeRawBufferPointer(rebasing: buffer[..<got]), file: file, offset: start)
      } catch {
        throw .corrupt(error, file: open.path, base: start)
      }
    }
  }
}
