import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// Random scripts, on the store and on the model: the answers must be the same.
///
/// A script is made from its seed alone; a failure prints the seed, and the failing script can be
/// run again by putting its seed alone into the list.
@Suite struct ModelDifferentialTests {
  /// More seeds for a long run.
  private static let seeds: Range<UInt64> =
    ProcessInfo.processInfo.environment["AIRDB_LONG_TESTS"] == nil ? 0..<24 : 0..<2_000

  @Test(arguments: seeds)
  func `A random script gives the model's answers`(seed: UInt64) async throws {
    var script = try Script(seed: seed)
    do {
      try await script.run(steps: 60)
    } catch {
      Issue.record(error, "seed \(seed)")
    }
  }
}

/// One run of random steps.
private struct Script {
  private let seed: UInt64
  private var generator: RecordGenerator
  private var model: ReferenceModel
  private var configuration = Configuration()
  private let platform = MemoryPlatform()
  private let scheduler: (any Scheduler)?
  private var store: ChangeStore?

  init(seed: UInt64) throws {
    self.seed = seed
    var random = SeededGenerator(seed: seed &+ 0x5EED)
    var options = RecordGenerator.Options()
    options.keys = [10, 60, 400, 5_000].randomElement(using: &random)!
    options.nodes = Int.random(in: 1...20, using: &random)
    options.skew = [0, 50, 5_000, 600_000].randomElement(using: &random)!
    options.usesIso8601 = Bool.random(using: &random)
    options.payload = 0...[0, 40, 600].randomElement(using: &random)!
    options.spellsFreely = Bool.random(using: &random)
    options.conflict = [4, 30].randomElement(using: &random)!
    generator = RecordGenerator(seed: seed, options: options)
    configuration.segmentRecords = Int.random(in: 7...200, using: &random)
    configuration.segmentBytes = [2_000, 20_000, 1 << 20].randomElement(using: &random)!
    configuration.blockBytes = [1, 100, 1_000, 8_192].randomElement(using: &random)!
    configuration.cacheBytes = [0, 10_000, 1 << 20].randomElement(using: &random)!
    configuration.replayBytes = [0, 1_000, 1 << 18].randomElement(using: &random)!
    configuration.maximumOpenFiles = Int.random(in: 0...8, using: &random)
    configuration.durability = Bool.random(using: &random) ? .powerLoss : .processCrash
    if Bool.random(using: &random) { configuration.deletionValues = [-1, 2, 3] }
    if !options.usesIso8601, random.next() % 4 == 0 { configuration.timestampFormat = .utf8Order }
    let isPlain = configuration.timestampFormat == .utf8Order
    model = ReferenceModel(format: isPlain ? .utf8Order : .hybrid)
    scheduler = Bool.random(using: &random) ? ManualScheduler() : nil
    store = try ChangeStore(
      path: "/store", configuration, platform: platform, scheduler: scheduler)
  }

  mutating func run(steps: Int) async throws {
    for step in 0..<steps {
      let comment = Comment(rawValue: "seed \(seed), step \(step)")
      switch generator.below(20) {
      case 0..<10: try await apply(comment)
      case 10: try await applyInvalid(comment)
      case 11..<13: try expectRecords(comment)
      case 13..<15: try await expectPage(comment)
      case 15: try await expectSweep(comment)
      case 16: try expectCollection(comment)
      case 17: (scheduler as? ManualScheduler)?.run()
      case 18: try move(comment)
      default: try await expectReader(comment)
      }
    }
    try await expectEqual(store!, model, Comment(rawValue: "seed \(seed), at the end"))
    try store!.close()
    store = try ChangeStore(path: "/store", configuration, platform: platform)
    try await expectEqual(store!, model, Comment(rawValue: "seed \(seed), after the close"))
  }

  // MARK: Steps

  private mutating func apply(_ comment: Comment) async throws {
    let count = generator.below([2, 6, 30, 120][generator.below(4)])
    let batch = generator.batch(count)
    let before = try store!.position
    let result =
      generator.below(2) == 0
      ? try store!.applyAndWait(batch) : try await store!.apply(batch, author: "script")
    let expected = try model.apply(batch)
    #expect(result.outcome == expected, comment)
    #expect((result.position == nil) == (expected.accepted == 0), comment)
    #expect(try store!.position == result.position ?? before, comment)
    #expect(try store!.latestTimestamp == model.latest?.text, comment)
  }

