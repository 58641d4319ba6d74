import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// What looking for garbage, and removing it, reads.
@Suite struct CompactionCostTests {
  private static let keys = 200

  /// A store in segments of ten commits each, and what it reads.
  private final class Home {
    let platform = ReadCountingPlatform()
    let store: ChangeStore
    private let scheduler = ManualScheduler()
    private(set) var positions: [Position] = []

    init(_ change: (inout Configuration) -> Void = { _ in }) throws {
      var configuration = Configuration()
      configuration.durability = .processCrash
      configuration.cleaning = .off
      configuration.segmentRecords = keys
      // So that what is read again is not found in the cache.
      configuration.cacheBytes = 0
      change(&configuration)
      store = try ChangeStore(
        path: "/store", configuration, platform: platform, scheduler: scheduler)
    }

    func write(_ keys: Range<Int>, _ stamp: Int, _ type: MutationType = .update) throws {
      for start in stride(from: keys.lowerBound, to: keys.upperBound, by: 20) {
        let batch = (start..<(start + 20)).map { change("\($0)", time(stamp), type) }
        positions.append(try #require(try store.applyAndWait(batch).position))
      }
      scheduler.run()
    }

    /// What there is to clean, and the bytes that it takes to know.
    func look() throws -> (read: Int, found: CompactionEstimate) {
      _ = platform.take()
      let found = try store.compactionEstimate()
      return (platform.take(), found)
    }

    /// Removes it.
    func compact() throws -> (read: Int, result: CompactionResult) {
      _ = platform.take()
      let result = try store.compact()
      let read = platform.take()
      scheduler.run()
      return (read, result)
    }
  }

  @Test func `What a survey has found is not read again before it changes`() throws {
    let home = try Home { $0.tombstoneRetention = .zero }
    let consumer = try home.store.consumer(named: "slow", retaining: .history())
    for round in 0..<3 { try home.write(0..<Self.keys, round) }
    try home.write(0..<Self.keys, 3, .delete)
    for round in 4..<6 { try home.write(0..<Self.keys, round) }
    // Pinned from the middle of the deletions on.
    try consumer.acknowledge(home.positions[34])
    let first = try home.look()
    #expect(first.read > 0 && first.found.segments > 0)
    let second = try home.look()
    #expect(second.read == 0, "\(second.read) bytes")
    #expect(second.found == first.found)
    // Another place in that segment: the others are not looked at again.
    try consumer.acknowledge(home.positions[37])
    let third = try home.look()
    #expect((1..<first.read).contains(third.read), "\(third.read) of \(first.read) bytes")
    #expect(third.found.bytesFreed > first.found.bytesFreed)
    #expect(try home.look().read == 0)
    // A store that has seen nothing finds the same.
    try home.store.reopen()
    let fresh = try home.look()
    #expect(fresh.read > 0 && fresh.found == third.found)
    try home.store.close()
  }

  @Test func `A segment of which nothing is kept is removed without being read`() throws {
    func home() throws -> Home {
      let home = try Home()
      for round in 0..<4 { try home.write(0..<Self.keys, round) }
      return home
    }
    let pinned = try home()
    let consumer = try pinned.store.consumer(named: "slow", retaining: .history())
    try consumer.acknowledge(pinned.positions[24])
    let copied = try pinned.compact()
    #expect(copied.result.recordsDropped == 500)
    #expect(copied.read > 10_000, "\(copied.read) bytes: one of them is copied in part")
    let free = try home()
    let removed = try free.compact()
    #expect(removed.result.recordsDropped == UInt64(3 * Self.keys))
    #expect(removed.read < 2_000, "\(removed.read) bytes")
    for home in [pinned, free] {
      #expect(try home.store.changes(limit: .max).records.count == Self.keys)
      #expect(try home.store.verify().isClean)
      try home.store.close()
    }
  }
}
