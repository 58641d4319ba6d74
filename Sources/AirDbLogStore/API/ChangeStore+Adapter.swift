// The contract of AirDB, on the engine itself. All three leave the caller's actor before they do I/O.
extension ChangeStore: AirDbAdapter {
  /// The newest version of each record whose timestamp is strictly greater than the cursor,
  /// ascending, deletions included.
  ///
  /// At most `limit` records, and the rest of a run of equal timestamps that the limit would split:
  /// the next call's strict cursor would skip it. Ties come in order of arrival.
  ///
  /// A record that arrives later with a timestamp below a cursor is not seen by whoever holds that
  /// cursor: that lies in the nature of a feed by timestamp.
  ///
  /// - Parameters:
  ///   - sinceHlcTimestamp: The cursor, whether a record has that timestamp or not; nil for the
  ///     beginning.
  ///   - limit: Zero or less gives none. No memory is reserved by it.
  /// - Throws: ``LogStoreError`` with `invalidTimestamp` or `mixedTimestamps` for a cursor that is not
  ///   one of this store's; `corrupt` if what is read is damaged; `suspended`, `closed`.
  /// - Complexity: A search in the index of each sealed segment, then in proportion to the page and
  ///   to superseded versions on the way.
  @concurrent
  public func getChangesSince(
    sinceHlcTimestamp: String?, limit: Int
  ) async throws -> [ChangeRecord] {
    try reading { (engine) throws(LogStoreError) in
      try engine.adapterPage(after: sinceHlcTimestamp, limit: limit)
    }
  }

  /// Applies a batch, under the configuration's author label. See ``apply(_:author:)``.
  @concurrent
  public func applyChanges(_ changes: [ChangeRecord]) async throws {
    try await apply(changes)
  }

  /// See ``latestTimestamp``.
  @concurrent
  public func getLatestHlc() async throws -> String? {
    try latestTimestamp
  }
}
