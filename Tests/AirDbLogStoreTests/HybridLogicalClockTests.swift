import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// The clock that stamps changes: greater each time, whatever the time does.
struct HybridLogicalClockTests {
  private let now: UInt64 = 1_700_000_000_000

  private func isAscending(_ lhs: String, _ rhs: String) -> Bool {
    HlcComparator.compare(lhs, rhs) < 0
  }

  private func code(_ body: () throws -> Void) -> LogStoreError.Code? {
    do {
      try body()
      return nil
    } catch {
      return (error as? LogStoreError)?.code
    }
  }

  // MARK: Ticks

  @Test func `It takes dates and durations, whatever they are`() throws {
    let now = Date(timeIntervalSince1970: 1_700_000_000.000_9)
    var clock = try HybridLogicalClock(node: "n", maximumDrift: .milliseconds(1_000.9))
    #expect(clock.maximumDrift == .seconds(1))
    // Before 1970, and no number at all, are 1970.
    for early in [Date.distantPast, Date(timeIntervalSince1970: .nan)] {
      var other = clock
      #expect(try other.tick(at: early) == "0000000000000-0000-n")
    }
    #expect(try clock.tick(at: now) == "1700000000000-0000-n")
    #expect(code { try clock.merge("1700000001001-0-z", at: now) } == .clockDrift)
    try clock.merge("1700000001000-0-z", at: now)
    #expect(try clock.tick(at: now) == "1700000001000-0001-n")
    #expect(try clock.tick(at: .distantFuture) == "64092211200000-0000-n")
    var iso = try HybridLogicalClock(node: "n", style: .iso8601, maximumDrift: .seconds(-5))
    #expect(iso.maximumDrift == .zero)
    #expect(code { _ = try iso.tick(at: Date(timeIntervalSince1970: .infinity)) } == .limitExceeded)
    #expect(code { try iso.merge("2023-11-14T22:13:20.001Z-0-z", at: now) } == .clockDrift)
    try iso.merge("2023-11-14T22:13:20Z-0-z", at: now)
    #expect(try HybridLogicalClock(node: "n").maximumDrift == HybridLogicalClock.defaultDrift)
  }

  @Test func aStampHasTimeCounterAndNode() throws {
    var clock = try HybridLogicalClock(node: "a81bc81b")
    #expect(clock.lastStamp == nil)
    #expect(try clock.tick(at: now) == "1700000000000-0000-a81bc81b")
    #expect(try clock.tick(at: now) == "1700000000000-0001-a81bc81b")
    #expect(try clock.tick(at: now + 1) == "1700000000001-0000-a81bc81b")
    #expect(clock.lastStamp == "1700000000001-0000-a81bc81b")
    #expect(try HybridLogicalClock(node: "n").with { try $0.tick(at: 0) } == "0000000000000-0000-n")

    var iso = try HybridLogicalClock(node: "n", style: .iso8601)
    #expect(try iso.tick(at: now) == "2023-11-14T22:13:20.000Z-0000-n")
    #expect(try iso.tick(at: now) == "2023-11-14T22:13:20.000Z-0001-n")
  }

