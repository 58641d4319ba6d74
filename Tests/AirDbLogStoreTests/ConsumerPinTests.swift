import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// What compactions leave for consumers.
struct ConsumerPinTests {
  /// A store of small sealed segments, in which few keys are updated again and again.
  private struct Updates {
    let files = SimulatedFileSystem()
    let scheduler = ManualScheduler()
    let store: ChangeStore
    var positions: [Position] = []

    init() throws {
      store = try ChangeStore(path: "/store", .tiny, platform: files, scheduler: scheduler)
    }

    mutating func apply(_ count: Int) throws {
      for _ in 0..<count {
        let number = positions.count
        positions.append(
          try store.applyAndWait([
            change("\(number % 3)", time(number), payload: String(repeating: "x", count: 60))
          ]).position!)
        scheduler.run()
        files.clock.advance(by: 1_000)
      }
    }

    /// The sequences of the commits behind a position of which something is left.
    func sequences(after position: Position?) throws -> [UInt64] {
      try store.commits(after: position, limit: .max, byteLimit: .max).commits
        .map(\.position.sequence)
    }
  }

  @Test func `What a consumer of history has not seen stays, and goes when it has`() throws {
    var updates = try Updates()
    try updates.apply(20)
    let consumer = try updates.store.consumer(named: "x", retaining: .history(), from: .end)
    _ = try updates.store.consumer(named: "latest")
    let start = try consumer.position()
    try updates.apply(40)
    #expect(try updates.store.compact().recordsDropped > 0)
    #expect(try updates.sequences(after: start) == updates.positions[20...].map(\.sequence))
    #expect(try updates.sequences(after: nil).count < 60)
    var status = try #require(try updates.store.consumers().last)
    #expect(status.pinnedBytes > 0 && !status.isBeyondCap && status.pinnedUntil == nil)
    #expect(status.lag.commits == 40)
    #expect(try updates.store.retentionReport().pinnedBytes == status.pinnedBytes)
    #expect(try updates.store.consumers().first?.pinnedBytes == 0)

    try consumer.acknowledge(updates.positions[39])
    #expect(try updates.store.compact().recordsDropped > 0)
    #expect(
      try updates.sequences(after: updates.positions[39])
        == updates.positions[40...].map(\.sequence))
    status = try #require(try updates.store.consumers().last)
    #expect(status.lag.commits == 20)
    try consumer.retire()
    #expect(try updates.store.compact().recordsDropped > 0)
    #expect(try updates.sequences(after: nil).count < 20)
    #expect(try updates.store.verify().isClean)
  }

  @Test func `Beyond its cap of bytes or of age a consumer follows the latest versions`() throws {
    for retention in [
      Consumer.Retention.history(maximumBytes: 3_000), .history(maximumAge: .seconds(20)),
    ] {
      var updates = try Updates()
      _ = try updates.store.consumer(named: "x", retaining: retention)
      try updates.apply(10)
      var status = try #require(try updates.store.consumers().first)
      #expect(!status.isBeyondCap)
      try updates.apply(50)
      status = try #require(try updates.store.consumers().first)
      #expect(status.isBeyondCap && status.pinnedBytes > 0)
      #expect((status.pinnedUntil == nil) == (retention == .history(maximumBytes: 3_000)))
      if let until = status.pinnedUntil {
        let now = Double(updates.files.wallClockMilliseconds()) / 1_000
        #expect(until > Date(timeIntervalSince1970: now))
      }
      #expect(try updates.store.compact().recordsDropped > 0)
      let left = try updates.sequences(after: nil)
      // Whole segments: what is kept is a little more than asked for, and all of the end.
      #expect(left.count < 45)
      #expect(left.suffix(15) == updates.positions[45...].map(\.sequence)[...])
      #expect(try updates.store.verify().isClean)
    }
  }

  @Test func `A consumer that is registered or moved back amid a compaction finds what was there`()
    throws
  {
    for isReset in [false, true] {
      var updates = try Updates()
      let mover = try updates.store.consumer(named: "mover", retaining: .history(), from: .end)
      try updates.apply(40)
      try mover.acknowledge(updates.positions[39])
      let store = updates.store
      let hasRun = Locked(false)
      let failure = Locked<String?>(nil)
      updates.files.beforeEachCall { call in
        // What is kept has been settled, and nothing exchanged yet.
        guard call.kind == .create, call.path.hasSuffix(".segment") else { return }
        let isFirst = hasRun.withLock { hasRun in
          defer { hasRun = true }
          return !hasRun
        }
        guard isFirst else { return }
        do {
          if isReset {
            try mover.reset(to: nil)
          } else {
            _ = try store.consumer(named: "new", retaining: .history())
          }
        } catch {
          failure.withLock { $0 = "\(error)" }
        }
      }
      let result = try store.compact()
      updates.files.beforeEachCall(nil)
      #expect(failure.withLock { $0 } == nil)
      #expect(hasRun.withLock { $0 })
      #expect(result.recordsDropped == 0)
      #expect(try updates.sequences(after: nil) == updates.positions.map(\.sequence))
    }
  }
}
