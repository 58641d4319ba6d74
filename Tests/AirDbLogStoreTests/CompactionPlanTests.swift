import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// What is chosen to be compacted, and what the store cleans by itself.
@Suite struct CompactionPlanTests {
  private typealias Candidate = CompactionPlan.Candidate

  private static func candidates(_ generator: inout SeededGenerator) -> [Candidate] {
    let isLarge = generator.next() % 4 == 0
    return (0..<generator.next() % 40).map { number in
      let records = 1 + generator.next() % (isLarge ? 262_144 : 1 << (1 + generator.next() % 16))
      let live =
        switch generator.next() % 4 {
        case 0: records
        case 1: UInt64(0)
        default: generator.next() % (records + 1)
        }
      return Candidate(
        id: number + 1, bytes: 4_160 + records * (64 + generator.next() % (isLarge ? 4_000 : 400)),
        records: records, live: live)
    }
  }

  @Test(arguments: [CompactionPlan.Urgency.busy, .idle, .everything])
  func `A plan takes neighbours, within bounds, and carrying out one after the other ends`(
    urgency: CompactionPlan.Urgency
  ) throws {
    let rules = CompactionPlan.Rules()
    for seed in 0..<300 as Range<UInt64> {
      var generator = SeededGenerator(seed: seed)
      var candidates = Self.candidates(&generator)
      var nextId: UInt64 = 1_000
      // Each plan takes away garbage of a segment for good, or segments.
      var left = 2 * candidates.count + 1
      while let plan = CompactionPlan.choose(candidates, urgency) {
        left -= 1
        guard left > 0 else {
          Issue.record("seed \(seed): it does not end")
          break
        }
        let place = try #require(candidates.firstIndex { $0.id == plan.segments.first })
        try #require(place + plan.segments.count <= candidates.count, "seed \(seed)")
        let range = place..<(place + plan.segments.count)
        let inputs = candidates[range]
        #expect(inputs.map(\.id) == plan.segments, "seed \(seed): no neighbours")
        #expect(plan.bytes == inputs.reduce(0) { $0 + $1.bytes })
        #expect(plan.garbageBytes == inputs.reduce(0) { $0 + $1.garbage })
        let live = inputs.reduce(0) { $0 + $1.live }
        let liveBytes = plan.bytes - plan.garbageBytes
        if inputs.count > 1 {
          #expect(live <= rules.maximumRecords, "seed \(seed)")
          #expect(liveBytes <= rules.maximumBytes, "seed \(seed)")
          if urgency == .busy {
            let bytes = candidates.reduce(0) { $0 + $1.bytes }
            #expect(8 * liveBytes <= max(bytes, rules.smallBytes), "seed \(seed)")
          }
        }
        #expect(plan.garbageBytes > 0 || inputs.count >= rules.fanIn, "seed \(seed)")
        let output = Candidate(id: nextId, bytes: liveBytes, records: live, live: live)
        candidates.replaceSubrange(range, with: live == 0 ? [] : [output])
        nextId += 1
      }
      let bytes = candidates.reduce(0) { $0 + $1.bytes }
      let garbage = candidates.reduce(0) { $0 + $1.garbage }
      switch urgency {
      case .everything: #expect(garbage == 0, "seed \(seed)")
      case .idle: #expect(Double(garbage) <= 0.06 * Double(bytes), "seed \(seed)")
      case .busy:
        #expect(
          candidates.allSatisfy { Double($0.garbage) < 0.3 * Double($0.bytes) || $0.garbage == 0 },
          "seed \(seed)")
      }
    }
  }

  @Test func `Nothing is chosen where nothing is to be gained`() {
    for urgency in [CompactionPlan.Urgency.busy, .idle, .everything] {
      #expect(CompactionPlan.choose([], urgency) == nil)
      let clean = (1...3).map { Candidate(id: $0, bytes: 9_000, records: 9, live: 9) }
      #expect(CompactionPlan.choose(clean, urgency) == nil)
      // One record of a thousand is not worth it while something else is to be done, or at all.
      let almost = [Candidate(id: 1, bytes: 100_000, records: 1_000, live: 999)]
      #expect((CompactionPlan.choose(almost, urgency) != nil) == (urgency == .everything))
    }
  }

  @Test(arguments: [Durability.powerLoss, .processCrash])
  func `Updates of few keys end in bounded space without anybody asking`(
    durability: Durability
  ) async throws {
    try await withTemporaryDirectory { root in
      var configuration = Configuration.tiny
      configuration.cleaning = .automatic
      configuration.segmentRecords = 50
      configuration.segmentBytes = 16 << 10
      configuration.durability = durability
      let failures = Locked<[LogStoreError]>([])
      configuration.eventHandler = { event in
        if case .failed(let error) = event { failures.withLock { $0.append(error) } }
      }
      let store = try ChangeStore(at: root + "/store", configuration: configuration)
      var model = ReferenceModel()
      for round in 0..<400 {
        let batch = (0..<8).map { key in
          change(
            "\(key)", time(round * 8 + key), round % 7 == key ? .delete : .update,
            payload: String(repeating: "x", count: 100))
        }
        try model.apply(batch)
        try await store.apply(batch)
      }
      // Only a guard against a hang: what is waited for comes within seconds.
      let deadline = ContinuousClock.now + .seconds(300)
      // Sealed segments hold no more than the idle bound, and the log is no longer than a segment.
      func isBounded() throws -> Bool {
        let statistics = try store.statistics()
        let sealed = statistics.records - statistics.unsealedRecords
        return sealed <= 20 && statistics.segmentBytes <= 8 << 10
          && statistics.sealedSegments <= CompactionPlan.Rules().fanIn
      }
      while try !isBounded(), ContinuousClock.now < deadline {
        try await Task.sleep(for: .milliseconds(50))
      }
      let statistics = try store.statistics()
      #expect(try isBounded(), "\(statistics)")
      #expect(statistics.liveRecords == 8)
      #expect(try store.engine.adapterPage(after: nil, limit: .max) == model.feed.records)
      #expect(try store.verify().isClean)
      #expect(failures.withLock { $0.isEmpty }, "\(failures.withLock { $0 })")
      try store.close()
      let reopened = try ChangeStore(at: root + "/store", configuration: configuration)
      try expectOnlyUsedFiles(reopened, SystemPlatform())
      #expect(try reopened.engine.adapterPage(after: nil, limit: .max) == model.feed.records)
      try reopened.close()
    }
  }
}
