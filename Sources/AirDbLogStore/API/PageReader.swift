/// Reads all that an adapter gives, in pages that end between two timestamps, also where those of the
/// adapter do not.
///
/// A page that an adapter cuts off by a limit alone may end among changes of equal timestamps, and a
/// strict cursor would skip the others. So the last timestamp of a page counts as incomplete: the next
/// page begins before it. Where a page has one timestamp only, the same is asked for again with a
/// greater limit, until a later timestamp shows, or no more comes than before.
///
/// The order is the adapter's own: a cursor is the timestamp of the last change before it in a page.
/// Equal are changes beside each other that `HlcComparator` calls so.
struct PageReader {
  private let adapter: any AirDbAdapter & Sendable
  private let pageSize: Int
  /// Fewer than `pageSize` until it is known what payloads are like.
  private var limit: Int
  /// Where the next page begins: all before it has been given.
  private(set) var cursor: String?

  /// The first page has no more than this.
  private static let firstLimit = 16
  /// Pages with more bytes of payloads are followed by smaller ones.
  private static let pageBytes = 8 << 20
  /// Databases take no greater limit.
  private static let greatestLimit = Int(Int32.max)

  init(_ adapter: any AirDbAdapter & Sendable, pageSize: Int, after cursor: String? = nil) {
    self.adapter = adapter
    self.pageSize = min(max(1, pageSize), Self.greatestLimit)
    self.cursor = cursor
    limit = min(self.pageSize, Self.firstLimit)
  }

  /// The next page; empty at the end.
  mutating func next() async throws -> [ChangeRecord] {
    var asked = limit
    // How many changes of one timestamp came for a smaller limit.
    var known: Int?
    while true {
      try Task.checkCancellation()
      let page = try await adapter.getChangesSince(sinceHlcTimestamp: cursor, limit: asked)
      guard let last = page.last else { return [] }
      try check(page)
      let before = page.lastIndex {
        HlcComparator.compare($0.hlcTimestamp, last.hlcTimestamp) != 0
      }
      if let before { return take(page[...before]) }
      if known == page.count, page.count < asked { return take(page[...]) }
      known = page.count
      asked = min(max(asked, page.count), Self.greatestLimit / 2) * 2
    }
  }

  /// An adapter that gives what is at its cursor would be read for ever.
  private func check(_ page: [ChangeRecord]) throws(LogStoreError) {
    guard let cursor else { return }
    guard page.contains(where: { $0.hlcTimestamp.utf8.elementsEqual(cursor.utf8) }) else { return }
    throw LogStoreError(
      .brokenAdapter, "The adapter gives changes that are not after the cursor \"\(cursor)\".")
  }

  private mutating func take(_ page: ArraySlice<ChangeRecord>) -> [ChangeRecord] {
    cursor = page.last?.hlcTimestamp
    let bytes = page.reduce(0) { $0 + $1.payload.count }
    if bytes > Self.pageBytes {
      limit = max(1, limit / 2)
    } else if bytes < Self.pageBytes / 4 {
      limit = min(pageSize, limit * 2)
    }
    return Array(page)
  }
}
