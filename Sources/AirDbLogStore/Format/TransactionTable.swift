/// A commit in a frame: what its own frame said, and how many of its records are left.
package struct Transaction: Sendable, Equatable {
  package var sequence: UInt64
  /// Milliseconds since 1970.
  package var date: Int64
  /// The header checksum of the frame in which it was committed.
  package var checksum: UInt32
  package var label: String
  package var recordCount: UInt32

  package init(
    sequence: UInt64, date: Int64, checksum: UInt32, label: String, recordCount: UInt32
  ) {
    self.sequence = sequence
    self.date = date
    self.checksum = checksum
    self.label = label
    self.recordCount = recordCount
  }
}

/// The transaction table of a packed frame (Format 5.2).
package enum TransactionTable {
  package static func encode(_ transactions: [Transaction], into out: inout ByteBuffer) {
    var labels: [String] = []
    // By their bytes: a dictionary of texts would take spellings that look alike for one.
    var indexes: [[UInt8]: Int] = [:]
    for transaction in transactions where indexes[Array(transaction.label.utf8)] == nil {
      indexes[Array(transaction.label.utf8)] = labels.count
      labels.append(transaction.label)
    }
    out.appendVarint(UInt64(labels.count))
    for label in labels {
      out.appendVarint(UInt64(label.utf8.count))
      withUTF8(label) { out.append($0) }
    }
    out.appendVarint(UInt64(transactions.count))
    var sequence: UInt64 = 0
    var date: Int64 = 0
    for transaction in transactions {
      out.appendVarint(transaction.sequence - sequence)
      out.appendZigzag(transaction.date - date)
      out.append(transaction.checksum)
      out.appendVarint(UInt64(indexes[Array(transaction.label.utf8)] ?? 0))
      out.appendVarint(UInt64(transaction.recordCount))
      sequence = transaction.sequence
      date = transaction.date
    }
  }

  package static func decode(
    _ bytes: UnsafeRawBufferPointer
  ) throws(FormatError) -> [Transaction] {
    var reader = ByteReader(bytes)
    var labels: [String] = []
    var known = Set<[UInt8]>()
    for _ in 0..<(try reader.readCount(itemSize: 1)) {
      let start = reader.offset
      let bytes = try reader.readSized(limit: Limits.label)
      let label = String(decoding: bytes, as: UTF8.self)
      guard withUTF8(label, { $0.equals(bytes) }), known.insert(Array(bytes)).inserted else {
        throw FormatError("a label that is not UTF-8, or there twice", at: start)
      }
      labels.append(label)
    }
    var used: UInt64 = 0
    var result: [Transaction] = []
    var sequence: UInt64 = 0
    var date: Int64 = 0
    for _ in 0..<(try reader.readCount(itemSize: 8)) {
      let start = reader.offset
      let (next, overflow) = sequence.addingReportingOverflow(try reader.readVarint())
      let (nextDate, dateOverflow) = date.addingReportingOverflow(try reader.readZigzag())
      let checksum: UInt32 = try reader.read()
      let label = try reader.readVarint()
      let count = try reader.readVarint()
      guard !overflow, !dateOverflow, next > sequence, result.isEmpty || nextDate >= date,
        label < UInt64(labels.count), label <= used, count > 0, count <= UInt64(UInt32.max)
      else { throw FormatError("an impossible transaction", at: start) }
      used = max(used, label + 1)
      sequence = next
      date = nextDate
      result.append(
        Transaction(
          sequence: next, date: nextDate, checksum: checksum, label: labels[Int(label)],
          recordCount: UInt32(count)))
    }
    guard reader.remaining == 0, !result.isEmpty else {
      throw FormatError("a transaction table that does not fill its place", at: reader.offset)
    }
    guard used == UInt64(labels.count) else {
      throw FormatError("a label that no transaction uses")
    }
    return result
  }
}

/// Walks the commits of a frame along with its records.
struct CommitCursor {
  private let transactions: [Transaction]
  private var current = 0
  private var left: UInt32

  /// There is at least one commit, and none without records.
  init(_ transactions: [Transaction]) {
    self.transactions = transactions
    left = transactions[0].recordCount
  }

  /// The commit of the next record.
  mutating func next() throws(FormatError) -> Transaction {
    if left == 0 {
      current += 1
      guard current < transactions.count else {
        throw FormatError("more records than the transactions have", at: FrameHeader.size)
      }
      left = transactions[current].recordCount
    }
    left -= 1
    return transactions[current]
  }
}

extension ByteReader {
  /// A count of items that take at least `itemSize` bytes each.
  fileprivate mutating func readCount(itemSize: Int) throws(FormatError) -> Int {
    let start = offset
    let count = try readVarint()
    guard count <= UInt64(remaining / itemSize) else {
      throw FormatError("more items than there are bytes", at: start)
    }
    return Int(count)
  }
}
