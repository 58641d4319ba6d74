extension AirDbAdapter where Self: Sendable {
  /// Exchanges changes with another adapter, both ways, until neither has anything new for the other.
  ///
  /// The two are read side by side, in the order of the timestamps, and what one of them lacks or has
  /// in another version is applied to it; the last writer wins. This is repeated until a round finds
  /// nothing to hand over. A second round is enough when nobody else writes meanwhile.
  ///
  /// ```swift
  /// let result = try await store.converge(with: peer)
  /// if !result.isQuiet { print("others go on writing, or an adapter loses changes") }
  /// ```
  ///
  /// It uses the three methods of the contract only, and so compares all records, but sends no more
  /// than what differs. Nothing is kept from one call to the next: after an error, or a cancellation,
  /// batches that were applied stay so, and another call goes on with what is left.
  ///
  /// An adapter whose pages end among changes of equal timestamps hides some of them from every peer.
  /// Not here: the last timestamp of a page is read again with a greater limit, until what follows it
  /// shows that it is whole. What an adapter gives to nobody cannot be seen. Both adapters must order
  /// by `HlcComparator`.
  ///
  /// - Parameters:
  ///   - other: The adapter to exchange with.
  ///   - pageSize: How many changes are read, and applied, at a time; at least 1 is taken.
  ///   - maximumRounds: After how many rounds it gives up; at least 1 is taken.
  /// - Returns: What was exchanged, and whether the last round was quiet.
  /// - Throws: The errors of the adapters; `CancellationError` when the task is cancelled;
  ///   ``LogStoreError`` with `brokenAdapter` for one that gives again what is at its cursor.
  /// - Complexity: O(n) in the records of both, a round; memory for two pages and two batches, or for
  ///   the longest run of equal timestamps.
  @concurrent
  public func converge(
    with other: any AirDbAdapter & Sendable, pageSize: Int = 500, maximumRounds: Int = 10
  ) async throws -> Convergence {
    var result = Convergence()
    repeat {
      var round = ExchangeRound(self, other, pageSize: max(1, pageSize))
      try await round.run()
      result.rounds += 1
      result.sent += round.toSecond.count
      result.received += round.toFirst.count
      result.conflictingTies = round.conflictingTies
      result.isQuiet = round.toFirst.count + round.toSecond.count == 0
    } while !result.isQuiet && result.rounds < maximumRounds
    return result
  }
}

/// What became of an exchange between two adapters.
public struct Convergence: Sendable, Hashable {
  /// How often both were read to the end.
  public internal(set) var rounds = 0
  /// Changes that were applied to the other adapter; some may have been older than its own.
  public internal(set) var sent = 0
  /// Changes that were applied to this adapter; some may have been older than its own.
  public internal(set) var received = 0
  /// Records whose two versions have equal timestamps and are not the same. Each adapter keeps its
  /// own: a sign that two writers share a node.
  public internal(set) var conflictingTies = 0
  /// Whether the last round found nothing to hand over.
  public internal(set) var isQuiet = false
}

/// Reads two adapters side by side once, and hands to each what the other has.
private struct ExchangeRound {
  private var first: RunReader
  private var second: RunReader
  private(set) var toFirst: BatchWriter
  private(set) var toSecond: BatchWriter
  private(set) var conflictingTies = 0

  init(
    _ first: any AirDbAdapter & Sendable, _ second: any AirDbAdapter & Sendable, pageSize: Int
  ) {
    self.first = RunReader(adapter: first, pageSize: pageSize)
    self.second = RunReader(adapter: second, pageSize: pageSize)
    toFirst = BatchWriter(adapter: first, batchSize: pageSize)
    toSecond = BatchWriter(adapter: second, batchSize: pageSize)
  }

  mutating func run() async throws {
    var left = try await first.next()
    var right = try await second.next()
    while !left.isEmpty || !right.isEmpty {
      let order =
        switch (left.first, right.first) {
        case (let left?, let right?):
          HlcComparator.compare(left.hlcTimestamp, right.hlcTimestamp)
        case (_?, nil): -1
        default: 1
        }
      if order == 0 {
        try await exchange(left, right)
      } else if order < 0 {
        try await toSecond.add(left)
      } else {
        try await toFirst.add(right)
      }
      if order <= 0 { left = try await first.next() }
      if order >= 0 { right = try await second.next() }
    }
    try await toFirst.flush()
    try await toSecond.flush()
  }

  /// Hands over what one of two runs of the same timestamp lacks.
  private mutating func exchange(_ left: [ChangeRecord], _ right: [ChangeRecord]) async throws {
    var others: [RecordKey: ChangeRecord] = [:]
    for change in right { others[RecordKey(change)] = change }
    var missing: [ChangeRecord] = []
    for change in left {
      if let other = others.removeValue(forKey: RecordKey(change)) {
        if !change.isSame(as: other) { conflictingTies += 1 }
      } else {
        missing.append(change)
      }
    }
    try await toSecond.add(missing)
    try await toFirst.add(right.filter { others[RecordKey($0)] != nil })
  }
}

/// Gives the changes of an adapter in runs of equal timestamps.
private struct RunReader {
  private var pages: PageReader
  private var page: ArraySlice<ChangeRecord> = []

  init(adapter: any AirDbAdapter & Sendable, pageSize: Int) {
    pages = PageReader(adapter, pageSize: pageSize)
  }

  /// The next run; empty at the end.
  mutating func next() async throws -> [ChangeRecord] {
    if page.isEmpty { page = try await pages.next()[...] }
    guard let first = page.first else { return [] }
    let run = page.prefix {
      HlcComparator.compare($0.hlcTimestamp, first.hlcTimestamp) == 0
    }
    page = page.dropFirst(run.count)
    return Array(run)
  }
}

/// Applies changes to an adapter in batches.
private struct BatchWriter {
  let adapter: any AirDbAdapter & Sendable
  let batchSize: Int
  /// How many changes were given to it.
  private(set) var count = 0
  private var batch: [ChangeRecord] = []

  init(adapter: any AirDbAdapter & Sendable, batchSize: Int) {
    self.adapter = adapter
    self.batchSize = batchSize
  }

  mutating func add(_ changes: [ChangeRecord]) async throws {
    count += changes.count
    batch += changes
    if batch.count >= batchSize { try await flush() }
  }

  mutating func flush() async throws {
    guard !batch.isEmpty else { return }
    try Task.checkCancellation()
    try await adapter.applyChanges(batch)
    batch = []
  }
}

extension RecordKey {
  init(_ change: ChangeRecord) {
    self.init(collection: change.collection, id: change.id)
  }
}

extension ChangeRecord {
  /// Whether all parts are equal, texts by their UTF-8 bytes. AirDB's own record has no such
  /// comparison.
  func isSame(as other: ChangeRecord) -> Bool {
    RecordKey(self) == RecordKey(other) && type.rawValue == other.type.rawValue
      && hlcTimestamp.utf8.elementsEqual(other.hlcTimestamp.utf8) && payload == other.payload
      && authorPublicKey == other.authorPublicKey && signature == other.signature
  }
}
