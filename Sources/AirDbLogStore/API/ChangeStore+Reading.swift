// Reads: each sees one state of the store, whatever is committed meanwhile.
extension ChangeStore {
  /// The newest version of a record, which may be a deletion; nil if it was never stored.
  ///
  /// - Throws: ``LogStoreError`` with `corrupt` if what is read is damaged; `inputOutput`,
  ///   `tooManyOpenFiles` or `protectedDataUnavailable` if it cannot be read; `suspended`, `closed`. So do
  ///   the other reads.
  /// - Complexity: A filter probe a sealed segment, and reads of about three pages or blocks.
  public func record(forKey key: RecordKey) throws(LogStoreError) -> ChangeRecord? {
    try reading { (engine) throws(LogStoreError) in
      let state = engine.snapshot
      // Files of segments that are replaced stay as long as the snapshot does.
      defer { withExtendedLifetime(state) {} }
      let place = try engine.reading { () throws(ReadFailure) in
        try withUTF8(key.collection) { (collection) throws(ReadFailure) in
          try withUTF8(key.id) { (id) throws(ReadFailure) in
            try engine.find(state, collection: collection, id: id)
          }
        }
      }
      guard let place else { return nil }
      return try engine.withRecordReader { (reader) throws(LogStoreError) in
        try reader.record(at: place, of: engine)
      }
    }
  }

  /// The newest versions of a collection's records, deletions included, ascending by the bytes of their
  /// ids: at most `limit` of those whose ids start with `idPrefix` and are greater than `after`.
  ///
  /// - Complexity: In proportion to the records of the collection, whatever the limit: ids are not
  ///   kept in order.
  public func records(
    in collection: String, idPrefix: String = "", after: String? = nil, limit: Int = .max
  ) throws(LogStoreError) -> [ChangeRecord] {
    try reading { (engine) throws(LogStoreError) in
      try engine.records(in: collection, idPrefix: idPrefix, after: after, limit: limit)
    }
  }

  /// The same without deletions.
  func undeletedRecords(
    in collection: String, idPrefix: String = "", after: String? = nil, limit: Int = .max
  ) throws(LogStoreError) -> [ChangeRecord] {
    try reading { (engine) throws(LogStoreError) in
      try engine.records(
        in: collection, idPrefix: idPrefix, after: after, limit: limit, deletions: false)
    }
  }

  /// A page of the newest versions of all records, deletions included, ascending by timestamp.
  ///
  /// Unlike ``getChangesSince(sinceHlcTimestamp:limit:)`` it may end inside a run of equal timestamps
  /// and goes on there, since its cursor also says when a record arrived; and it is limited by bytes.
  ///
  /// - Parameters:
  ///   - cursor: Where the page before ended; nil for the first.
  ///   - limit: The most records. Zero or less gives none, and goes nowhere.
  ///   - byteLimit: No record is added once the page has so many bytes; a page has at least one record.
  /// - Throws: ``LogStoreError`` as ``record(forKey:)`` does, and with `invalidTimestamp` or
  ///   `mixedTimestamps` for a cursor of another store.
  /// - Complexity: A search in the index of each sealed segment, then in proportion to the page and
  ///   to superseded versions on the way.
  public func changes(
    after cursor: ChangeCursor? = nil, limit: Int, byteLimit: Int = 16 << 20
  ) throws(LogStoreError) -> ChangePage {
    let end = cursor.map {
      Engine.PageEnd(text: $0.timestamp, sequence: $0.sequence, ordinal: $0.ordinal)
    }
    let page = try reading { (engine) throws(LogStoreError) in
      try engine.page(after: end, limit: limit, byteLimit: max(byteLimit, 1))
    }
    return ChangePage(
      records: page.records,
      next: page.end.map {
        ChangeCursor(timestamp: $0.text, sequence: $0.sequence, ordinal: $0.ordinal)
      }, isLast: page.isLast)
  }

  /// The greatest timestamp ever stored; it does not decrease, not by cleaning either.
  ///
  /// - Complexity: O(1), without I/O.
  public var latestTimestamp: String? {
    get throws(LogStoreError) {
      try engine.published.withLock { $0.greatestHlc?.text }
    }
  }

  /// The end of the log: the last commit that is visible; nil in a store without one.
  ///
  /// - Complexity: O(1), without I/O.
  public var position: Position? {
    get throws(LogStoreError) {
      let engine = try engine
      let end = engine.published.withLock { $0.end }
      return end.sequence > 0 ? engine.position(at: end) : nil
    }
  }
}

/// A page of the feed.
public struct ChangePage: Sendable {
  /// The newest versions, ascending by timestamp.
  public let records: [ChangeRecord]
  /// Where the next page goes on. Also at the end, for what is stored later with greater timestamps;
  /// nil only if there has been no record at all.
  public let next: ChangeCursor?
  /// Whether this was the end when it was read.
  public let isLast: Bool
}

/// A place in the feed: behind one record.
public struct ChangeCursor: Sendable, Hashable, Codable {
  /// The record's timestamp.
  public let timestamp: String
  /// The commit with which it arrived.
  public let sequence: UInt64
  /// Its place in that commit.
  public let ordinal: UInt64
}

extension ChangeCursor {
  /// The place behind all records whose timestamps are not greater than this one, whether a record
  /// has it or not.
  public init(behind timestamp: String) {
    self.init(timestamp: timestamp, sequence: .max, ordinal: .max)
  }
}
