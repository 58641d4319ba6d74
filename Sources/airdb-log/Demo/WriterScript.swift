import AirDbLogStore

/// What the process that is killed writes: the records of a source store, again and again, each time
/// with new stamps. So it never ends before it is killed, and what must be there after any number
/// of changes can be told from the number alone.
struct WriterScript {
  private let source: ChangeStore
  private let sourceCount: Int
  private var cursor: ChangeCursor?
  /// The changes up to the end of the last batch.
  private(set) var changes: Int

  private static let batchRecords = 8
  private static let physicalBase: UInt64 = 1_000_000_000_000

  /// - Parameter changes: How many were written already; the end of a batch.
  init(_ source: ChangeStore, after changes: Int) throws {
    self.source = source
    sourceCount = Int(try source.statistics().liveRecords)
    self.changes = sourceCount == 0 ? 0 : changes / sourceCount * sourceCount
    while self.changes < changes, try nextBatch() != nil {}
  }

  /// The next batch; nil only if the source has no records.
  mutating func nextBatch() throws -> [ChangeRecord]? {
    let page = try source.changes(after: cursor, limit: Self.batchRecords, byteLimit: 1 << 20)
    guard !page.records.isEmpty else { return nil }
    cursor = page.isLast ? nil : page.next
    defer { changes += page.records.count }
    return page.records.enumerated().map { index, record in
      Self.stamped(record, change: changes + index)
    }
  }

  /// A record as the change of that number has it.
  static func stamped(_ record: ChangeRecord, change: Int) -> ChangeRecord {
    let counter = UInt64(change)
    return ChangeRecord(
      id: record.id, collection: record.collection, type: record.type, payload: record.payload,
      hlcTimestamp: ReplayClock.text(physicalBase + counter >> 16, counter & 0xFFFF, node: 0),
      authorPublicKey: record.authorPublicKey, signature: record.signature)
  }

  /// How many changes a store has, whose latest timestamp is this.
  static func changes(latest: String?) -> Int {
    guard let latest else { return 0 }
    let parts = latest.split(separator: "-")
    guard parts.count == 3, let physical = Int(parts[0]), let counter = Int(parts[1], radix: 16)
    else { return 0 }
    return (physical - Int(physicalBase)) << 16 + counter + 1
  }

  /// Compares a store with what it must be after some number of changes.
  static func check(
    _ store: ChangeStore, against source: ChangeStore, after changes: Int,
    _ differences: inout Differences
  ) throws {
    let count = Int(try source.statistics().liveRecords)
    // Walks through one round of batches: these have the same ends in all rounds.
    var script = try WriterScript(source, after: 0)
    var isBatchEnd = changes % count == 0
    while script.changes < count, let batch = try script.nextBatch() {
      let end = script.changes
      if changes % count == end % count { isBatchEnd = true }
      for (index, record) in batch.enumerated() {
        let number = end - batch.count + index
        // The last of the changes number, number + count, number + 2 * count, ... below `changes`.
        let latest = number + (changes - 1 - number) / count * count
        let expected = number < changes ? stamped(record, change: latest) : nil
        let key = RecordKey(collection: record.collection, id: record.id)
        if try !areSame(store.record(forKey: key), expected) {
          differences.add("not as after change \(changes): \(record.id)")
        }
      }
    }
    if !isBatchEnd { differences.add("a part of the batch that has change \(changes) is there") }
    let live = Int(try store.statistics().liveRecords)
    if live != min(changes, count) {
      differences.add("\(live) records are live instead of \(min(changes, count))")
    }
  }
}
