import AirDbLogStore
import TestSupport
import Testing

/// Delivering to consumers: at least once, and nothing left out.
struct ConsumerDeliveryTests {
  private struct Refusal: Error {}

  private static func store(commits count: Int) throws -> (ChangeStore, [Position]) {
    let store = try ChangeStore.inMemory(configuration: .tiny)
    let positions = try (0..<count).map { number in
      try store.applyAndWait(
        [change("\(number)", time(number), in: number % 4 == 0 ? "rare" : "c")],
        author: number % 2 == 0 ? "even" : "odd"
      ).position!
    }
    return (store, positions)
  }

  /// Collects what a delivery hands over.
  private final class Receiver: Sendable {
    let sequences = Locked<[UInt64]>([])
    func take(_ page: CommitPage) {
      sequences.withLock { $0 += page.commits.map(\.position.sequence) }
    }
    var all: [UInt64] { sequences.withLock { $0 } }
  }

  @Test func `Everything comes once, in order, page by page, and then only what is new`()
    async throws
  {
    let (store, positions) = try Self.store(commits: 50)
    let consumer = try store.consumer(named: "x")
    let receiver = Receiver()
    let pages = Locked(0)
    try await consumer.deliver(limit: 7) { page in
      // Not before the handler has returned.
      let saved = try consumer.position()?.sequence
      #expect(saved == receiver.all.last)
      receiver.take(page)
      #expect(page.commits.count <= 7)
      pages.withLock { $0 += 1 }
    }
    #expect(receiver.all == positions.map(\.sequence))
    #expect(pages.withLock { $0 } == 8)
    #expect(try consumer.position() == positions.last)
    try await consumer.deliver { _ in Issue.record("there is nothing new") }
    let new = try store.applyAndWait([change("new", time(1_000))]).position!
    try await consumer.deliver { receiver.take($0) }
    #expect(receiver.all.last == new.sequence && receiver.all.count == 51)
  }

