import AirDbLogStore
import Foundation
import HlcText
import TestSupport
import Testing

/// Random interleavings of applying, deleting, compacting, acknowledging and reopening, against a model
/// that knows the history: nothing comes back, nothing is lost that was promised.
///
/// A script is made from its seed alone; a failure prints the seed.
@Suite struct ModelHistoryTests {
  /// More seeds for a long run.
  private static let seeds: Range<UInt64> =
    ProcessInfo.processInfo.environment["AIRDB_LONG_TESTS"] == nil ? 0..<24 : 0..<20_000

  @Test(arguments: seeds)
  func `Cleaning loses nothing that was promised and brings nothing back`(seed: UInt64) throws {
    var script = try HistoryScript(seed: seed)
    do {
      try script.run(steps: 80)
    } catch {
      Issue.record(error, "seed \(seed)")
    }
  }

  /// A script that never cleans anything away proves nothing.
  @Test func `The scripts drop, purge, and meet what comes too late`() throws {
    var dropped = 0
    var purged = 0
    var resurrections = 0
    var tooOld = 0
    for seed in Self.seeds.prefix(12) {
      var script = try HistoryScript(seed: seed)
      try script.run(steps: 80)
      dropped += script.model.counts.dropped
      purged += script.model.counts.purged
      resurrections += script.model.counts.resurrections
      tooOld += script.tooOld
    }
    #expect(dropped > 100 && purged > 10 && resurrections > 0 && tooOld > 0)
  }
}

/// One run of random steps.
struct HistoryScript {
  private let seed: UInt64
  private var generator: RecordGenerator
  private var configuration = Configuration()
  private let platform = ClockedPlatform()
  private let scheduler = ManualScheduler()
  private var store: ChangeStore?
  private var consumers: [String: Consumer] = [:]
  /// Positions of commits, as somebody may have kept them.
  private var kept: [Position] = []
  private(set) var model: CleanedModel
  /// How often a position was too old.
  private(set) var tooOld = 0

  init(seed: UInt64) throws {
    self.seed = seed
    var random = SeededGenerator(seed: seed &+ 0xC1EA)
    var options = RecordGenerator.Options()
    options.keys = [5, 20, 100].randomElement(using: &random)!
    options.skew = [0, 500, 60_000].randomElement(using: &random)!
    options.payload = 0...[0, 40, 300].randomElement(using: &random)!
    options.spellsFreely = Bool.random(using: &random)
    generator = RecordGenerator(seed: seed, options: options)
    configuration.segmentRecords = Int.random(in: 5...40, using: &random)
    configuration.segmentBytes = [2_000, 20_000].randomElement(using: &random)!
    configuration.blockBytes = [1, 200, 2_000].randomElement(using: &random)!
    configuration.cacheBytes = [0, 100_000].randomElement(using: &random)!
    configuration.replayBytes = [0, 1 << 18].randomElement(using: &random)!
    configuration.durability = Bool.random(using: &random) ? .powerLoss : .processCrash
    configuration.cleaning = .off
    configuration.historyRetention = [.zero, .seconds(20)].randomElement(using: &random)!
    configuration.tombstoneRetention =
      [nil, .zero, .seconds(5), .seconds(60)].randomElement(using: &random)!
    configuration.resurrections = Bool.random(using: &random) ? .refuse : .accept
    model = CleanedModel(configuration)
    store = try ChangeStore(path: "/store", configuration, platform: platform, scheduler: scheduler)
  }

  mutating func run(steps: Int) throws {
    for step in 0..<steps {
      let comment = Comment(rawValue: "seed \(seed), step \(step)")
      platform.clock.advance(by: Int64(generator.below(3_000)))
      switch generator.below(24) {
      case 0..<10: try apply(comment)
      case 10..<13: try compact(comment)
      case 13..<15: try register(comment)
      case 15..<18: try acknowledge(comment)
      case 18: try reset(comment)
      case 19: try retire(comment)
      case 20: scheduler.run()
      case 21: try move(comment)
      default: try follow(comment)
      }
      try expectNothingChanged(comment)
    }
    try compact("seed \(seed), at the end")
    try store!.close()
    #expect(try verified())
  }

  private func verified() throws -> Bool {
    let store = try ChangeStore(path: "/store", configuration, platform: platform)
    let report = try store.verify()
    #expect(report.isClean, "seed \(seed): \(report.problems)")
    try store.close()
    return report.isClean
  }

  // MARK: Steps

  private mutating func apply(_ comment: Comment) throws {
    let batch = generator.batch(1 + generator.below([3, 10, 40][generator.below(3)])).map {
      var record = $0
      // Many deletions, since those are what is hard.
      if record.payload.count % 3 == 0 {
        record.type = .delete
        record.payload = Data()
      }
      return record
    }
    let result = try store!.applyAndWait(batch)
    try model.apply(batch, result, date: platform.clock.milliseconds, comment)
    if let position = result.position { kept.append(position) }
  }