  private mutating func applyInvalid(_ comment: Comment) async throws {
    // At least two: a single record of the other kind of clock is valid in an empty store.
    var batch = generator.batch(2 + generator.below(10))
    let place = generator.below(batch.count)
    switch generator.below(3) {
    case 0: batch[place].hlcTimestamp = model.format == .hybrid ? "nonsense" : ""
    case 1: batch[place].id = String(repeating: "i", count: 65_537)
    default:
      batch[place].hlcTimestamp = generator.options.usesIso8601 ? time(1) : "2024-01-01T00:00:00Z-0"
    }
    var expected: ReferenceModel.Refusal?
    do throws(ReferenceModel.Refusal) {
      try model.apply(batch)
    } catch {
      expected = error
    }
    var found: ReferenceModel.Refusal?
    do {
      try await store!.apply(batch)
    } catch let error as LogStoreError {
      found = ReferenceModel.Refusal(code: error.code, index: error.recordIndex ?? -1)
    }
    #expect(found == expected, comment)
  }

  private mutating func expectRecords(_ comment: Comment) throws {
    for _ in 0..<10 {
      let (collection, id) = generator.key(generator.below(generator.options.keys + 20))
      let record = try store!.record(forKey: RecordKey(collection: collection, id: id))
      #expect(record == model.record(collection, id), comment)
    }
  }

  /// A cursor that may be one of a record, near one, or none.
  private mutating func cursor(_ feed: ReferenceModel.Feed) -> String? {
    switch generator.below(4) {
    case 0: return nil
    case 1: return generator.timestamp()
    default:
      return feed.records.isEmpty
        ? nil : feed.records[generator.below(feed.records.count)].hlcTimestamp
    }
  }

  private mutating func expectPage(_ comment: Comment) async throws {
    let feed = model.feed
    for _ in 0..<4 {
      let cursor = cursor(feed)
      let limit = [0, 1, 2, 7, 50, 1_000, .max, -1][generator.below(8)]
      let page = try await store!.getChangesSince(sinceHlcTimestamp: cursor, limit: limit)
      #expect(page == feed.page(after: cursor, limit: limit), comment)
    }
  }

  private mutating func expectSweep(_ comment: Comment) async throws {
    let feed = model.feed
    let size = 1 + generator.below(80)
    #expect(try await store!.sweep(pageSize: size) == feed.records, comment)
    let bytes = [Int.max, 1, 2_000][generator.below(3)]
    let native = try store!.nativeSweep(pageSize: size, byteLimit: bytes)
    #expect(native == feed.records, comment)
  }

  private mutating func expectCollection(_ comment: Comment) throws {
    let (collection, id) = generator.key(generator.below(generator.options.keys))
    let prefix = String(id.unicodeScalars.prefix(generator.below(4)))
    let after = generator.below(2) == 0 ? nil : id
    let limit = [Int.max, 1, 3, 20][generator.below(4)]
    let found = try store!.records(in: collection, idPrefix: prefix, after: after, limit: limit)
    let expected = model.records(in: collection, idPrefix: prefix, after: after, limit: limit)
    #expect(found == expected, comment)
  }

  /// Closes, suspends, reopens or drops the store.
  private mutating func move(_ comment: Comment) throws {
    // A job of the real scheduler may hold a dropped store for a moment.
    switch generator.below(scheduler is ManualScheduler ? 4 : 3) {
    case 0:
      try store!.close()
      store = nil
    case 1:
      try store!.suspend()
      try store!.resume()
      return
    case 2:
      try store!.reopen()
      return
    default: store = nil
    }
    store = try ChangeStore(path: "/store", configuration, platform: platform, scheduler: scheduler)
    #expect(try store!.latestTimestamp == model.latest?.text, comment)
  }

  /// Opens a reader beside the writer.
  private mutating func expectReader(_ comment: Comment) async throws {
    var configuration = configuration
    configuration.isReadOnly = true
    let reader = try ChangeStore(path: "/store", configuration, platform: platform)
    try await expectEqual(reader, model, pageSize: 40, comment)
  }
}
