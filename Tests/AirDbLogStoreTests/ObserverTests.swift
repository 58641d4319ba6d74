import AirDbLogStore
import TestSupport
import Testing

/// Observers: hints that come, coalesce, hold nothing up, and end.
@Suite(.timeLimit(.minutes(5))) struct ObserverTests {
  private static func observe(_ store: ChangeStore) -> Task<[Position], Never> {
    let positions = store.positions
    return Task {
      var seen: [Position] = []
      for await position in positions { seen.append(position) }
      return seen
    }
  }

  private static func untilWaiting(_ count: Int, _ signal: CommitSignal) async {
    while signal.waiterCount < count { await Task.yield() }
  }

  @Test func `An observer sees the present end at once, then the newest, then the end`()
    async throws
  {
    let store = try ChangeStore.inMemory()
    var iterator = store.positions.makeAsyncIterator()
    let first = try await store.apply([change("a", time(1))]).position
    #expect(await iterator.next() == first)
    // Nobody takes them: all but the last are dropped, and no commit waits.
    var last: Position?
    for index in 2..<200 { last = try store.applyAndWait([change("a", time(index))]).position }
    #expect(await iterator.next() == last)
    // What is stale is nothing new.
    try await store.apply([change("a", time(1))])
    try store.close()
    #expect(await iterator.next() == nil)
    #expect(await iterator.next() == nil)
  }

  @Test func `Any number of observers come to the same end`() async throws {
    let store = try ChangeStore.inMemory()
    let observers = (0..<20).map { _ in Self.observe(store) }
    await Self.untilWaiting(20, store.signal)
    var positions: [Position] = []
    for index in 0..<50 {
      positions.append(try #require(try await store.apply([change("a", time(index))]).position))
    }
    await Self.untilWaiting(20, store.signal)
    try store.close()
    for observer in observers {
      let seen = await observer.value
      #expect(seen.last == positions.last)
      // In order, each at most once, and none that there was not.
      var rest = positions[...]
      for position in seen {
        rest = rest.drop { $0 != position }
        #expect(rest.popFirst() == position)
      }
    }
  }

  @Test func `A cancelled observer ends, the others go on`() async throws {
    let store = try ChangeStore.inMemory()
    let cancelled = Self.observe(store)
    let other = Self.observe(store)
    await Self.untilWaiting(2, store.signal)
    cancelled.cancel()
    #expect(await cancelled.value.isEmpty)
    #expect(store.signal.waiterCount == 1)
    let position = try await store.apply([change("a", time(1))]).position
    await Self.untilWaiting(1, store.signal)
    try store.close()
    #expect(await other.value == [position])
    // One that is cancelled before it begins does not wait at all.
    let late = Task { () -> Position? in
      withUnsafeCurrentTask { $0?.cancel() }
      var iterator = store.positions.makeAsyncIterator()
      return await iterator.next()
    }
    #expect(await late.value == nil)
  }

  @Test func `An observer does not keep the store, and ends with it`() async throws {
    var store: ChangeStore? = try ChangeStore.inMemory()
    let signal = try #require(store).signal
    let observer = Self.observe(try #require(store))
    await Self.untilWaiting(1, signal)
    weak let gone = store
    store = nil
    #expect(gone == nil)
    #expect(await observer.value.isEmpty)
  }

  @Test func `Observers last through suspending, resuming and reopening`() async throws {
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      let store = try ChangeStore(at: path)
      var iterator = store.positions.makeAsyncIterator()
      try await store.apply([change("a", time(1))])
      let first = await iterator.next()
      #expect(first == (try store.position))
      try store.suspend()
      // Meanwhile another one writes.
      let other = try ChangeStore(at: path)
      let written = try await other.apply([change("a", time(2))]).position
      try other.close()
      let waiting = Task { [iterator] in
        var iterator = iterator
        return await iterator.next()
      }
      await Self.untilWaiting(1, store.signal)
      try store.resume()
      #expect(await waiting.value == written)
      #expect(await iterator.next() == written)
      try store.reopen()
      let last = try await store.apply([change("a", time(3))]).position
      #expect(await iterator.next() == last)
      // Closed while it is suspended: that is the end as well.
      try store.suspend()
      try store.close()
      #expect(await iterator.next() == nil)
    }
  }

  @Test func `That of a read-only store moves on with a refresh`() async throws {
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      let writer = try ChangeStore(at: path)
      var configuration = Configuration()
      configuration.isReadOnly = true
      let reader = try ChangeStore(at: path, configuration: configuration)
      let observer = Self.observe(reader)
      await Self.untilWaiting(1, reader.signal)
      var positions: [Position?] = []
      for index in 0..<3 {
        positions.append(try await writer.apply([change("a", time(index))]).position)
        try reader.refresh()
        await Self.untilWaiting(1, reader.signal)
      }
      try reader.close()
      try writer.close()
      #expect(await observer.value == positions)
    }
  }

  @Test func `With every hint dropped, a resume from the position catches up`() async throws {
    let store = try ChangeStore.inMemory()
    let observer = Self.observe(store)
    await Self.untilWaiting(1, store.signal)
    try #require(try store.writerIfAny).publishHook = nil
    var seen: Position?
    var ids: [String] = []
    for round in 0..<5 {
      for index in 0..<10 {
        try await store.apply([change("\(round) \(index)", time(round * 10 + index))])
      }
      #expect(store.signal.waiterCount == 1)
      let page = try store.commits(after: seen, limit: 100)
      ids += page.commits.flatMap { $0.changes.map(\.key.id) }
      seen = page.next
    }
    #expect(ids == (0..<5).flatMap { round in (0..<10).map { "\(round) \($0)" } })
    try store.close()
    #expect(await observer.value.isEmpty)
  }

  @Test func `Writers, observers and their end at the same time`() async throws {
    for _ in 0..<20 {
      let store = try ChangeStore.inMemory()
      let observers = (0..<4).map { _ in Self.observe(store) }
      await withTaskGroup { group in
        for writer in 0..<4 {
          group.addTask {
            for index in 0..<20 {
              _ = try? await store.apply([change("\(writer)", time(index))])
              if writer == 3, index == 10 { observers[0].cancel() }
            }
          }
        }
      }
      let end = try store.position
      await Self.untilWaiting(3, store.signal)
      try store.close()
      for observer in observers[1...] { #expect(await observer.value.last == end) }
      _ = await observers[0].value
    }
  }
}