  private mutating func compact(_ comment: Comment) throws {
    // Only sealed segments are compacted.
    if generator.below(2) == 0 { try store!.reopen() }
    scheduler.run()
    let pins = try pins()
    let result = try store!.compact()
    scheduler.run()
    try model.compacted(
      shown: try shown(), pins: pins, date: platform.clock.milliseconds, result, comment)
  }

  /// What consumers keep, as they were registered.
  private func pins() throws -> CleanedModel.Pins {
    var pins = CleanedModel.Pins()
    for status in try store!.consumers() {
      let sequence = status.position?.sequence ?? 0
      pins.acknowledged = min(pins.acknowledged, sequence)
      if case .history = status.retention { pins.pinnedAfter = min(pins.pinnedAfter, sequence) }
    }
    return pins
  }

  private mutating func register(_ comment: Comment) throws {
    let name = ["search", "widget", "é"][generator.below(3)]
    let retention: Consumer.Retention = generator.below(2) == 0 ? .latestVersions : .history()
    let start: Consumer.Start =
      switch generator.below(3) {
      case 0: .beginning
      case 1: .end
      default: kept.randomElement(using: &generator.random).map { .position($0) } ?? .end
      }
    do throws(LogStoreError) {
      consumers[name] = try store!.consumer(named: name, retaining: retention, from: start)
    } catch {
      try expectTooOld(error, comment)
    }
  }

  /// A position from before what was purged is refused, and no other.
  private mutating func expectTooOld(_ error: LogStoreError, _ comment: Comment) throws {
    guard error.code == .historyPurged else { throw error }
    #expect(model.counts.purged > 0, comment)
    tooOld += 1
  }

  private mutating func acknowledge(_ comment: Comment) throws {
    guard let name = consumers.keys.sorted().randomElement(using: &generator.random),
      let consumer = consumers[name]
    else { return }
    do throws(LogStoreError) {
      let before = try consumer.position()
      let page = try store!.commits(after: before, limit: 1 + generator.below(20))
      guard let next = page.next else { return }
      try consumer.acknowledge(next)
      #expect(try consumer.position()?.sequence == next.sequence, comment)
      // Backwards it does not go.
      if let before {
        try consumer.acknowledge(before)
        #expect(try consumer.position()?.sequence == next.sequence, comment)
      }
    } catch {
      try expectTooOld(error, comment)
    }
  }

  private mutating func reset(_ comment: Comment) throws {
    guard let name = consumers.keys.sorted().randomElement(using: &generator.random) else { return }
    do throws(LogStoreError) {
      try consumers[name]!.reset(
        to: generator.below(3) == 0 ? nil : kept.randomElement(using: &generator.random))
    } catch {
      try expectTooOld(error, comment)
    }
  }

  private mutating func retire(_ comment: Comment) throws {
    guard let name = consumers.keys.sorted().randomElement(using: &generator.random) else { return }
    try consumers.removeValue(forKey: name)!.retire()
  }

  private mutating func move(_ comment: Comment) throws {
    switch generator.below(4) {
    case 0:
      try store!.suspend()
      try store!.resume()
      return
    case 1:
      try store!.reopen()
      return
    case 2: try store!.close()
    default: break
    }
    let names = consumers.mapValues { _ in () }
    consumers = [:]
    store = nil
    store = try ChangeStore(path: "/store", configuration, platform: platform, scheduler: scheduler)
    let statuses = try store!.consumers()
    #expect(Set(statuses.map(\.name)) == Set(names.keys), comment)
    for status in statuses {
      consumers[status.name] = try store!.consumer(
        named: status.name, retaining: status.retention)
    }
  }

  /// Somebody who was up to date at some commit reads on from there, and is up to date again.
  private mutating func follow(_ comment: Comment) throws {
    guard let start = kept.randomElement(using: &generator.random) else { return }
    var follower = model.state(asOf: start.sequence)
    var position: Position? = start
    do throws(LogStoreError) {
      while true {
        let page = try store!.commits(after: position, limit: 1 + generator.below(30))
        for commit in page.commits {
          for change in commit.changes { follower.take(try change.record()) }
        }
        position = page.next
        if page.isLast { break }
      }
      // What was brought back on purpose may be older than a deletion that the follower knows.
      if configuration.resurrections == .refuse || model.counts.resurrections == 0 {
        #expect(follower.live == model.newest.live, comment)
      }
    } catch {
      try expectTooOld(error, comment)
      #expect(model.greatestPurgedSequence > start.sequence, comment)
    }
  }

  // MARK: Checks

  /// The history as it is shown: sequences and records in order.
  private func shown() throws -> [CleanedModel.Shown] {
    try store!.history().flatMap { entry in
      entry.records.map { CleanedModel.Shown(sequence: entry.position.sequence, record: $0) }
    }
  }

  private func expectNothingChanged(_ comment: Comment) throws {
    #expect(try shown() == model.log.map(\.shown), comment)
    let feed = try store!.changes(limit: .max, byteLimit: .max).records
    #expect(Set(feed) == Set(model.newest.records.values), comment)
    #expect(feed.count == model.newest.records.count, comment)
    #expect(try store!.latestTimestamp == model.latest, comment)
  }
}

/// The log of a store that is cleaned, in the plainest form.
struct CleanedModel {
  struct Shown: Hashable {
    var sequence: UInt64
    var record: ChangeRecord
  }