  @Test func `A page whose handler fails comes again, and nothing before it`() async throws {
    let (store, positions) = try Self.store(commits: 30)
    let consumer = try store.consumer(named: "x")
    let receiver = Receiver()
    for failing in 1...3 {
      let page = Locked(0)
      await #expect(throws: Refusal.self) {
        try await consumer.deliver(limit: 4) {
          let number = page.withLock { page in
            page += 1
            return page
          }
          if number == failing { throw Refusal() }
          receiver.take($0)
        }
      }
    }
    #expect(receiver.all == positions.prefix(12).map(\.sequence))
    #expect(try consumer.position() == positions[11])
    try await consumer.deliver(limit: 100) { receiver.take($0) }
    #expect(receiver.all == positions.map(\.sequence))
  }

  @Test func `What a filter leaves out is passed, durably, and not looked at again`() async throws {
    let (store, positions) = try Self.store(commits: 40)
    let consumer = try store.consumer(named: "x")
    let receiver = Receiver()
    try await consumer.deliver(matching: CommitFilter(collections: ["rare"])) { receiver.take($0) }
    #expect(
      receiver.all == positions.enumerated().filter { $0.offset % 4 == 0 }.map(\.element.sequence))
    #expect(try consumer.position() == positions.last)
    try await consumer.deliver(matching: CommitFilter(authors: ["nobody"])) { _ in
      Issue.record("nothing passes")
    }
    try consumer.reset(to: nil)
    try await consumer.deliver(matching: CommitFilter(authors: ["nobody"])) { _ in
      Issue.record("nothing passes")
    }
    #expect(try consumer.position() == positions.last)
  }

  @Test func `One delivery at a time`() async throws {
    let (store, _) = try Self.store(commits: 3)
    let consumer = try store.consumer(named: "x")
    let other = try store.consumer(named: "other")
    try await consumer.deliver { _ in
      let error = await storeError { try await consumer.deliver { _ in } }
      #expect(error?.code == .consumerBusy)
      let second = await storeError {
        try await store.consumer(named: "x").rebuild { _ in }
      }
      #expect(second?.code == .consumerBusy)
      try await other.deliver { _ in }
    }
    try await consumer.deliver { _ in }
    #expect(try other.lag().commits == 0)
  }

  @Test func `Moved or retired during a delivery, a consumer is not moved on by it`() async throws {
    let (store, positions) = try Self.store(commits: 20)
    let consumer = try store.consumer(named: "x")
    let receiver = Receiver()
    try await consumer.deliver(limit: 5) { page in
      receiver.take(page)
      // Once, in the middle of the third page.
      if receiver.all.count == 15 { try consumer.reset(to: positions[11]) }
    }
    #expect(receiver.all == (positions[..<15] + positions[12...]).map(\.sequence))

    try consumer.reset(to: nil)
    let error = await storeError {
      try await consumer.deliver(limit: 5) { _ in try consumer.retire() }
    }
    #expect(error?.code == .consumerNotFound)
    #expect(try store.consumers().isEmpty)
  }

  @Test func `Cancelled, a delivery ends behind the page under way, which is saved`() async throws {
    let (store, positions) = try Self.store(commits: 20)
    let consumer = try store.consumer(named: "x")
    let delivery = Task {
      try await consumer.deliver(limit: 5) { _ in withUnsafeCurrentTask { $0?.cancel() } }
    }
    await #expect(throws: CancellationError.self) { try await delivery.value }
    #expect(try consumer.position() == positions[4])
  }

  @Test func `One that follows gets what is committed later, and ends with the store`() async throws
  {
    let (store, positions) = try Self.store(commits: 5)
    let consumer = try store.consumer(named: "x")
    let receiver = Receiver()
    let delivery = Task {
      try await consumer.deliver(following: true) { page in
        receiver.take(page)
        if receiver.all.count < 25 {
          try await store.apply([
            change("more \(receiver.all.count)", time(receiver.all.count + 50))
          ])
        } else {
          // Not inside of the handler, whose page is to be saved.
          Task.detached {
            while try consumer.lag().commits > 0 { await Task.yield() }
            try store.close()
          }
        }
      }
    }
    try await delivery.value
    #expect(receiver.all.count == 25)
    #expect(receiver.all.starts(with: positions.map(\.sequence)))
    #expect(receiver.all == receiver.all.sorted())
  }

  @Test func `Merged into another store, that holds the same, also if pages come twice`()
    async throws
  {
    let (store, positions) = try Self.store(commits: 60)
    for number in 0..<30 {
      try store.applyAndWait([change("\(number)", time(500 + number), .delete)])
    }
    let target = try ChangeStore.inMemory()
    let consumer = try store.consumer(named: "x")
    try await consumer.merge(into: target, limit: 7)
    try consumer.reset(to: positions[20])
    try await consumer.merge(into: target)
    #expect(try target.changes(limit: .max).records == store.changes(limit: .max).records)
    #expect(try consumer.lag().commits == 0)
    #expect(try consumer.lag().bytes == 0)
    // Whole commits, none of them divided.
    let batch = (0..<10).map { change("batch \($0)", time(2_000 + $0)) }
    try store.applyAndWait(batch)
    let before = try target.position
    try await consumer.merge(into: target, limit: 1, byteLimit: 1)
    let commits = try target.commits(after: before, limit: 9).commits
    #expect(commits.map(\.changes.count) == [10])
  }

  @Test func `Behind a purge there is an error that names it, and rebuilding is the way back`()
    async throws
  {
    let (store, positions) = try Self.store(commits: 30)
    let consumer = try store.consumer(named: "x")
    try consumer.acknowledge(positions[9])
    let fresh = try store.consumer(named: "fresh")
    try store.engine.manifest.update(
      { (manifest) throws(LogStoreError) in manifest.retentionHorizon = positions[19].sequence },
      orElse: { _ in LogStoreError(.inputOutput, "not written") })
    let error = await storeError { try await consumer.deliver { _ in } }
    #expect(error?.code == .historyPurged)
    #expect(error?.message.contains("\(positions[19].sequence & 0xFFFF_FFFF)") == true)
    // Who has had nothing has missed nothing, page by page.
    let receiver = Receiver()
    try await fresh.deliver(limit: 4) { receiver.take($0) }
    #expect(receiver.all == positions.map(\.sequence))

    let pages = Locked<[RebuildPage]>([])
    await #expect(throws: Refusal.self) {
      try await consumer.rebuild(limit: 7) { page in
        if pages.withLock({ $0.count }) == 2 { throw Refusal() }
        pages.withLock { $0.append(page) }
      }
    }
    #expect(try consumer.position() == positions[9])
    pages.withLock { $0 = [] }
    let during = Locked<Position?>(nil)
    try await consumer.rebuild(limit: 7) { page in
      if during.withLock({ $0 }) == nil {
        let position = try await store.apply([change("5", time(900))]).position
        during.withLock { $0 = position }
      }
      pages.withLock { $0.append(page) }
    }
    let all = pages.withLock { $0 }
    let ends = all.map { $0.isLast }
    #expect(ends == Array(repeating: false, count: all.count - 1) + [true])
    #expect(all.allSatisfy { $0.showsAllKeys })
    let target = try ChangeStore.inMemory()
    for page in all { try target.applyAndWait(page.records) }
    #expect(try target.changes(limit: .max).records == store.changes(limit: .max).records)
    #expect(try consumer.position()?.sequence == positions.last?.sequence)
    // What came during the rebuild comes again.
    try await consumer.deliver { receiver.take($0) }
    let new = during.withLock { $0 }
    #expect(receiver.all.last == new?.sequence)
  }
}