  @Test(arguments: [HybridLogicalClock.Style.decimal, .iso8601])
  func stampsIncreaseWhateverTheTimeDoes(style: HybridLogicalClock.Style) throws {
    let day: UInt64 = 86_400_000
    let times = [now, now - day, now - day, now + 3_650 * day, now, 0, now + 1, now + 3_650 * day]
    var clock = try HybridLogicalClock(node: "n", style: style)
    let stamps = try times.map { try clock.tick(at: $0) }
    for (before, after) in zip(stamps, stamps.dropFirst()) { #expect(isAscending(before, after)) }
  }

  @Test func afterTenThousandStampsTheClockIsAheadOfTheTime() throws {
    var clock = try HybridLogicalClock(node: "n")
    for _ in 0..<9_999 { _ = try clock.tick(at: now) }
    #expect(try clock.tick(at: now) == "1700000000000-9999-n")
    #expect(try clock.tick(at: now) == "1700000000001-0000-n")
    #expect(try clock.tick(at: now) == "1700000000001-0001-n")
    #expect(try clock.tick(at: now + 1) == "1700000000001-0002-n")
    #expect(try clock.tick(at: now + 2) == "1700000000002-0000-n")
  }

  @Test func aContinuedClockGoesOnWhereItWas() throws {
    var clock = try HybridLogicalClock(node: "n", after: "1700000000005-0007-n")
    #expect(clock.lastStamp == "1700000000005-0007-n")
    #expect(try clock.tick(at: now) == "1700000000005-0008-n")
  }

  // MARK: Merging

  @Test func theNextStampIsGreaterThanAMergedOne() throws {
    let counters = [
      "0", "0000", "9", "a", "f", "000A", "001f", "00Z", "9998", "9999", "999a", "zzzz", "10000",
      "zzzzzzzzzzzz",
    ]
    for counter in counters {
      for node in ["", "-a", "-n", "_z", ":\u{FF}"] {
        let received = "1700000000500:\(counter)\(node)"
        var clock = try HybridLogicalClock(node: "n")
        _ = try clock.tick(at: now)
        try clock.merge(received, at: now)
        let stamp = try clock.tick(at: now)
        #expect(isAscending(received, stamp), "\(received) \(stamp)")
        let digits = try #require(stamp.split(separator: "-").dropFirst().first)
        #expect(digits.count == 4 && digits.allSatisfy { ("0"..."9").contains($0) }, "\(stamp)")
      }
    }
  }

  @Test func partsOfAMillisecondCountUpwards() throws {
    for fraction in ["", ".000", ".000001", ".000000001", ".5", ".999999999"] {
      let received = "2023-11-14T22:13:20\(fraction)Z-9999-z"
      var clock = try HybridLogicalClock(node: "a", style: .iso8601)
      try clock.merge(received, at: now)
      #expect(isAscending(received, try clock.tick(at: now)), "\(received)")
    }
  }

  @Test func anOlderStampMovesNothing() throws {
    var clock = try HybridLogicalClock(node: "n", after: "1700000000005-0007-n")
    let before = clock
    for stamp in ["1600000000000-9999-z", "1700000000005-0006-z", "1700000000005-0007-z"] {
      try clock.merge(stamp, at: now)
      #expect(clock == before)
    }
  }

  @Test func aStampBeyondTheDriftIsRefusedAndMovesNothing() throws {
    var clock = try HybridLogicalClock(node: "n", driftMilliseconds: 1_000)
    _ = try clock.tick(at: now)
    let before = clock
    for stamp in ["1700000001001-0000-z", "1700000001001-0", "9999999999999999999-zzzzzzzzzzzz-z"] {
      #expect(code { try clock.merge(stamp, at: now) } == .clockDrift)
      #expect(clock == before)
    }
    try clock.merge("1700000001000-zzzz-z", at: now)
    #expect(try clock.tick(at: now) == "1700000001001-0000-n")

    var iso = try HybridLogicalClock(node: "n", style: .iso8601, driftMilliseconds: 1_000)
    #expect(code { try iso.merge("2023-11-14T22:13:21.000001Z-0-z", at: now) } == .clockDrift)
    try iso.merge("2023-11-14T22:13:21Z-0-z", at: now)

    var boundless = try HybridLogicalClock(node: "n", driftMilliseconds: .max)
    try boundless.merge("9999999999999999998-0-z", at: now)
    #expect(try boundless.tick(at: now) == "9999999999999999998-0001-n")
  }

  @Test func aStampThatTheClockHasPassedIsNotRefused() throws {
    // Its own, come back from a peer after the time was set back.
    var clock = try HybridLogicalClock(node: "n", driftMilliseconds: 1_000)
    let stamp = try clock.tick(at: now + 86_400_000)
    let before = clock
    try clock.merge(stamp, at: now)
    #expect(clock == before)
    try clock.merge("1700086400000-0005-z", at: now)
    #expect(try clock.tick(at: now) == "1700086400000-0006-n")
    #expect(code { try clock.merge("1700086400001-0-z", at: now) } == .clockDrift)
  }

  @Test func whatCannotBeComparedIsRefused() throws {
    var clock = try HybridLogicalClock(node: "n")
    var iso = try HybridLogicalClock(node: "n", style: .iso8601)
    let before = clock
    for stamp in ["", "nonsense", "1700000000000", "1700000000000-0-"] {
      #expect(code { try clock.merge(stamp, at: now) } == .invalidTimestamp)
      #expect(code { _ = try HybridLogicalClock(node: "n", after: stamp) } == .invalidTimestamp)
    }
    #expect(code { try clock.merge("2023-11-14T22:13:20Z-0-z", at: now) } == .mixedTimestamps)
    #expect(code { try iso.merge("1700000000000-0-z", at: now) } == .mixedTimestamps)
    #expect(clock == before)
  }

  // MARK: Limits

  @Test func beyondTheLastTimeThereIsNoStamp() throws {
    var clock = try HybridLogicalClock(node: "n", after: "9999999999999999999-9999-n")
    let before = clock
    #expect(code { _ = try clock.tick(at: now) } == .limitExceeded)
    #expect(code { _ = try clock.tick(at: .max) } == .limitExceeded)
    #expect(clock == before)

    var iso = try HybridLogicalClock(node: "n", style: .iso8601)
    #expect(code { _ = try iso.tick(at: 18_429_292_800_000) } == .limitExceeded)
    #expect(code { _ = try iso.tick(at: .max) } == .limitExceeded)
    #expect(try iso.tick(at: 18_429_292_799_999) == "2553-12-31T23:59:59.999Z-0000-n")
    var last = try HybridLogicalClock(
      node: "n", style: .iso8601, after: "2553-12-31T23:59:59.999999999Z-0-n")
    #expect(code { _ = try last.tick(at: now) } == .limitExceeded)
  }

  @Test func aNodeHasALength() throws {
    #expect(code { _ = try HybridLogicalClock(node: "") } == .limitExceeded)
    let longest = String(repeating: "n", count: 900)
    #expect(code { _ = try HybridLogicalClock(node: longest + "n") } == .limitExceeded)
    var clock = try HybridLogicalClock(node: longest)
    let change = ChangeRecord(
      id: "1", collection: "notes", type: .insert, payload: .init(),
      hlcTimestamp: try clock.tick(at: now))
    #expect(try ChangeStore.inMemory().validate([change]).isEmpty)
  }

  // MARK: Properties

  /// A clock among others, over a time that goes anywhere, that stops and is continued at random.
  @Test(arguments: 0..<20 as Range<UInt64>)
  func everyStampIsGreaterThanAllBefore(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let style: HybridLogicalClock.Style = seed % 2 == 0 ? .decimal : .iso8601
    var time = now
    var greatest: String?
    var clock = try HybridLogicalClock(node: "own", style: style, driftMilliseconds: 5_000)
    var peers = try (0..<3).map { try HybridLogicalClock(node: "peer\($0)", style: style) }
    for _ in 0..<500 {
      switch random.next() % 40 {
      case 0: time -= 86_400_000
      case 1: time += 315_360_000_000 / 20
      case 2..<10: time += random.next() % 3
      case 10..<20:
        let peer = Int(random.next() % 3)
        let skew = random.next() % 9_000
        let stamp = try peers[peer].tick(at: time + skew)
        let before = clock
        if let code = code({ try clock.merge(stamp, at: time) }) {
          #expect(code == .clockDrift && clock == before)
        } else if greatest.map({ isAscending($0, stamp) }) ?? true {
          greatest = stamp
        }
      case 20:
        // Only stamps that it gave itself are kept.
        greatest = clock.lastStamp
        clock = try HybridLogicalClock(
          node: "own", style: style, driftMilliseconds: 5_000, after: clock.lastStamp)
      default:
        let last = clock.lastStamp
        let stamp = try clock.tick(at: time)
        if let greatest { #expect(isAscending(greatest, stamp), "seed \(seed)") }
        // Those of one node are ordered as texts, too.
        if let last { #expect(last < stamp, "seed \(seed)") }
        greatest = stamp
      }
    }
  }
}

extension HybridLogicalClock {
  fileprivate func with<Result>(_ body: (inout Self) throws -> Result) rethrows -> Result {
    var clock = self
    return try body(&clock)
  }
}