  struct Logged {
    var shown: Shown
    var date: Int64
  }

  /// What consumers keep.
  struct Pins {
    var pinnedAfter = UInt64.max
    var acknowledged = UInt64.max
  }

  /// The newest version of each record.
  struct State {
    var records: [RecordKey: ChangeRecord] = [:]

    func isNewer(_ record: ChangeRecord) -> Bool {
      records[record.key].map {
        HlcComparator.compare(record.hlcTimestamp, $0.hlcTimestamp) > 0
      } ?? true
    }

    mutating func take(_ record: ChangeRecord) {
      if isNewer(record) { records[record.key] = record }
    }

    /// Without deletions.
    var live: [RecordKey: ChangeRecord] { records.filter { $0.value.type != .delete } }
  }

  private let configuration: Configuration
  /// What is there, in order.
  private(set) var log: [Logged] = []
  /// All that ever was.
  private var everything: [Logged] = []
  private(set) var newest = State()
  private(set) var latest: String?
  private(set) var counts = (dropped: 0, purged: 0, resurrections: 0)
  private var greatestPurged: String?
  private(set) var greatestPurgedSequence: UInt64 = 0

  init(_ configuration: Configuration) { self.configuration = configuration }

  mutating func apply(
    _ batch: [ChangeRecord], _ result: ApplyResult, date: Int64, _ comment: Comment
  ) throws {
    var winners: [ChangeRecord?] = []
    var places: [RecordKey: Int] = [:]
    var resurrections = 0
    for record in batch {
      guard newest.isNewer(record) else { continue }
      if newest.records[record.key] == nil, let greatestPurged,
        HlcComparator.compare(record.hlcTimestamp, greatestPurged) <= 0
      {
        resurrections += 1
        if configuration.resurrections == .refuse { continue }
      }
      newest.take(record)
      if let earlier = places[record.key] { winners[earlier] = nil }
      places[record.key] = winners.count
      winners.append(record)
    }
    let records = winners.compactMap(\.self)
    #expect(result.accepted == records.count, comment)
    #expect(result.superseded == batch.count - records.count, comment)
    #expect(result.possibleResurrections == resurrections, comment)
    #expect((result.position == nil) == records.isEmpty, comment)
    counts.resurrections += resurrections
    guard let position = result.position else { return }
    let date = max(date, everything.last?.date ?? .min)
    for record in records {
      let logged = Logged(
        shown: Shown(sequence: position.sequence, record: record), date: date)
      log.append(logged)
      everything.append(logged)
      if latest.map({ HlcComparator.compare(record.hlcTimestamp, $0) > 0 }) ?? true {
        latest = record.hlcTimestamp
      }
    }
  }

  /// What a compaction has left, and whether it might leave out the rest.
  mutating func compacted(
    shown: [Shown], pins: Pins, date now: Int64, _ result: CompactionResult, _ comment: Comment
  ) throws {
    let left = Set(shown)
    let present = Set(log.map(\.shown))
    #expect(left.isSubset(of: present), "\(comment): something came back")
    var dropped = 0
    var purged = 0
    for logged in log where !left.contains(logged.shown) {
      let isKept =
        logged.shown.sequence > pins.pinnedAfter
        || configuration.historyRetention > .zero
          && logged.date >= now - configuration.historyRetention.inMilliseconds
      #expect(!isKept, "\(comment): commit \(logged.shown.sequence) was to be kept")
      if newest.records[logged.shown.record.key] != logged.shown.record {
        dropped += 1
        continue
      }
      // The newest version goes only if it is a deletion that everybody knows.
      purged += 1
      #expect(logged.shown.record.type == .delete, "\(comment): a newest version is lost")
      let age = try #require(configuration.tombstoneRetention, comment)
      #expect(logged.date < now - age.inMilliseconds, comment)
      #expect(logged.shown.sequence <= pins.acknowledged, comment)
      let isHeld = shown.contains { $0.record.key == logged.shown.record.key }
      #expect(!isHeld, "\(comment): an older version outlives its deletion")
      newest.records[logged.shown.record.key] = nil
      greatestPurgedSequence = max(greatestPurgedSequence, logged.shown.sequence)
      if greatestPurged.map({
        HlcComparator.compare(logged.shown.record.hlcTimestamp, $0) > 0
      }) ?? true {
        greatestPurged = logged.shown.record.hlcTimestamp
      }
    }
    #expect(result.recordsDropped + result.tombstonesPurged == UInt64(dropped + purged), comment)
    counts.dropped += dropped
    counts.purged += purged
    log.removeAll { !left.contains($0.shown) }
  }

  /// What somebody had seen who was up to date at a commit.
  func state(asOf sequence: UInt64) -> State {
    var state = State()
    for logged in everything where logged.shown.sequence <= sequence {
      state.take(logged.shown.record)
    }
    return state
  }
}

extension ChangeRecord {
  fileprivate var key: RecordKey { RecordKey(collection: collection, id: id) }
}

extension Duration {
  fileprivate var inMilliseconds: Int64 {
    components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000
  }
}
