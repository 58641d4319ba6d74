import AirDbLogStore

/// A dictionary that does what the contract says, in memory: the others must hold the same.
final class ReferenceEngine: StorageEngine {
  private var records: [RecordKey: ChangeRecord] = [:]
  private var sorted: [ChangeRecord]?

  init(at path: String, level: Level) {}

  func apply(_ batch: [ChangeRecord]) {
    sorted = nil
    for record in batch {
      let key = RecordKey(collection: record.collection, id: record.id)
      if let old = records[key],
        HlcComparator.compare(record.hlcTimestamp, old.hlcTimestamp) <= 0
      {
        continue
      }
      records[key] = record
    }
  }

  private var feed: [ChangeRecord] {
    if let sorted { return sorted }
    let feed = records.values.sorted {
      HlcComparator.compare($0.hlcTimestamp, $1.hlcTimestamp) < 0
    }
    sorted = feed
    return feed
  }

  func page(after cursor: String?, limit: Int) -> [ChangeRecord] {
    guard let cursor else { return Array(feed.prefix(limit)) }
    let rest = feed.drop { HlcComparator.compare($0.hlcTimestamp, cursor) <= 0 }
    return Array(rest.prefix(limit))
  }

  func sweep(pageSize: Int, _ body: ([ChangeRecord]) throws -> Void) rethrows { try body(feed) }

  func latestTimestamp() -> String? { feed.last?.hlcTimestamp }

  func record(collection: String, id: String) -> ChangeRecord? {
    records[RecordKey(collection: collection, id: id)]
  }

  func close() {}

  var version: String { "" }
}
