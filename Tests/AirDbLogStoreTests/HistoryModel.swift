import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// What a history is: every commit with what it logged, and nothing else. Knows which versions have
/// been superseded, which is what a compaction may take.
struct HistoryModel {
  struct Entry: Equatable {
    var position: Position
    var date: Int64
    var author: [UInt8]
    var records: [ChangeRecord]
  }

  private(set) var entries: [Entry] = []
  private var newest: [RecordKey: ChangeRecord] = [:]

  /// Takes up a batch and what the store said about it.
  mutating func apply(
    _ batch: [ChangeRecord], author: String, date: Int64, _ result: ApplyResult
  ) throws {
    var winners: [ChangeRecord?] = []
    var places: [RecordKey: Int] = [:]
    for record in batch {
      let key = RecordKey(collection: record.collection, id: record.id)
      if let old = newest[key],
        HlcComparator.compare(record.hlcTimestamp, old.hlcTimestamp) <= 0
      {
        continue
      }
      newest[key] = record
      if let earlier = places[key] { winners[earlier] = nil }
      places[key] = winners.count
      winners.append(record)
    }
    let records = winners.compactMap(\.self)
    #expect(result.accepted == records.count)
    #expect((result.position == nil) == records.isEmpty)
    guard let position = result.position else { return }
    if let last = entries.last { #expect(last.position.sequence < position.sequence) }
    entries.append(
      Entry(
        position: position, date: max(date, entries.last?.date ?? .min),
        author: Array(author.utf8), records: records))
  }

  func isNewest(_ record: ChangeRecord) -> Bool {
    newest[RecordKey(collection: record.collection, id: record.id)] == record
  }

  /// What a store shows must be this history, without some of what has been superseded if `mayLack`.
  func expect(
    _ shown: [Entry], mayLack: Bool, _ comment: Comment? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    guard mayLack else {
      #expect(shown == entries, comment, sourceLocation: sourceLocation)
      return
    }
    var rest = shown[...]
    for entry in entries {
      var records: ArraySlice<ChangeRecord> = []
      if let first = rest.first, first.position == entry.position {
        #expect(first.date == entry.date && first.author == entry.author)
        #expect(!first.records.isEmpty)
        records = first.records[...]
        rest.removeFirst()
      }
      for record in entry.records {
        if records.first == record {
          records.removeFirst()
        } else {
          #expect(!isNewest(record), "a newest version is lacking", sourceLocation: sourceLocation)
        }
      }
      #expect(records.isEmpty, "records that were never there", sourceLocation: sourceLocation)
    }
    #expect(rest.isEmpty, "commits that were never there", sourceLocation: sourceLocation)
  }
}

extension [HistoryModel.Entry] {
  /// What a filter lets pass.
  func filtered(by filter: CommitFilter) -> [HistoryModel.Entry] {
    compactMap { entry in
      let matches = { (texts: Set<String>) in
        texts.contains { $0.utf8.elementsEqual(entry.author) }
      }
      if let authors = filter.authors, !matches(authors) { return nil }
      if matches(filter.excludedAuthors) { return nil }
      guard let collections = filter.collections else { return entry }
      var entry = entry
      entry.records.removeAll { record in
        !collections.contains { $0.utf8.elementsEqual(record.collection.utf8) }
      }
      return entry.records.isEmpty ? nil : entry
    }
  }
}

extension HistoryModel.Entry {
  /// A commit as a store shows it, with all its payloads; what is known without them must agree.
  init(_ commit: Commit) throws {
    var records: [ChangeRecord] = []
    for change in commit.changes {
      let record = try change.record()
      #expect(change.key == RecordKey(collection: record.collection, id: record.id))
      #expect(change.hlcTimestamp.utf8.elementsEqual(record.hlcTimestamp.utf8))
      #expect(change.type == record.type)
      records.append(record)
    }
    self.init(
      position: commit.position, date: commit.milliseconds, author: Array(commit.author.utf8),
      records: records)
  }
}

extension ChangeStore {
  /// All pages of the history behind a position.
  func history(
    after start: Position? = nil, matching filter: CommitFilter = .all,
    limit: @autoclosure () -> Int = .max, byteLimit: Int = .max
  ) throws -> [HistoryModel.Entry] {
    var entries: [HistoryModel.Entry] = []
    var position = start
    while true {
      let limit = limit()
      let page = try commits(after: position, matching: filter, limit: limit, byteLimit: byteLimit)
      #expect(page.commits.count <= limit)
      for commit in page.commits { entries.append(try HistoryModel.Entry(commit)) }
      if page.isLast { return entries }
      // Progress is what ends this.
      let next = try #require(page.next)
      try #require(next.sequence > position?.sequence ?? 0)
      position = next
    }
  }
}

/// A platform in memory whose clocks a test sets.
struct ClockedPlatform: WrappedPlatform {
  let wrapped = MemoryPlatform()
  let clock = SimulatedClock()

  func wallClockMilliseconds() -> Int64 { clock.milliseconds }
  func uptimeNanoseconds() -> UInt64 { clock.uptimeNanoseconds }
  func sleep(nanoseconds: UInt64) { clock.sleep(nanoseconds: nanoseconds) }
}
