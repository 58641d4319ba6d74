package import AirDbLogStore

/// Checks that a store holds exactly what a model says, by every way to read it.
package struct EngineOracle {
  private let store: ChangeStore

  package init(_ store: ChangeStore) { self.store = store }

  /// The commits that the store holds, of those that the trace knows; between `least` and all of
  /// them.
  package func prefix(of trace: EngineTrace, least: Int) throws -> Int {
    let feed = try store.engine.adapterPage(after: nil, limit: .max)
    let purges = try purges(of: trace)
    // Every commit stores something, so that no two prefixes hold the same.
    for count in trace.models.indices.reversed()
    where feed == trace.model(count, purges: purges).feed.records {
      guard count >= least else {
        throw OracleViolation(
          "\(count) commits are left of \(trace.commits.count), \(least) were durable")
      }
      return count
    }
    throw OracleViolation(
      "the feed is no prefix of the commits: \(feed.map { "\($0.collection)/\($0.id)@\($0.hlcTimestamp)" })"
    )
  }

  /// How many of the purges that the trace knows have happened. The horizon says so: it never goes
  /// back, and is there if and only if the tombstones are gone.
  package func purges(of trace: EngineTrace) throws -> Int {
    let manifest = try store.engine.manifest.value
    let timestamp = String(decoding: manifest.horizonHlc, as: UTF8.self)
    let inForce = try store.engine.snapshot.purgeHorizon?.text ?? ""
    try expect(inForce == timestamp, "the horizon is \(timestamp), in force is \(inForce)")
    let horizon = manifest.retentionHorizon
    var count = 0
    if horizon > 0 || !timestamp.isEmpty {
      let place = trace.purges.firstIndex { $0.horizon == horizon && $0.timestamp == timestamp }
      guard let place else {
        throw OracleViolation("no purge has the horizon \(horizon), \(timestamp)")
      }
      count = place + 1
    }
    try expect(
      count >= trace.purgesDone,
      "the horizon is that of \(count) purges, \(trace.purgesDone) were done")
    return count
  }

  /// What the store must answer after that many commits.
  package func model(of trace: EngineTrace, _ count: Int) throws -> ReferenceModel {
    trace.model(count, purges: try purges(of: trace))
  }

  /// Throws if anything comes back to life of what was purged, or may be.
  package func refusesResurrections(of trace: EngineTrace, _ count: Int) throws {
    guard let last = trace.purges.last else { return }
    let purges = try purges(of: trace)
    let model = trace.model(count, purges: purges)
    let purged = purges > 0 ? trace.purges[purges - 1] : nil
    var batch: [ChangeRecord] = []
    var resurrections = 0
    for (key, timestamp) in last.tombstones {
      var record = ChangeRecord(
        id: String(decoding: key.id, as: UTF8.self),
        collection: String(decoding: key.collection, as: UTF8.self), type: .update,
        payload: .init([1]), hlcTimestamp: Self.longAgo)
      let found = try store.record(
        forKey: RecordKey(collection: record.collection, id: record.id))
      try expect(found == model.entries[key]?.record, "the record of a purged key differs")
      // Not yet written, or written again since.
      guard trace.models[count].entries[key]?.record.hlcTimestamp == timestamp else { continue }
      batch.append(record)
      guard let purged, model.entries[key] == nil else { continue }
      record.hlcTimestamp = purged.timestamp
      batch.append(record)
      resurrections += 2
    }
    if let purged {
      // Nobody knows whether there has been a deletion of this.
      batch.append(
        ChangeRecord(
          id: "never stored", collection: "notes", type: .update, payload: .init([1]),
          hlcTimestamp: purged.timestamp))
      resurrections += 1
    }
    if batch.isEmpty { return }
    let result = try store.applyAndWait(batch)
    try expect(
      result.accepted == 0 && result.position == nil && result.superseded == batch.count
        && result.possibleResurrections == resurrections,
      "\(batch.count) changes from before the horizon were answered with \(result)")
    let feed = try store.engine.adapterPage(after: nil, limit: .max)
    try expect(feed == model.feed.records, "a change from before the horizon was stored")
  }

  private static let longAgo = "0000000000001-0000-a"

  /// Throws unless the store and the model agree.
  package func check(_ model: ReferenceModel, absent: (collection: String, id: String)) throws {
    let feed = model.feed
    try expect(
      try store.engine.adapterPage(after: nil, limit: .max) == feed.records, "the feed differs")
    try checkPages(feed, limit: 3)
    for entry in feed.entries {
      let record = entry.record
      let found = try store.record(
        forKey: RecordKey(collection: record.collection, id: record.id))
      try expect(found == record, "the record \(record.collection)/\(record.id) differs")
    }
    let none = try store.record(
      forKey: RecordKey(collection: absent.collection, id: absent.id))
    try expect(none == nil, "a record was found that was never stored")
    let latest = try store.latestTimestamp
    try expect(
      latest == model.latest?.text,
      "the latest timestamp is \(latest ?? "none"), not \(model.latest?.text ?? "none")")
    for collection in Set(feed.records.map(\.collection)) {
      try expect(
        try store.records(in: collection) == model.records(in: collection),
        "the records of \(collection) differ")
    }
  }

  private func checkPages(_ feed: ReferenceModel.Feed, limit: Int) throws {
    var cursor: String?
    while true {
      let page = try store.engine.adapterPage(after: cursor, limit: limit)
      try expect(page == feed.page(after: cursor, limit: limit), "a page of the feed differs")
      guard let last = page.last else { break }
      cursor = last.hlcTimestamp
    }
    var records: [ChangeRecord] = []
    var next: ChangeCursor?
    while true {
      let page = try store.changes(after: next, limit: limit)
      records += page.records
      next = page.next
      if page.isLast { break }
      try expect(!page.records.isEmpty, "a page that is not the last is empty")
    }
    try expect(records == feed.records, "the native pages differ")
  }

  /// Throws unless the full check finds nothing.
  package func verify() throws {
    let report = try store.verify()
    guard let problem = report.problems.first else { return }
    throw OracleViolation("verify: \(problem.file) at \(problem.offset ?? 0): \(problem.reason)")
  }
}

/// Throws a violation unless the condition holds.
package func expect(
  _ condition: @autoclosure () throws -> Bool, _ violation: @autoclosure () -> String
) throws {
  if try !condition() { throw OracleViolation(violation()) }
}
