#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation

  /// Brings one store's changes to another as AirDB does, through the adapter alone, and compares
  /// the two.
  struct Synchronization {
    let interruption: Interruption

    struct Result {
      var records = 0
      var pages = 0
      var duration = Duration.zero
    }

    /// The adapter's pages are limited by records only; so their number follows the size of what the
    /// last page had, to keep pages at about so many bytes.
    private static let pageBytes = 4 << 20
    private static let pageRecords = 1...512

    @MainActor
    func run(
      from source: any AirDbAdapter & Sendable, to target: any AirDbAdapter & Sendable,
      expected: Int
    ) async throws -> Result {
      let progress = Progress("Syncing")
      defer { progress.finish() }
      var result = Result()
      var cursor: String?
      var limit = 16
      let start = ContinuousClock.now
      while true {
        try interruption.check()
        let page = try await source.getChangesSince(sinceHlcTimestamp: cursor, limit: limit)
        guard let last = page.last else { break }
        try await target.applyChanges(page)
        cursor = last.hlcTimestamp
        result.records += page.count
        result.pages += 1
        let bytes = page.reduce(1) { $0 + $1.payload.count }
        limit = Self.pageBytes * page.count / bytes
        limit = min(max(limit, Self.pageRecords.lowerBound), Self.pageRecords.upperBound)
        progress.show(
          Double(result.records) / Double(max(expected, 1)),
          Figures.count(result.pages, "page", "pages"))
      }
      result.duration = ContinuousClock.now - start
      return result
    }

    /// Compares all newest versions, field by field, in the order of the feed.
    func compare(_ source: ChangeStore, _ target: ChangeStore) throws {
      var differences = Differences()
      var sourceCursor: ChangeCursor?
      var targetCursor: ChangeCursor?
      while true {
        try interruption.check()
        let expected = try source.changes(after: sourceCursor, limit: 256, byteLimit: 1 << 20)
        let found = try target.changes(
          after: targetCursor, limit: max(expected.records.count, 1), byteLimit: .max)
        for index in 0..<max(expected.records.count, found.records.count) {
          let pair = (expected.records.at(index), found.records.at(index))
          if !areSame(pair.0, pair.1) { differences.add(describe(pair.0, pair.1)) }
        }
        sourceCursor = expected.next
        targetCursor = found.next
        if expected.isLast, found.isLast { break }
        // One that has more than the other differs in every further page.
        if differences.count > 0 { break }
      }
      if try source.latestTimestamp != target.latestTimestamp {
        differences.add("the latest timestamps differ")
      }
      try differences.check("The synced store differs from its source")
    }

    private func describe(_ expected: ChangeRecord?, _ found: ChangeRecord?) -> String {
      func name(_ record: ChangeRecord?) -> String {
        record.map { "\($0.id) at \($0.hlcTimestamp)" } ?? "nothing"
      }
      return "expected \(name(expected)), found \(name(found))"
    }
  }

  extension Array {
    fileprivate func at(_ index: Int) -> Element? { index < count ? self[index] : nil }
  }
#endif
