import AirDbLogStore
import Foundation

/// How fast a compaction goes, and how much slower commits and reads are beside it.
struct CleanerPace {
  private let options: Options
  private let folder: WorkFolder

  init(_ options: Options, _ folder: WorkFolder) {
    self.options = options
    self.folder = folder
  }

  func report() throws -> String {
    let alone = try compact(besides: false)
    let beside = try compact(besides: true)
    func part(_ kind: KeyPath<Rates, Double>) -> String {
      Figures.fixed(beside.during[keyPath: kind] / max(beside.before[keyPath: kind], 1e-9), 2)
    }
    return """
      A compaction on demand, without a limit, of \(Figures.megabytes(alone.bytes)) MB, half of it \
      superseded: \(Figures.short(alone.bytes / alone.seconds / 1e6)) MB/s alone, \
      \(Figures.short(beside.bytes / beside.seconds / 1e6)) MB/s while one thread commits and reads in \
      turn. That thread has meanwhile \(part(\.commits)) of its rate of single commits and \
      \(part(\.reads)) of its rate of random reads \
      (\(Figures.short(beside.before.commits)) and \(Figures.short(beside.before.reads)) a second \
      without the compaction).
      """
  }

  /// Operations a second.
  private struct Rates {
    var commits = 0.0
    var reads = 0.0
  }

  private struct Run {
    var bytes = 0.0
    var seconds = 0.0
    var before = Rates()
    var during = Rates()
  }

  private func compact(besides: Bool) throws -> Run {
    let path = try folder.directory("pace")
    defer { folder.remove(path) }
    var configuration = Configuration()
    configuration.durability = .processCrash
    configuration.cleaning = .off
    let store = try ChangeStore(at: path, configuration: configuration)
    var maker = ChangeMaker(.uniform)
    let count = 5 * options.records
    for start in stride(from: 0, to: count, by: 100) {
      try store.applyAndWait(
        (start..<(start + 100)).map { 2 * $0 < count ? maker.insert() : maker.change() })
    }
    var run = Run()
    var other = Foreground(store, keys: count / 2)
    if besides {
      for _ in 0..<40 { try other.turn() }
      run.before = other.takeRates()
    }
    let isOver = Flag()
    let result = Flag.Box()
    let start = ContinuousClock.now
    Thread.detachNewThread {
      result.value = Result { try store.compact() }
      isOver.raise()
    }
    while !isOver.isRaised {
      if besides { try other.turn() } else { Thread.sleep(forTimeInterval: 0.001) }
    }
    run.seconds = (ContinuousClock.now - start).seconds
    run.during = other.takeRates()
    run.bytes = Double(try result.value?.get().bytesBefore ?? 0)
    try store.close()
    return run
  }

  /// Commits and reads for a while each, in turn.
  private struct Foreground {
    private let store: ChangeStore
    private let keys: Int
    private let source = RecordSource(seed: 11)
    private var random = SeededGenerator(13)
    private var next = 0
    private var commits = (count: 0, seconds: 0.0)
    private var reads = (count: 0, seconds: 0.0)

    init(_ store: ChangeStore, keys: Int) {
      self.store = store
      self.keys = keys
    }

    mutating func turn() throws {
      try Self.forAWhile(&commits) {
        next += 1
        try store.applyAndWait([
          source.record(key: 1_000_000_000 + next, version: 0, position: 2_000_000_000 + next)
        ])
      }
      try Self.forAWhile(&reads) {
        let (collection, id) = source.key(random.number(below: keys))
        guard try store.record(forKey: RecordKey(collection: collection, id: id)) != nil else {
          throw BenchmarkError("A record is missing beside a compaction.")
        }
      }
    }

    private static func forAWhile(
      _ sum: inout (count: Int, seconds: Double), _ body: () throws -> Void
    ) rethrows {
      let start = ContinuousClock.now
      var time = Duration.zero
      while time < .milliseconds(25) {
        try body()
        sum.count += 1
        time = ContinuousClock.now - start
      }
      sum.seconds += time.seconds
    }

    mutating func takeRates() -> Rates {
      defer { (commits, reads) = ((0, 0), (0, 0)) }
      return Rates(
        commits: Double(commits.count) / max(commits.seconds, 1e-9),
        reads: Double(reads.count) / max(reads.seconds, 1e-9))
    }
  }

  /// What another thread says.
  private final class Flag: @unchecked Sendable {
    /// `@unchecked Sendable`: written before the flag is raised, read after.
    final class Box: @unchecked Sendable {
      var value: Result<CompactionResult, any Error>?
    }

    // `@unchecked Sendable`: the variable is only touched under the lock.
    private let lock = NSLock()
    private var isSet = false

    func raise() { lock.withLock { isSet = true } }
    var isRaised: Bool { lock.withLock { isSet } }
  }
}
