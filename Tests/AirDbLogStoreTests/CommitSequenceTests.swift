import AirDbLogStore
import TestSupport
import Testing

/// History as a sequence of pages.
@Suite(.timeLimit(.minutes(5))) struct CommitSequenceTests {
  private static func ids(_ page: CommitPage?) -> [String]? {
    page?.commits.flatMap { $0.changes.map(\.key.id) }
  }

  @Test func `Its pages are the history, and it ends`() async throws {
    let store = try ChangeStore.inMemory(configuration: .tiny)
    for index in 0..<40 {
      try store.applyAndWait(
        [change("\(index)", time(index))], author: index % 3 == 0 ? "mine" : "peer")
    }
    let others = CommitFilter(excludedAuthors: ["mine"])
    for limit in [1, 7, 100] {
      for filter in [CommitFilter.all, others] {
        var entries: [HistoryModel.Entry] = []
        for try await page in store.commitSequence(matching: filter, limit: limit) {
          #expect(page.commits.count <= limit)
          entries += try page.commits.map(HistoryModel.Entry.init)
        }
        #expect(try entries == store.history(matching: filter))
      }
    }
    #expect(try await Self.count(store.commitSequence(after: store.position)) == 0)
    #expect(try await Self.count(ChangeStore.inMemory().commitSequence()) == 0)
  }

  private static func count(_ sequence: CommitSequence) async throws -> Int {
    var count = 0
    for try await page in sequence { count += page.commits.count }
    return count
  }

  @Test func `A page is read when it is asked for`() async throws {
    let store = try ChangeStore.inMemory()
    for index in 0..<3 { try store.applyAndWait([change("\(index)", time(index))]) }
    var iterator = store.commitSequence(limit: 2).makeAsyncIterator()
    #expect(Self.ids(try await iterator.next()) == ["0", "1"])
    // Not known before: so it was not read ahead.
    try store.applyAndWait([change("3", time(3))])
    #expect(Self.ids(try await iterator.next()) == ["2", "3"])
    try store.applyAndWait([change("4", time(4))])
    #expect(try await iterator.next() == nil)
  }

  @Test func `One that follows waits at the end, and ends when the store is closed`() async throws {
    let store = try ChangeStore.inMemory()
    try store.applyAndWait([change("0", time(0))])
    let start = try store.position
    let follower = Task {
      var pages: [[String]] = []
      for try await page in store.commitSequence(after: start, following: true, limit: 10) {
        pages.append(Self.ids(page) ?? [])
      }
      return pages
    }
    while store.signal.waiterCount == 0 { await Task.yield() }
    for index in 1...5 {
      try store.applyAndWait([change("\(index)", time(index))])
      while store.signal.waiterCount == 0 { await Task.yield() }
    }
    try store.close()
    let pages = try await follower.value
    #expect(pages.flatMap(\.self) == ["1", "2", "3", "4", "5"])
    // None is empty but for what a filter passed over.
    #expect(!pages.contains([]))
  }

  @Test func `One that follows advances past what its filter takes out`() async throws {
    let store = try ChangeStore.inMemory()
    let follower = Task {
      var next: Position?
      let filter = CommitFilter(authors: ["peer"])
      for try await page in store.commitSequence(matching: filter, following: true) {
        #expect(page.commits.isEmpty)
        next = page.next
      }
      return next
    }
    while store.signal.waiterCount == 0 { await Task.yield() }
    let last = try store.applyAndWait([change("a", time(1))], author: "mine").position
    while store.signal.waiterCount == 0 { await Task.yield() }
    try store.close()
    #expect(try await follower.value == last)
  }

  @Test func `One that follows waits through a suspension and goes on`() async throws {
    let store = try ChangeStore.inMemory()
    try store.applyAndWait([change("0", time(0))])
    try store.suspend()
    let follower = Task {
      var iterator = store.commitSequence(following: true).makeAsyncIterator()
      return Self.ids(try await iterator.next())
    }
    while store.signal.waiterCount == 0 { await Task.yield() }
    try store.resume()
    #expect(try await follower.value == ["0"])
  }

  @Test func `What can not be read is thrown, and can be tried again`() async throws {
    let store = try ChangeStore.inMemory()
    for index in 0..<3 { try store.applyAndWait([change("\(index)", time(index))]) }
    var iterator = store.commitSequence(limit: 1).makeAsyncIterator()
    #expect(Self.ids(try await iterator.next()) == ["0"])
    try store.suspend()
    let error = await storeError { _ = try await iterator.next() }
    #expect(error?.code == .suspended)
    try store.resume()
    #expect(Self.ids(try await iterator.next()) == ["1"])
    try store.close()
    #expect(await storeError { _ = try await iterator.next() }?.code == .closed)
  }

  @Test(arguments: [false, true])
  func `A cancelled task is told so`(following: Bool) async throws {
    let store = try ChangeStore.inMemory()
    let task = Task {
      if !following { withUnsafeCurrentTask { $0?.cancel() } }
      for try await _ in store.commitSequence(following: following) {}
    }
    if following {
      while store.signal.waiterCount == 0 { await Task.yield() }
      task.cancel()
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(store.signal.waiterCount == 0)
  }
}
