#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

// History: commits in the order in which they were applied. Unlike the feed by timestamp, it shows a
// late record with an old timestamp where it arrived: at the end.
extension ChangeStore {
  /// A page of the commits behind a position, in the order in which they were applied.
  ///
  /// The page is of one state of the store and has only what is visible. It shows of each commit the
  /// changes that are still there: newest versions always, others until they are cleaned away.
  ///
  /// A filter costs no progress: ``CommitPage/next`` is behind all that was looked at. A page ends early
  /// when it has looked at some tens of megabytes of the log, so that progress can be saved even if
  /// nothing passes the filter.
  ///
  /// - Parameters:
  ///   - position: Where to go on; nil for the beginning.
  ///   - filter: Which commits are shown.
  ///   - limit: The most commits.
  ///   - byteLimit: No commit is added once the page's records come to so many bytes, payloads counted
  ///     though they are not read. A page that has room for one shows a commit whole, however large.
  /// - Throws: ``LogStoreError`` with `foreignPosition`, `positionBeyondEnd`, `positionDiverged` or
  ///   `historyPurged` if the position does not fit the store any more; `corrupt` if the log is damaged.
  /// - Complexity: In proportion to the bytes of the log that are looked at. The first page behind a
  ///   position after an open may also look at the headers of frames before it, in its segment.
  public func commits(
    after position: Position? = nil, matching filter: CommitFilter = .all, limit: Int,
    byteLimit: Int = 16 << 20
  ) throws(LogStoreError) -> CommitPage {
    let predicate = filter.predicate
    let limits = Engine.HistoryLimits(commits: limit, bytes: max(byteLimit, 1))
    return try reading { (engine) throws(LogStoreError) in
      let (page, horizon) = try engine.history(after: position, predicate, limits)
      return CommitPage(
        commits: page.commits.map { commit in
          Commit(
            position: engine.position(
              at: LogEnd(sequence: commit.sequence, checksum: commit.checksum), horizon: horizon),
            milliseconds: commit.date, author: commit.author,
            changes: commit.changes.map(Change.init))
        },
        next: page.end.map { engine.position(at: $0, horizon: horizon) }, isLast: page.isLast)
    }
  }

  /// The position behind the last commit that is older than a date, so that what follows is history from
  /// that date on; nil if there is no such commit, which means the beginning.
  ///
  /// It is a place to begin at, not one that was reached: deletions that were purged by now are not
  /// missed there, since nobody has seen what they deleted. Whoever has, keeps the position instead.
  ///
  /// - Complexity: In proportion to the size of one segment.
  public func position(before date: Date) throws(LogStoreError) -> Position? {
    // Commits have whole milliseconds: what is before the date is before the next of these.
    try position(before: date.milliseconds(.up))
  }

  package func position(before milliseconds: Int64) throws(LogStoreError) -> Position? {
    try reading { (engine) throws(LogStoreError) in
      try engine.lastCommit(before: milliseconds).map { engine.position(at: $0) }
    }
  }

  /// The commits behind a position as a sequence of pages, each read when it is asked for, so that
  /// a slow reader holds nothing up and a fast one gets no more than it can take.
  ///
  /// - Parameters:
  ///   - position: Where to go on; nil for the beginning.
  ///   - filter: Which commits are shown.
  ///   - following: Whether it waits at the end for more, until the store is closed, or ends there.
  ///   - limit: The most commits of a page, at least 1.
  ///   - byteLimit: See ``commits(after:matching:limit:byteLimit:)``.
  public func commitSequence(
    after position: Position? = nil, matching filter: CommitFilter = .all, following: Bool = false,
    limit: Int = 256, byteLimit: Int = 1 << 20
  ) -> CommitSequence {
    CommitSequence(
      self, signal, after: position, filter, isFollowing: following,
      limits: (commits: max(limit, 1), bytes: byteLimit))
  }

  /// The ends of the log as they move on, for any number of observers.
  public var positions: Positions { Positions(signal, of: self) }
}
