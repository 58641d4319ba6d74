package import AirDbLogStore
package import HlcText

/// What a store must answer, in the plainest form: a dictionary of the newest versions.
///
/// It shares with the engine only the grammar and the order of timestamps. Keys are pairs of
/// bytes; order is that of the timestamps, and of arrival among equal ones.
package struct ReferenceModel: Sendable {
  /// A record's identity.
  package struct Key: Hashable, Comparable, Sendable {
    package let collection: [UInt8]
    package let id: [UInt8]

    package init(_ record: ChangeRecord) {
      collection = Array(record.collection.utf8)
      id = Array(record.id.utf8)
    }

    package static func < (a: Key, b: Key) -> Bool {
      a.collection == b.collection
        ? a.id.lexicographicallyPrecedes(b.id)
        : a.collection.lexicographicallyPrecedes(b.collection)
    }
  }

  /// The newest version of a record.
  package struct Entry: Sendable {
    package let record: ChangeRecord
    package let time: Time
    /// The commit that brought it, and its place among what that commit stored.
    package let commit: Int
    package let ordinal: Int
  }

  /// Why a batch is refused.
  package struct Refusal: Error, Hashable {
    package let code: LogStoreError.Code
    package let index: Int

    package init(code: LogStoreError.Code, index: Int) {
      self.code = code
      self.index = index
    }
  }

  /// What becomes of a batch.
  package struct Outcome: Hashable, Sendable {
    package var accepted = 0
    package var superseded = 0
    package var conflictingTies = 0

    package init(accepted: Int = 0, superseded: Int = 0, conflictingTies: Int = 0) {
      self.accepted = accepted
      self.superseded = superseded
      self.conflictingTies = conflictingTies
    }
  }

  package let format: HlcFormat
  package private(set) var entries: [Key: Entry] = [:]
  package private(set) var latest: Time?
  /// How many batches have stored something.
  package private(set) var commits = 0
  private var kind: HlcPhysicalKind?

  package init(format: HlcFormat = .hybrid) {
    self.format = format
  }
}

// MARK: - Time

extension ReferenceModel {
  /// A timestamp with its parts.
  package struct Time: Comparable, Sendable {
    package let text: String
    fileprivate let bytes: [UInt8]
    fileprivate let parts: HlcParts

    package init?(_ text: String, format: HlcFormat) {
      let bytes = Array(text.utf8)
      guard let parts = bytes.withUnsafeBufferPointer({ parseHlc($0, format: format) })
      else { return nil }
      self.text = text
      self.bytes = bytes
      self.parts = parts
    }

    fileprivate func compare(_ other: Time) -> Int {
      bytes.withUnsafeBufferPointer { left in
        other.bytes.withUnsafeBufferPointer { compareHlc(left, parts, $0, other.parts) }
      }
    }

    package static func < (a: Time, b: Time) -> Bool { a.compare(b) < 0 }
    package static func == (a: Time, b: Time) -> Bool { a.compare(b) == 0 }
  }
}

// MARK: - Applying

extension ReferenceModel {
  /// Applies a batch, or refuses it and stays as it is.
  @discardableResult
  package mutating func apply(_ batch: [ChangeRecord]) throws(Refusal) -> Outcome {
    let times = try check(batch)
    var outcome = Outcome()
    // What the batch stores, in the order in which it arrived.
    var stored: [Key: (place: Int, record: ChangeRecord, time: Time)] = [:]
    for (index, record) in batch.enumerated() {
      let key = Key(record)
      let time = times[index]
      let known = stored[key].map { ($0.record, $0.time) }
      if let (old, oldTime) = known ?? entries[key].map({ ($0.record, $0.time) }), time <= oldTime {
        outcome.superseded += 1
        if time == oldTime, !record.hasContent(of: old) { outcome.conflictingTies += 1 }
        continue
      }
      if known != nil { outcome.superseded += 1 }
      stored[key] = (index, record, time)
    }
    outcome.accepted = stored.count
    guard !stored.isEmpty else { return outcome }
    for (ordinal, key) in stored.keys.sorted(by: { stored[$0]!.place < stored[$1]!.place })
      .enumerated()
    {
      let (_, record, time) = stored[key]!
      entries[key] = Entry(record: record, time: time, commit: commits, ordinal: ordinal)
      latest = latest.map { max($0, time) == $0 ? $0 : time } ?? time
    }
    commits += 1
    kind = times[0].parts.kind
    return outcome
  }

