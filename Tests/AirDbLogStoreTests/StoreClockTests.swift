import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// The store's own clock (G14): its stamps increase strictly, whatever the time does, whatever others send,
/// and however often the store is opened; and it follows others only so far.
@Suite struct StoreClockTests {
  private static let drift: Int64 = 60_000
  private static let day: Int64 = 86_400_000

  /// A store on a simulated disk with a time that a test moves.
  private final class Home {
    let clock = SimulatedClock()
    private(set) var files: SimulatedFileSystem
    private let configuration: Configuration
    private var current: ChangeStore?
    var store: ChangeStore { current! }

    init(_ configure: (inout Configuration) -> Void = { _ in }) throws {
      var configuration = Configuration.tiny
      configuration.clockNode = "own"
      configure(&configuration)
      self.configuration = configuration
      files = SimulatedFileSystem(clock: clock)
      try open()
    }

    private func open() throws {
      current = try ChangeStore(
        path: "/store", configuration, platform: files, scheduler: ManualScheduler())
    }

    func reopen() throws {
      try store.close()
      try open()
    }

    /// As a kill of the process leaves it.
    func kill() throws {
      files = files.afterProcessDeath()
      try open()
    }

    /// As a loss of power leaves it, with some of what was not synced.
    func losePower(seed: UInt64) throws {
      files = files.image(seed % 4 == 0 ? .none : .subset(seed: seed), granularity: .sector)
      try open()
    }

    func put(_ id: String = "a") async throws -> String {
      try await store.put(Data(), forKey: RecordKey(collection: "c", id: id)).hlcTimestamp
    }

    var now: Int64 { clock.milliseconds }
    var greatest: String { get throws { try store.latestTimestamp ?? "" } }
  }

  private static func isBefore(_ a: String, _ b: String) -> Bool { HlcComparator.compare(a, b) < 0 }

  private static func physical(_ stamp: String) -> Int64 {
    stamp.split(separator: "-").first.flatMap { Int64($0) } ?? -1
  }

  // MARK: Form

  @Test func `A stamp has the time and the node of the configuration`() async throws {
    let home = try Home()
    #expect(try await home.put() == "1700000000000-0000-own")
    #expect(try await home.put() == "1700000000000-0001-own")
    home.clock.advance(by: 5)
    #expect(try await home.put() == "1700000000005-0000-own")
  }

  @Test func `In a store of ISO 8601 stamps are so, too`() async throws {
    let home = try Home()
    try await home.store.apply([change("x", "2023-11-14T22:13:20.5Z-000A-peer")])
    #expect(try await home.put() == "2023-11-14T22:13:20.500Z-0010-own")
    try home.reopen()
    home.clock.advance(by: 1_000)
    #expect(try await home.put() == "2023-11-14T22:13:21.000Z-0000-own")
    // Between two milliseconds.
    try await home.store.apply([change("a", "2023-11-14T22:13:21.0000001Z-zzzz-peer")])
    #expect(try await home.put() == "2023-11-14T22:13:21.001Z-0000-own")
  }

  @Test func `A store whose kind of timestamp comes later takes it over`() async throws {
    let home = try Home()
    home.files.inject(FaultPlan(.failing(ENOSPC), kinds: [.reserve, .create], on: .only(1)))
    #expect(await storeError { _ = try await home.put() }?.code == .noSpace)
    try await home.store.apply([change("x", "2023-11-14T22:13:20Z-0-peer")])
    #expect(try await home.put() == "2023-11-14T22:13:20.000Z-0001-own")
  }

  @Test func `Without a node each opening has one of its own`() async throws {
    let home = try Home { $0.clockNode = nil }
    var nodes: Set<String> = []
    for _ in 0..<4 {
      let stamp = try await home.put()
      let node = String(stamp.split(separator: "-")[2])
      #expect(node.utf8.count == 16)
      #expect(try await home.put().hasSuffix("-" + node))
      nodes.insert(node)
      try home.reopen()
    }
    #expect(nodes.count == 4)
  }

  @Test(arguments: ["", String(repeating: "n", count: 901)])
  func `A node that is none is refused by the open`(node: String) async throws {
    #expect(await storeError { _ = try Home { $0.clockNode = node } }?.code == .limitExceeded)
  }

  // MARK: Jumps

  @Test func `A step back of a day and one forward of ten years, and restarts`() async throws {
    let home = try Home()
    var stamps = [try await home.put()]
    for step in [-Self.day, 3_652 * Self.day, -3_652 * Self.day, 1, -Self.day] {
      home.clock.advance(by: step)
      stamps.append(try await home.put())
      try home.reopen()
      stamps.append(try await home.put("b"))
      try home.kill()
      stamps.append(try await home.put())
      try home.store.reopen()
      stamps.append(try await home.put("b"))
    }
    for (before, after) in zip(stamps, stamps.dropFirst()) {
      #expect(Self.isBefore(before, after), "\(before) \(after)")
    }
  }

