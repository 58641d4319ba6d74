/// The history of a store, page by page; a page is read when it is asked for.
///
/// It ends at the end of the log, or waits there for more if it follows. The pages of one that does
/// are, at the end, as small as the commits come. ``CommitPage/next`` of the last page that was dealt with is
/// where to go on another time. A page may be empty: then a filter passed over a stretch of the log.
///
/// One that follows ends when the store is closed, and waits while it is suspended. One that does not
/// throws as ``ChangeStore/commits(after:matching:limit:byteLimit:)`` does. A cancelled task gets
/// `CancellationError`, so that a history cut short is not taken for all of it. The sequence keeps the
/// store.
public struct CommitSequence: AsyncSequence, Sendable {
  private let store: ChangeStore
  private let signal: CommitSignal
  private let start: Position?
  private let filter: CommitFilter
  private let isFollowing: Bool
  private let limits: (commits: Int, bytes: Int)

  init(
    _ store: ChangeStore, _ signal: CommitSignal, after start: Position?, _ filter: CommitFilter,
    isFollowing: Bool, limits: (commits: Int, bytes: Int)
  ) {
    self.store = store
    self.signal = signal
    self.start = start
    self.filter = filter
    self.isFollowing = isFollowing
    self.limits = limits
  }

  public func makeAsyncIterator() -> Iterator { Iterator(sequence: self, position: start) }

  /// Reads one page after the other.
  public struct Iterator: AsyncIteratorProtocol, Sendable {
    fileprivate let sequence: CommitSequence
    fileprivate var position: Position?
    fileprivate var isAtEnd = false

    /// The next page.
    ///
    /// - Throws: ``LogStoreError``, or `CancellationError`. After an error the next call tries the same page again.
    @concurrent
    public mutating func next() async throws -> CommitPage? {
      while !(isAtEnd && !sequence.isFollowing) {
        try Task.checkCancellation()
        if sequence.isFollowing, sequence.signal.isFinished { return nil }
        // Before the look, so that nothing falls between that and the wait.
        let count = sequence.signal.count
        if let page = try sequence.page(after: position) {
          isAtEnd = page.isLast
          let isNew = page.next?.sequence != position?.sequence
          position = page.next ?? position
          if isNew { return page }
        }
        if sequence.isFollowing { await sequence.signal.wait(past: count) }
      }
      return nil
    }
  }

  /// A page, or nil if there is none while the store is suspended or when it has been closed.
  private func page(after position: Position?) throws(LogStoreError) -> CommitPage? {
    do throws(LogStoreError) {
      return try store.commits(
        after: position, matching: filter, limit: limits.commits, byteLimit: limits.bytes)
    } catch {
      if isFollowing, error.code == .suspended || error.code == .closed { return nil }
      throw error
    }
  }
}
