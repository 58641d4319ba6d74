/// A migration from an adapter into a store.
struct MigrationIntoStore {
  let store: ChangeStore
  let source: any AirDbAdapter & Sendable
  let pageSize: Int
  let author: String?
  let settingAside: (@Sendable (ChangeRecord, LogStoreError) async throws -> Void)?
  let progress: (@Sendable (Migration.Progress) async throws -> Void)?
  var checkpoint: Migration.Checkpoint
  private let order: TimestampOrder
  private var result = Migration()

  init(
    store: ChangeStore, source: any AirDbAdapter & Sendable, pageSize: Int, author: String?,
    settingAside: (@Sendable (ChangeRecord, LogStoreError) async throws -> Void)?,
    progress: (@Sendable (Migration.Progress) async throws -> Void)?,
    checkpoint: Migration.Checkpoint
  ) throws(LogStoreError) {
    self.store = store
    self.source = source
    self.pageSize = pageSize
    self.author = author
    self.settingAside = settingAside
    self.progress = progress
    self.checkpoint = checkpoint
    order = try TimestampOrder(store)
  }

  mutating func run() async throws -> Migration {
    if !checkpoint.isCopied { try await copy() }
    try await compare()
    result.copied = checkpoint.copied
    return result
  }

  private mutating func copy() async throws {
    var pages = PageReader(source, pageSize: pageSize, after: checkpoint.timestamp)
    while true {
      let page = try await pages.next()
      let (good, _) = try split(page)
      if !good.isEmpty { try await store.apply(good, author: author) }
      checkpoint.copied += good.count
      checkpoint.timestamp = pages.cursor
      checkpoint.isCopied = page.isEmpty
      // A checkpoint must not survive what it speaks of.
      try await makeDurable()
      try await report(.copying, checkpoint.copied, expected: nil)
      if page.isEmpty { return }
    }
  }

  /// The records of a page that the store takes, and the others.
  private func split(
    _ page: [ChangeRecord]
  ) throws(LogStoreError) -> (good: [ChangeRecord], bad: [(ChangeRecord, LogStoreError)]) {
    let problems = try store.validate(page)
    guard let first = problems.first else { return (page, []) }
    guard settingAside != nil else { throw first }
    var reasons: [Int: LogStoreError] = [:]
    for problem in problems { reasons[problem.recordIndex ?? 0] = problem }
    var (good, bad): ([ChangeRecord], [(ChangeRecord, LogStoreError)]) = ([], [])
    for (index, record) in page.enumerated() {
      if let reason = reasons[index] { bad.append((record, reason)) } else { good.append(record) }
    }
    return (good, bad)
  }

  /// Reads the source once more, in other pages, and looks up each record.
  private mutating func compare() async throws {
    let claimed = try await source.getLatestHlc()
    var greatest: String?
    var pages = PageReader(source, pageSize: pageSize + pageSize / 2 + 1)
    while true {
      let page = try await pages.next()
      if page.isEmpty { break }
      let (good, bad) = try split(page)
      for (record, reason) in bad { try await settingAside?(record, reason) }
      result.setAside += bad.count
      let lacking = try count(good)
      if !lacking.isEmpty {
        try await store.apply(lacking, author: author)
        let refused = try count(lacking)
        result.late += lacking.count - refused.count
        for record in refused {
          result.add(try stored(record) == nil ? .missing : .older, record)
        }
      }
      result.compared += page.count
      for record in page { order.keepGreatest(&greatest, record.hlcTimestamp) }
      try await report(.comparing, result.compared, expected: checkpoint.copied)
    }
    if let claimed, order.keepGreatest(&greatest, claimed) { result.latestNotGiven = claimed }
    try await makeDurable()
  }

  /// Makes what was applied survive a loss of power: off the cooperative pool, since that blocks, and only
  /// if its durability has not done so.
  private func makeDurable() async throws {
    try await store.deliveries.perform { [store] () throws(LogStoreError) in
      let writer = try store.writer
      guard let end = try store.position else { return }
      try writer.makeDurable(upTo: end.sequence)
    }
  }

  /// Counts the records of which the store has this version or a newer one, and gives the others.
  private mutating func count(_ records: [ChangeRecord]) throws(LogStoreError) -> [ChangeRecord] {
    var lacking: [ChangeRecord] = []
    for record in records {
      let stored = try stored(record)
      switch stored.map({ order.compare($0.hlcTimestamp, record.hlcTimestamp) }) {
      case 1?: result.newerInTarget += 1
      case 0? where stored?.isSame(as: record) == true: result.identical += 1
      case 0?: result.add(.conflicting, record)
      default: lacking.append(record)
      }
    }
    return lacking
  }

  private func stored(_ record: ChangeRecord) throws(LogStoreError) -> ChangeRecord? {
    try store.record(forKey: RecordKey(record))
  }

  private func report(
    _ phase: Migration.Progress.Phase, _ records: Int, expected: Int?
  ) async throws {
    try await progress?(
      Migration.Progress(
        phase: phase, records: records, expected: expected, checkpoint: checkpoint))
  }
}