  @Test func `After ten thousand stamps of a millisecond the next one is begun`() async throws {
    let home = try Home {
      $0.segmentRecords = 65_536
      $0.segmentBytes = 16 << 20
    }
    let changes = (0..<10_001).map {
      LocalChange.put(Data(), forKey: RecordKey(collection: "c", id: "\($0)"))
    }
    let stamps = try await home.store.write(changes).map(\.hlcTimestamp)
    #expect(stamps[9_999] == "1700000000000-9999-own")
    #expect(stamps[10_000] == "1700000000001-0000-own")
    try home.reopen()
    #expect(try await home.put() == "1700000000001-0001-own")
  }

  // MARK: Others

  @Test func `What others send within the drift is followed, before and after a restart`()
    async throws
  {
    let home = try Home()
    for isBegun in [false, true] {
      if isBegun { _ = try await home.put() }
      home.clock.advance(by: 100_000)
      // Not the greatest of its batch.
      let stamp = "\(home.now + Self.drift)-zzz-peer"
      try await home.store.apply([change("x", "\(home.now)-0-peer"), change("y", stamp)])
      let own = try await home.put()
      #expect(Self.isBefore(stamp, own) && Self.physical(own) <= home.now + Self.drift)
      try home.reopen()
      #expect(Self.isBefore(own, try await home.put()))
    }
  }

  @Test func `A stamp too far ahead does not drag the clock, and its record cannot be changed`()
    async throws
  {
    let home = try Home()
    let hostile = change("x", "\(home.now + 2 * Self.drift)-0-evil", payload: "x")
    let key = RecordKey(collection: "c", id: "x")
    var last = ""
    func check() async throws {
      let own = try await home.put()
      #expect(last.isEmpty || Self.isBefore(last, own))
      // One millisecond for each opening is what it may take to be behind all that it gave before.
      #expect(Self.physical(own) < home.now + 20)
      last = own
      let position = try home.store.position
      let calls: [() async throws -> Void] = [
        { try await home.store.put(Data(), forKey: key) }, { try await home.store.delete(key) },
        { try await home.store.update(key) { $0 = nil } },
        { try await home.store.update(key) { $0 = Data([1]) } },
      ]
      for call in calls {
        #expect(await storeError { try await call() }?.code == .clockDrift)
      }
      // What asks for no change is no error.
      try await home.store.update(key) { _ in }
      // All or nothing.
      let error = await storeError {
        try await home.store.write([
          .put(Data(), forKey: RecordKey(collection: "c", id: "b")), .delete(key),
        ])
      }
      #expect(error?.code == .clockDrift && error?.recordIndex == 1)
      #expect(try home.store.position == position)
    }
    last = try await home.put()
    try await home.store.apply([hostile])
    #expect(try await home.put() == "1700000000000-0001-own")
    // What comes within the bound is followed beside it.
    try await home.store.apply([
      change("y", "\(home.now + 5)-0-peer"), change("z", "9999999999999999999-zzzz-evil"),
    ])
    #expect(try await home.put() == "1700000000005-0001-own")
    try await check()
    for _ in 0..<3 {
      try home.reopen()
      try await check()
      try home.kill()
      try await check()
    }
    // When the time has come up to it, it is a record like others.
    home.clock.advance(by: Self.drift)
    try await home.store.put(Data(), forKey: key)
    #expect(
      Self.isBefore(
        hostile.hlcTimestamp, try #require(try home.store.record(forKey: key)).hlcTimestamp))
  }

  @Test func `A store that begins with hostile stamps only stamps near the time`() async throws {
    let home = try Home()
    try await home.store.apply([change("z", "9999999999999999999-zzzzzzzzzzzz-evil")])
    for _ in 0..<5 {
      let own = try await home.put()
      #expect((home.now...home.now + 10).contains(Self.physical(own)))
      try home.reopen()
    }
  }

  @Test func `A deletion that was purged with a stamp far ahead is not outlived by a put`()
    async throws
  {
    for rule in [ResurrectionRule.refuse, .accept] {
      let home = try Home {
        $0.tombstoneRetention = .zero
        $0.resurrections = rule
      }
      let stamp = "\(home.now + 10 * Self.drift)-0-peer"
      try await home.store.apply((0..<8).map { change("\($0)", stamp, .delete) })
      home.clock.advance(by: 1_000)
      #expect(try home.store.compact().tombstonesPurged == 8)
      #expect(try home.store.record(forKey: RecordKey(collection: "c", id: "1")) == nil)
      if rule == .refuse {
        #expect(await storeError { _ = try await home.put("1") }?.code == .clockDrift)
        home.clock.advance(by: 10 * Self.drift)
      }
      let own = try await home.put("1")
      #expect(
        try home.store.record(forKey: RecordKey(collection: "c", id: "1"))?.hlcTimestamp == own)
    }
  }

  // MARK: Properties

