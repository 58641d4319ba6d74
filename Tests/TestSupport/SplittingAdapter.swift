package import AirDbLogStore

/// An adapter as those of AirDB's guides are: its pages are those of another one, cut off by the limit,
/// so that they may end among changes of equal timestamps.
package struct SplittingAdapter: AirDbAdapter {
  private let adapter: any AirDbAdapter & Sendable

  package init(_ adapter: any AirDbAdapter & Sendable) {
    self.adapter = adapter
  }

  package func getChangesSince(
    sinceHlcTimestamp: String?, limit: Int
  ) async throws -> [ChangeRecord] {
    let page = try await adapter.getChangesSince(
      sinceHlcTimestamp: sinceHlcTimestamp, limit: limit)
    return Array(page.prefix(limit))
  }

  package func applyChanges(_ changes: [ChangeRecord]) async throws {
    try await adapter.applyChanges(changes)
  }

  package func getLatestHlc() async throws -> String? { try await adapter.getLatestHlc() }
}
