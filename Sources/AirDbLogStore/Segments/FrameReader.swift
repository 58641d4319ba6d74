/// The parts of a frame whose checksums have been verified.
package struct FrameReader {
  private let frame: SegmentScan.Frame

  package init(_ frame: SegmentScan.Frame) { self.frame = frame }

  package var label: String {
    String(
      decoding: frame.bytes[
        FrameHeader.size..<(FrameHeader.size + Int(frame.header.labelLength))], as: UTF8.self)
  }

  /// The commits in the frame, in order, with the number of records that each has here.
  package func transactions() throws(FormatError) -> [Transaction] {
    let header = frame.header
    switch header.kind {
    case .commit:
      return [
        Transaction(
          sequence: header.sequence, date: header.commitDate, checksum: header.checksum,
          label: label, recordCount: header.recordCount)
      ]
    case .packed:
      let table = UnsafeRawBufferPointer(
        rebasing: frame.bytes[
          FrameHeader.size..<(FrameHeader.size + Int(header.tableLength))])
      let transactions = try TransactionTable.decode(table)
      guard transactions.reduce(0, { $0 + UInt64($1.recordCount) }) == UInt64(header.recordCount),
        transactions.last?.sequence == header.sequence,
        transactions.last?.date == header.commitDate
      else {
        throw FormatError("a transaction table of another frame", at: FrameHeader.size)
      }
      return transactions
    }
  }

  /// Calls `body` with each block and its offset in the file. Errors are relative to the frame.
  package func forEachBlock(
    _ body: (DecodedBlock, UInt64) throws(FormatError) -> Void
  ) throws(FormatError) {
    try forEachBlockHeader { (header, position) throws(FormatError) in
      let bytes = UnsafeRawBufferPointer(
        rebasing: frame.bytes[position..<(position + Int(header.length))])
      let block: DecodedBlock
      do throws(FormatError) {
        block = try DecodedBlock(bytes)
      } catch {
        throw FormatError(error.reason, at: position + error.offset)
      }
      try body(block, frame.offset + UInt64(position))
    }
  }

  /// Calls `body` with the header of each block and its offset in the frame.
  package func forEachBlockHeader(
    _ body: (BlockHeader, Int) throws(FormatError) -> Void
  ) throws(FormatError) {
    var position = frame.header.bodyStart
    var records: UInt32 = 0
    for _ in 0..<frame.header.blockCount {
      let rest = UnsafeRawBufferPointer(rebasing: frame.bytes[position...])
      let header = try BlockHeader.decode(rest)
      guard header.length <= UInt64(rest.count) else {
        throw FormatError("a block past the end of its frame", at: position)
      }
      guard header.firstRecord == records, UInt64(header.frameDistance) == UInt64(position)
      else {
        throw FormatError("a block that does not continue its frame", at: position)
      }
      guard header.hasOrdinals == (frame.header.kind == .packed) else {
        throw FormatError("a block that does not belong into its frame", at: position)
      }
      try body(header, position)
      let (next, overflow) = records.addingReportingOverflow(header.recordCount)
      guard !overflow else { throw FormatError("more records than a frame has", at: position) }
      records = next
      position += Int(header.length)
    }
    guard records == frame.header.recordCount else {
      throw FormatError("a frame with another number of records than its header says", at: 40)
    }
  }
}
