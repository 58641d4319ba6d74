import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// What a store cleans away by itself, and when, by a clock that a test moves.
@Suite struct AutomaticCleaningTests {
  /// A store in memory whose cleaner works when a test lets time go by.
  final class Home {
    let platform = ClockedPlatform()
    let seals = ManualScheduler()
    let cleaning: ClockedScheduler
    let store: ChangeStore
    let failures = Locked<[LogStoreError]>([])
    private var stamp = 0
    private var random = SeededGenerator(seed: 17)

    init(_ change: (inout Configuration) -> Void = { _ in }) throws {
      var configuration = Configuration()
      configuration.durability = .processCrash
      configuration.cleaning = .automatic
      configuration.eventHandler = { [failures] event in
        if case .failed(let error) = event { failures.withLock { $0.append(error) } }
      }
      change(&configuration)
      cleaning = ClockedScheduler(platform.clock)
      store = try ChangeStore(
        path: "/store", configuration, platform: platform, scheduler: seals,
        cleanerScheduler: cleaning)
    }

    /// Commits a version of each key.
    @discardableResult
    func write(
      _ keys: Range<Int>, _ type: MutationType = .update, payload: Int = 40
    ) throws -> Position {
      stamp += 1
      let batch = keys.map { key in
        change(
          "\(key)", time(stamp), type,
          payload: AutomaticCleaningTests.text(payload, &random))
      }
      let position = try #require(try store.applyAndWait(batch).position)
      seals.run()
      return position
    }

    func wait(milliseconds: Int64) {
      cleaning.advance(milliseconds: milliseconds)
      seals.run()
    }

    /// Bytes of all files.
    func size() throws -> UInt64 { try AutomaticCleaningTests.size(of: "/store", on: platform) }

    func versions() throws -> UInt64 { try store.statistics().records }
  }

  /// Bytes of the files in a directory, but for those that go meanwhile.
  private static func size(of path: String, on platform: any Platform) throws -> UInt64 {
    try platform.list(path).reduce(0) { sum, name in
      guard let file = try? platform.open(path + "/" + name, .read) else { return sum }
      defer { try? platform.close(file) }
      return sum + (try platform.size(of: file))
    }
  }

  /// Text that does not get shorter by compression.
  private static func text(_ count: Int, _ random: inout SeededGenerator) -> String {
    String(decoding: random.bytes(count).map { 33 + $0 % 93 }, as: UTF8.self)
  }

  // MARK: Space

  private static let batch = 100
  private static let payload = 240

  @Test func `Updates of a hundred keys leave no more than 4 MiB and the live data`() throws {
    let home = try Home()
    for _ in 0..<250 { try home.write(0..<Self.batch, payload: Self.payload) }
    #expect(try home.size() > 6 << 20)
    home.wait(milliseconds: 10_000)
    #expect(try home.size() < Self.bound)
    #expect(try home.versions() == 100)
    #expect(home.cleaning.count == 0, "there is nothing more to look for")
    #expect(home.failures.withLock { $0.isEmpty })
    #expect(try home.store.verify().isClean)
  }

  @Test func `A consumer that pins and pauses keeps all of it, and its retirement gives it back`()
    throws
  {
    let home = try Home()
    let consumer = try home.store.consumer(named: "paused", retaining: .history())
    let seen = try home.write(0..<Self.batch, payload: Self.payload)
    try consumer.acknowledge(seen)
    let rounds = 250
    for _ in 0..<rounds { try home.write(0..<Self.batch, payload: Self.payload) }
    home.wait(milliseconds: 10_000)
    #expect(try Self.unseen(home.store, after: seen) == rounds * Self.batch)
    try consumer.retire()
    home.wait(milliseconds: 10_000)
    #expect(try home.size() < Self.bound)
    #expect(try home.versions() == 100)
    #expect(home.failures.withLock { $0.isEmpty })
    #expect(try home.store.verify().isClean)
  }

  /// 4 MiB and the live data.
  private static let bound = UInt64(4 << 20 + batch * (payload + 100))

  /// Versions behind a position, counted page by page; they must be those of all commits in order.
  private static func unseen(_ store: ChangeStore, after start: Position) throws -> Int {
    var position: Position? = start
    var count = 0
    var last = start.sequence
    while true {
      let page = try store.commits(after: position, limit: 1_000)
      for commit in page.commits {
        #expect(commit.position.sequence == last + 1)
        last = commit.position.sequence
        count += commit.changes.count
      }
      position = page.next
      if page.isLast { return count }
    }
  }

  @Test(.enabled(if: isLongRun, "takes minutes"), arguments: [false, true])
  func `A million updates of a hundred keys on disk`(isPinned: Bool) throws {
    try withTemporaryDirectory { root in
      let path = root + "/store"
      var configuration = Configuration()
      configuration.durability = .processCrash
      let store = try ChangeStore(at: path, configuration: configuration)
      let consumer =
        isPinned ? try store.consumer(named: "paused", retaining: .history()) : nil
      var random = SeededGenerator(seed: 18)
      func write(_ round: Int) throws -> Position {
        try store.applyAndWait(
          (0..<100).map { key in
            change("\(key)", time(round), .update, payload: Self.text(Self.payload, &random))
          }
        ).position!
      }
      let start = try write(0)
      try consumer?.acknowledge(start)
      let rounds = 10_000
      for round in 1...rounds { _ = try write(round) }
      // Only a guard against a hang: what is waited for comes within seconds.
      func settled() throws -> UInt64 {
        let deadline = ContinuousClock.now + .seconds(300)
        var size = try Self.size(of: path, on: SystemPlatform())
        while size >= Self.bound, ContinuousClock.now < deadline {
          Thread.sleep(forTimeInterval: 0.2)
          size = try Self.size(of: path, on: SystemPlatform())
        }
        return size
      }
      if let consumer {
        // Longer than the cleaner takes to find out that it is idle, and to look at all there is.
        Thread.sleep(forTimeInterval: 10)
        #expect(try Self.unseen(store, after: start) == rounds * 100)
        try consumer.retire()
      }
      let size = try settled()
      print("A million updates of 100 keys\(isPinned ? ", once pinned" : ""): \(size) bytes")
      #expect(size < Self.bound)
      #expect(try store.verify().isClean)
      try store.close()
    }
  }

