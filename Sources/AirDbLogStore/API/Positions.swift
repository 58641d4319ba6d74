/// The ends of a store's log, as they move on: the observer.
///
/// ```swift
/// for await _ in store.positions {
///   while true {
///     let page = try store.commits(after: seen, limit: 100)
///     for commit in page.commits {
///       print(commit.author, commit.changes.map(\.key.id))
///     }
///     seen = page.next
///     if page.isLast { break }
///   }
/// }
/// ```
///
/// It begins with the present end, if there is a commit, so that a loop like this one catches up before
/// it waits. Positions that come faster than they are taken are dropped but for the newest: a
/// position is a hint that there is something, and ``ChangeStore/commits(after:matching:limit:byteLimit:)``
/// says what.
///
/// It ends when the store is closed or gone, or the task is cancelled. While the store is suspended
/// nothing comes; after ``ChangeStore/resume()`` and ``ChangeStore/reopen()`` it goes on. That of a
/// read-only store moves on with ``ChangeStore/refresh()``. It does not keep the store open.
public struct Positions: AsyncSequence, Sendable {
  private let signal: CommitSignal
  private weak var store: ChangeStore?

  init(_ signal: CommitSignal, of store: ChangeStore) {
    self.signal = signal
    self.store = store
  }

  public func makeAsyncIterator() -> Iterator { Iterator(signal, of: store) }

  /// One observer. Any number of them see all that one sees.
  public struct Iterator: AsyncIteratorProtocol, Sendable {
    private let signal: CommitSignal
    private weak var store: ChangeStore?
    private var last: Position?

    fileprivate init(_ signal: CommitSignal, of store: ChangeStore?) {
      self.signal = signal
      self.store = store
    }

    /// The end of the log, once it is another one than the one before.
    public mutating func next() async -> Position? {
      while !Task.isCancelled, !signal.isFinished {
        // Before the look, so that nothing falls between that and the wait.
        let count = signal.count
        if let position = end, position.sequence != last?.sequence {
          last = position
          return position
        }
        await signal.wait(past: count)
      }
      return nil
    }

    /// Nil also while the store is suspended.
    private var end: Position? {
      do throws(LogStoreError) {
        return try store?.position
      } catch {
        return nil
      }
    }
  }
}
