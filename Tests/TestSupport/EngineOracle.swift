package import AirDbLogStore

/// Checks that a store holds exactly what a model says, by every way to read it.
package struct EngineOracle {
  private let store: ChangeStore

  package init(_ store: ChangeStore) { self.store = store }

  /// The commits that the store holds, of those that the trace knows; between `least` and all of
  /// them.
  package func prefix(of trace: EngineTrace, least: Int) throws -> Int {
    let feed = try store.engine.adapterPage(after: nil, limit: .max)
    // Every commit stores something, so that no two prefixes hold the same.
    for count in trace.models.indices.reversed() where feed == trace.models[count].feed.records {
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