  @Test func `Garbage goes while commits come in, though no segment gets full`() throws {
    let home = try Home { $0.segmentRecords = 1_000 }
    try home.write(0..<1_000)
    home.wait(milliseconds: 100)
    try home.write(0..<200)
    home.wait(milliseconds: 100)
    #expect(try home.versions() == 1_200, "a fifth is not worth it yet")
    try home.write(200..<400)
    home.wait(milliseconds: 100)
    #expect(try home.versions() == 1_000)
    #expect(try home.store.statistics().unsealedRecords == 400, "nothing was sealed for it")
    #expect(home.failures.withLock { $0.isEmpty })
    #expect(try home.store.verify().isClean)
  }

  // MARK: What becomes old enough

  @Test func `History goes when it is old enough although nothing more is committed`() throws {
    let home = try Home { $0.historyRetention = .seconds(3_600) }
    for _ in 0..<60 { try home.write(0..<Self.batch, payload: Self.payload) }
    home.wait(milliseconds: 3_590_000)
    #expect(try home.versions() == 6_000)
    #expect(home.cleaning.count == 1, "one look is due")
    home.wait(milliseconds: 20_000)
    #expect(try home.versions() == 100)
    #expect(home.cleaning.count == 0)
    #expect(home.failures.withLock { $0.isEmpty })
  }

  @Test func `What a consumer pins up to an age goes at that age`() throws {
    let home = try Home()
    let day: Int64 = 86_400_000
    _ = try home.store.consumer(named: "late", retaining: .history(maximumAge: .seconds(86_400)))
    for _ in 0..<60 { try home.write(0..<Self.batch, payload: Self.payload) }
    home.wait(milliseconds: 10_000)
    // The cap counts sealed segments.
    try home.store.reopen()
    home.wait(milliseconds: day - 20_000)
    #expect(try home.versions() == 6_000)
    home.wait(milliseconds: 30_000)
    #expect(try home.versions() == 100)
    #expect(home.failures.withLock { $0.isEmpty })
  }

  @Test func `Deletions are forgotten when they are old enough`() throws {
    let home = try Home {
      $0.tombstoneRetention = .seconds(7_200)
      $0.segmentRecords = 100
    }
    try home.write(0..<100)
    let deletion = try home.write(0..<100, .delete)
    try home.write(200..<300)
    home.wait(milliseconds: 7_100_000)
    #expect(try home.store.retentionReport().horizon == 0)
    home.wait(milliseconds: 200_000)
    #expect(try home.store.retentionReport().horizon == deletion.sequence)
    #expect(try home.versions() == 100)
    #expect(home.failures.withLock { $0.isEmpty })
  }

  @Test func `A clock that is put back makes what is old enough wait, and no more`() throws {
    let home = try Home { $0.historyRetention = .seconds(100) }
    for _ in 0..<60 { try home.write(0..<Self.batch, payload: Self.payload) }
    home.wait(milliseconds: 50_000)
    home.platform.clock.advance(by: -1_000_000)
    // Jobs wait by a clock that goes on; this one is looked at 50 s later by that.
    for _ in 0..<9 {
      home.wait(milliseconds: 100_000)
      #expect(try home.versions() == 6_000)
    }
    home.wait(milliseconds: 200_000)
    #expect(try home.versions() == 100)
  }

  @Test func `A consumer that has come further makes room without a commit`() throws {
    let home = try Home()
    let consumer = try home.store.consumer(named: "slow", retaining: .history())
    for _ in 0..<60 { try home.write(0..<Self.batch, payload: Self.payload) }
    home.wait(milliseconds: 10_000)
    #expect(try home.versions() == 6_000)
    let end = try #require(try home.store.position)
    try consumer.acknowledge(end)
    home.wait(milliseconds: 10_000)
    #expect(try home.versions() == 100)
  }

  @Test func `A store that is opened is looked at without a commit`() throws {
    let home = try Home { $0.cleaning.isAutomatic = false }
    for _ in 0..<60 { try home.write(0..<Self.batch, payload: Self.payload) }
    try home.store.close()
    var configuration = Configuration()
    configuration.durability = .processCrash
    let cleaning = ClockedScheduler(home.platform.clock)
    let store = try ChangeStore(
      path: "/store", configuration, platform: home.platform, scheduler: home.seals,
      cleanerScheduler: cleaning)
    #expect(try store.statistics().records == 6_000)
    cleaning.advance(milliseconds: 10_000)
    #expect(try store.statistics().records == 100)
    #expect(cleaning.count == 0)
  }
}