  /// The same without these tombstones, as far as they are the newest versions.
  package func purged(_ tombstones: [Key: String]) -> ReferenceModel {
    var result = self
    for (key, timestamp) in tombstones where entries[key]?.record.hlcTimestamp == timestamp {
      result.entries[key] = nil
    }
    return result
  }

  private func check(_ batch: [ChangeRecord]) throws(Refusal) -> [Time] {
    var times: [Time] = []
    for (index, record) in batch.enumerated() {
      let isTooLong =
        record.id.utf8.count > 65_536 || record.collection.utf8.count > 4_096
        || record.hlcTimestamp.utf8.count > 1_024
        || record.authorPublicKey?.count ?? 0 > 65_536 || record.signature?.count ?? 0 > 65_536
      guard !isTooLong else { throw Refusal(code: .limitExceeded, index: index) }
      guard let time = Time(record.hlcTimestamp, format: format)
      else { throw Refusal(code: .invalidTimestamp, index: index) }
      if let first = times.first, first.parts.kind != time.parts.kind {
        throw Refusal(code: .mixedTimestamps, index: index)
      }
      times.append(time)
    }
    if let kind, let first = times.first, first.parts.kind != kind {
      throw Refusal(code: .mixedTimestamps, index: 0)
    }
    return times
  }
}

extension ChangeRecord {
  /// Whether all but key and timestamp are the same.
  fileprivate func hasContent(of other: ChangeRecord) -> Bool {
    type == other.type && payload == other.payload && authorPublicKey == other.authorPublicKey
      && signature == other.signature
  }
}

// MARK: - Reading

extension ReferenceModel {
  /// The newest version of a record.
  package func record(_ collection: String, _ id: String) -> ChangeRecord? {
    let key = Key(
      ChangeRecord(
        id: id, collection: collection, type: .insert, payload: .init(), hlcTimestamp: ""))
    return entries[key]?.record
  }

  /// All newest versions, in the order of the feed.
  package var feed: Feed {
    Feed(
      entries: entries.values.sorted { a, b in
        if a.time != b.time { return a.time < b.time }
        return (a.commit, a.ordinal) < (b.commit, b.ordinal)
      }, format: format)
  }

  /// The newest versions of a collection, by the bytes of their ids.
  package func records(
    in collection: String, idPrefix: String = "", after: String? = nil, limit: Int = .max
  ) -> [ChangeRecord] {
    let prefix = Array(idPrefix.utf8)
    let lower = after.map { Array($0.utf8) }
    let found = entries.filter { key, _ in
      key.collection.elementsEqual(collection.utf8) && key.id.starts(with: prefix)
        && lower.map { $0.lexicographicallyPrecedes(key.id) } ?? true
    }
    return found.sorted { $0.key < $1.key }.prefix(max(0, limit)).map(\.value.record)
  }

  /// A model's records in order.
  package struct Feed: Sendable {
    package let entries: [Entry]
    fileprivate let format: HlcFormat

    package var records: [ChangeRecord] { entries.map(\.record) }

    /// What the adapter must answer: never a part of a run of equal timestamps.
    package func page(after cursor: String?, limit: Int) -> [ChangeRecord] {
      guard limit > 0 else { return [] }
      let start = cursor.map { index(after: Time($0, format: format)!) } ?? 0
      var end = start + min(limit, entries.count - start)
      while end > start, end < entries.count, entries[end].time == entries[end - 1].time {
        end += 1
      }
      return entries[start..<end].map(\.record)
    }

    private func index(after time: Time) -> Int {
      var low = 0
      var high = entries.count
      while low < high {
        let middle = (low + high) / 2
        if entries[middle].time <= time { low = middle + 1 } else { high = middle }
      }
      return low
    }
  }
}
