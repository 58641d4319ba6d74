/// A migration from a store into an adapter.
struct MigrationOutOfStore {
  let store: ChangeStore
  let target: any AirDbAdapter & Sendable
  let pageSize: Int
  let progress: (@Sendable (Migration.Progress) async throws -> Void)?
  var checkpoint: Migration.Checkpoint
  private let order: TimestampOrder
  private let expected: Int
  private var result = Migration()

  /// How often what the target lacks is applied again: some of it may have arrived meanwhile.
  private static let repeats = 2

  init(
    store: ChangeStore, target: any AirDbAdapter & Sendable, pageSize: Int,
    progress: (@Sendable (Migration.Progress) async throws -> Void)?,
    checkpoint: Migration.Checkpoint
  ) throws(LogStoreError) {
    self.store = store
    self.target = target
    self.pageSize = pageSize
    self.progress = progress
    self.checkpoint = checkpoint
    order = try TimestampOrder(store)
    expected = Int(clamping: try store.statistics().liveRecords)
  }

  mutating func run() async throws -> Migration {
    if !checkpoint.isCopied { try await copy() }
    var (late, lacking) = (0, 0)
    for attempt in 0...Self.repeats {
      result = Migration()
      let known = try await compare()
      let found = try await complete(known, isLast: attempt == Self.repeats)
      // What was lacking, has been applied, and is there now.
      late += max(0, lacking - found)
      lacking = found
      if found == 0 { break }
    }
    result.late = late
    result.copied = checkpoint.copied
    return result
  }

  private mutating func copy() async throws {
    var pages = PageReader(store, pageSize: pageSize, after: checkpoint.timestamp)
    while true {
      let page = try await pages.next()
      if !page.isEmpty { try await target.applyChanges(page) }
      checkpoint.copied += page.count
      checkpoint.timestamp = pages.cursor
      checkpoint.isCopied = page.isEmpty
      try await report(.copying, checkpoint.copied)
      if page.isEmpty { return }
    }
  }

  /// Which records of the store were found in the target.
  private struct Known {
    /// In the store's version, a newer one, or one that the target will not give up.
    var settled: Set<KeyDigest> = []
    /// In an older version.
    var older: Set<KeyDigest> = []
  }

  /// Reads all of the target.
  private mutating func compare() async throws -> Known {
    var known = Known()
    var pages = PageReader(target, pageSize: pageSize + pageSize / 2 + 1)
    while true {
      let page = try await pages.next()
      if page.isEmpty { return known }
      for record in page {
        let key = RecordKey(record)
        guard let stored = try store.record(forKey: key) else {
          result.onlyInTarget += 1
          continue
        }
        switch order.compare(record.hlcTimestamp, stored.hlcTimestamp) {
        case 1: result.newerInTarget += 1
        case 0 where record.isSame(as: stored): result.identical += 1
        case 0: result.add(.conflicting, stored)
        default:
          known.older.insert(KeyDigest(key))
          continue
        }
        known.settled.insert(KeyDigest(key))
      }
      result.compared += page.count
      try await report(.comparing, result.compared)
    }
  }

  /// Applies what the target lacks, and answers how much that is; the last time, it is a difference.
  private mutating func complete(_ known: Known, isLast: Bool) async throws -> Int {
    var count = 0
    var pages = PageReader(store, pageSize: pageSize)
    while true {
      let page = try await pages.next()
      if page.isEmpty { return count }
      let lacking = page.filter { !known.settled.contains(KeyDigest(RecordKey($0))) }
      count += lacking.count
      if isLast {
        for record in lacking {
          let isThere = known.older.contains(KeyDigest(RecordKey(record)))
          result.add(isThere ? .older : .missing, record)
        }
      } else if !lacking.isEmpty {
        try await target.applyChanges(lacking)
      }
      try await report(.comparing, result.compared)
    }
  }

  private func report(_ phase: Migration.Progress.Phase, _ records: Int) async throws {
    try await progress?(
      Migration.Progress(
        phase: phase, records: records, expected: expected, checkpoint: checkpoint))
  }
}

/// 128 bits that stand for a key, in a process: two that are equal by chance would hide a record.
private struct KeyDigest: Hashable {
  private let first: Int
  private let second: Int

  init(_ key: RecordKey) {
    var (first, second) = (Hasher(), Hasher())
    second.combine(1)
    key.hash(into: &first)
    key.hash(into: &second)
    self.first = first.finalize()
    self.second = second.finalize()
  }
}