  @Test(arguments: 0..<12 as Range<UInt64>)
  func `Whatever happens, stamps increase, win, and stay near the time`(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let isDurable = seed % 2 == 0
    let home = try Home { $0.durability = isDurable ? .powerLoss : .processCrash }
    var model = ReferenceModel()
    var last: String?
    var opens: Int64 = 1
    var latestNow = home.now
    var refusals = 0
    for step in 0..<150 {
      latestNow = max(latestNow, home.now)
      let id = String(UnicodeScalar(UInt8(97 + random.next() % 12)))
      let key = RecordKey(collection: "c", id: id)
      switch random.next() % 20 {
      case 0: home.clock.advance(by: -Self.day)
      case 1: home.clock.advance(by: Self.day / 2)
      case 2: if seed % 3 == 0 { home.clock.advance(by: [3_652, -3_652][step % 2] * Self.day) }
      case 3:
        try home.reopen()
        opens += 1
      case 4:
        // What was acknowledged survives the loss of power only if that was asked for.
        let seed = random.next()
        try isDurable && seed % 2 == 0 ? home.losePower(seed: seed / 2) : home.kill()
        opens += 1
      case 5: try home.store.compact()
      case 6..<10:
        let skews = [-100_000, -1, 0, 1, Self.drift, Self.drift + 1, 2 * Self.drift, 40 * Self.day]
        let skew = skews[Int(random.next() % 8)]
        let batch = [
          change(id, "\(home.now + skew)-\(random.next() % 20)-peer", payload: "\(step)"),
          change("peer", "\(home.now)-\(step)-peer"),
        ]
        try await home.store.apply(batch)
        try model.apply(batch)
      case 10..<13: home.clock.advance(by: Int64(random.next() % 3))
      default:
        let existing = model.record("c", id)
        do {
          let record: ChangeRecord?
          switch random.next() % 3 {
          case 0: record = try await home.store.delete(key)
          case 1: record = try await home.store.put(Data("\(step)".utf8), forKey: key)
          default:
            try await home.store.update(key) { $0 = Data("\(step)".utf8) }
            record = try home.store.record(forKey: key)
          }
          guard let record else {
            #expect(existing == nil || existing?.type == .delete)
            break
          }
          if let last { #expect(Self.isBefore(last, record.hlcTimestamp), "seed \(seed)") }
          if let existing { #expect(Self.isBefore(existing.hlcTimestamp, record.hlcTimestamp)) }
          #expect(Self.physical(record.hlcTimestamp) <= latestNow + Self.drift + opens)
          last = record.hlcTimestamp
          try model.apply([record])
        } catch let error as LogStoreError {
          #expect(error.code == .clockDrift)
          let stamp = try #require(existing).hlcTimestamp
          #expect(Self.physical(stamp) > home.now + Self.drift, "seed \(seed)")
          if let last { #expect(Self.isBefore(last, stamp)) }
          refusals += 1
        }
      }
    }
    #expect(last != nil)
    try await expectEqual(home.store, model, "seed \(seed), \(refusals) refusals")
  }

  @Test(arguments: 0..<4 as Range<UInt64>)
  func `Stores with clocks of their own that exchange changes come to one state`(seed: UInt64)
    async throws
  {
    var random = SeededGenerator(seed: seed)
    let homes = try (0..<3).map { number in try Home { $0.clockNode = "node\(number)" } }
    // The last one is beyond what the others follow.
    for (home, skew) in zip(homes, [-20_000, 20_000, Self.day]) { home.clock.advance(by: skew) }
    var refusals = 0
    for step in 0..<120 {
      let home = homes[Int(random.next() % 3)]
      let key = RecordKey(collection: "c", id: "\(random.next() % 8)")
      home.clock.advance(by: Int64(random.next() % 50))
      do {
        switch random.next() % 6 {
        case 0: try await home.store.delete(key)
        case 1: try await home.store.put(Data("\(step)".utf8), forKey: key)
        case 2: try home.reopen()
        case 3:
          let other = homes[Int(random.next() % 3)]
          if other !== home {
            _ = try await home.store.converge(with: other.store, pageSize: 3)
          }
        default:
          let before = try home.store.record(forKey: key)
          try await home.store.update(key) { $0 = ($0 ?? Data()) + Data("+".utf8) }
          let after = try #require(try home.store.record(forKey: key))
          if let before { #expect(Self.isBefore(before.hlcTimestamp, after.hlcTimestamp)) }
        }
      } catch let error as LogStoreError {
        #expect(error.code == .clockDrift)
        let stored = try #require(try home.store.record(forKey: key))
        #expect(stored.hlcTimestamp.hasSuffix("-node2") && home !== homes[2], "seed \(seed)")
        refusals += 1
      }
    }
    #expect(refusals > 0)
    for _ in 0..<2 {
      _ = try await homes[0].store.converge(with: homes[1].store)
      _ = try await homes[1].store.converge(with: homes[2].store)
    }
    let state = try await homes[0].store.sweep(pageSize: 10)
    #expect(!state.isEmpty)
    for home in homes { #expect(try await home.store.sweep(pageSize: 10) == state) }
  }
}
