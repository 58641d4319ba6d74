import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// Random lives of a store against a plain model of its history.
@Suite struct HistoryModelTests {
  private static let authors = ["mine", "peer", "", "caf\u{E9}", "cafe\u{301}", "\u{0}"]

  private static let seeds: [UInt64] =
    ProcessInfo.processInfo.environment["AIRDB_LONG_TESTS"] == nil
    ? [1, 2, 3, 4, 5, 6] : Array(1...200)

  @Test(arguments: seeds)
  func `Pages of any size, filter and start together are the history that a model knows`(
    seed: UInt64
  ) throws {
    var life = try Life(seed: seed)
    for _ in 0..<160 { try life.step() }
    try life.check()
    #expect(life.compacted > 0 && life.sealed > 0)
    try life.store.close()
  }

  private struct Life {
    var store: ChangeStore
    var model = HistoryModel()
    var generator: RecordGenerator
    let platform = ClockedPlatform()
    let scheduler = ManualScheduler()
    let configuration: Configuration
    var compacted = 0
    var sealed = 0

    init(seed: UInt64) throws {
      var options = RecordGenerator.Options()
      options.keys = 60
      generator = RecordGenerator(seed: seed, options: options)
      var configuration = Configuration.tiny
      configuration.segmentRecords = [7, 40, 200][Int(seed % 3)]
      configuration.segmentBytes = 64 << 10
      // What is fetched is read from files, and found again without what was cached.
      configuration.cacheBytes = seed % 2 == 0 ? 0 : 64 << 10
      self.configuration = configuration
      store = try ChangeStore(
        path: "/store", configuration, platform: platform, scheduler: scheduler)
    }

    mutating func step() throws {
      switch generator.below(30) {
      case 0..<20:
        platform.clock.advance(by: Int64(generator.below(50) - 20))
        let batch = generator.batch(1 + generator.below(6))
        let author = HistoryModelTests.authors[generator.below(HistoryModelTests.authors.count)]
        let date = platform.clock.milliseconds
        try model.apply(
          batch, author: author, date: date, try store.applyAndWait(batch, author: author))
      case 20..<24: scheduler.run()
      case 24:
        scheduler.run()
        compacted += try store.compact().segments
      case 25: try store.reopen()
      case 26:
        try store.close()
        store = try ChangeStore(
          path: "/store", configuration, platform: platform, scheduler: scheduler)
      default: try check()
      }
    }

    mutating func check() throws {
      sealed = max(sealed, try store.statistics().sealedSegments)
      let whole = try store.history()
      model.expect(whole, mayLack: compacted > 0)
      for _ in 0..<4 {
        let filter = filter()
        // Another limit for each page.
        let bounds = [1, 3, 20][generator.below(3)]
        var random = generator.random
        let shown = try store.history(
          matching: filter, limit: Int.random(in: 1...bounds, using: &random),
          byteLimit: generator.below(2) == 0 ? .max : 2_000)
        generator.random = random
        #expect(shown == whole.filtered(by: filter))
        // From any commit that there was, whether it is still there or not.
        guard let start = model.entries.randomElement(using: &generator.random) else { continue }
        let rest = try store.history(after: start.position, matching: filter, limit: bounds)
        #expect(
          rest
            == whole.filter { $0.position.sequence > start.position.sequence }
            .filtered(by: filter))
        let date = start.date + Int64(generator.below(3) - 1)
        let from = try store.position(before: date)
        #expect(from?.sequence == whole.last { $0.date < date }?.position.sequence)
      }
    }

    private mutating func filter() -> CommitFilter {
      var filter = CommitFilter()
      if generator.below(3) == 0 { filter.authors = some(of: HistoryModelTests.authors) }
      if generator.below(3) == 0 { filter.excludedAuthors = some(of: HistoryModelTests.authors) }
      if generator.below(3) == 0 { filter.collections = some(of: generator.options.collections) }
      return filter
    }

    private mutating func some(of texts: [String]) -> Set<String> {
      var result: Set<String> = []
      for text in texts where generator.below(2) == 0 { result.insert(text) }
      return result
    }
  }

  // MARK: Compaction under a fetch

  @Test func `What was fetched can be read while and after its files are replaced`() throws {
    let platform = MemoryPlatform()
    let scheduler = ManualScheduler()
    var configuration = Configuration.tiny
    configuration.cacheBytes = 0
    let store = try ChangeStore(
      path: "/store", configuration, platform: platform, scheduler: scheduler)
    var model = HistoryModel()
    for index in 0..<60 {
      let batch = [change("\(index % 10)", time(index), payload: "\(index)")]
      try model.apply(batch, author: "", date: 0, try store.applyAndWait(batch))
    }
    // In rows, in a segment that is being sealed, in sealed ones: all kinds at once.
    var pages: [CommitPage] = [try store.commits(limit: .max)]
    scheduler.run()
    pages.append(try store.commits(limit: .max))
    #expect(try store.compact().segments > 0)
    scheduler.run()
    let files = { try platform.list("/store").count { $0.hasSuffix(".segment") } }
    let kept = try files()
    for page in pages {
      let entries = try page.commits.map(HistoryModel.Entry.init)
      #expect(entries.map(\.records) == model.entries.map(\.records))
    }
    // And then they go.
    pages = []
    scheduler.run()
    #expect(try files() < kept)
    model.expect(
      try store.history().map { entry in
        var entry = entry
        entry.date = 0
        return entry
      }, mayLack: true)
    try store.close()
  }

  @Test func `What was fetched can not be read on once the store is another one`() throws {
    let platform = MemoryPlatform()
    let store = try ChangeStore(path: "/store", Configuration(), platform: platform)
    try store.applyAndWait([change("a", time(1))])
    let fetch = { try #require(try store.commits(limit: 1).commits.first?.changes.first) }
    func code(_ change: Change) -> LogStoreError.Code? {
      do throws(LogStoreError) {
        _ = try change.record()
        return nil
      } catch {
        return error.code
      }
    }
    let first = try fetch()
    #expect(code(first) == nil)
    try store.reopen()
    #expect(code(first) == .expired)
    let second = try fetch()
    try store.suspend()
    #expect(code(second) == .expired)
    try store.resume()
    #expect(code(second) == .expired)
    let third = try fetch()
    #expect(code(third) == nil)
    try store.close()
    #expect(code(third) == .closed)
  }
}
