/// What is measured. The order is that of the report.
enum Workload: String, Codable, CaseIterable {
  case rawPreallocated = "raw-preallocated"
  case rawGrowing = "raw-growing"
  case bulk
  case commitsFull = "commits-full"
  case commitsFullAsync = "commits-full-async"
  case groupThreads = "group-threads"
  case groupTasks = "group-tasks"
  case commitsNormal = "commits-normal"
  case stallsFull = "stalls-full"
  case stallsNormal = "stalls-normal"
  case stallsBatches = "stalls-batches"
  case stallsCleaning = "stalls-cleaning"
  case update
  case redelivery
  case sweep
  case sweepRandom = "sweep-random"
  case tail
  case latest
  case merge
  case reopen
  case reads
  case stream
  case git
  /// Not measured: fill the stores that others read.
  case fill
  case fillRandom = "fill-random"

  /// Those of the targets. The streams of real changes are run where they are.
  static let standard = allCases.filter { !$0.isPreparation }

  var isPreparation: Bool { self == .fill || self == .fillRandom }

  /// Without an engine.
  var isRaw: Bool { self == .rawPreallocated || self == .rawGrowing }

  /// Not for peers: ways to call this engine, or what only it promises.
  var isOwn: Bool {
    switch self {
    case .commitsFullAsync, .groupThreads, .groupTasks: true
    case .stallsFull, .stallsNormal, .stallsBatches, .stallsCleaning: true
    default: false
    }
  }

  /// Whether it is about the times of single commits, while segments are sealed and cleaned.
  var isAboutStalls: Bool {
    switch self {
    case .stallsFull, .stallsNormal, .stallsBatches, .stallsCleaning: true
    default: false
    }
  }

  var level: Level {
    switch self {
    case .commitsFull, .commitsFullAsync, .groupThreads, .groupTasks, .stallsFull: .full
    default: .normal
    }
  }

  /// The store that it reads or, in a copy, changes.
  var base: Workload? {
    switch self {
    case .update, .redelivery, .sweep, .tail, .latest, .reopen, .reads: .fill
    case .sweepRandom: .fillRandom
    default: nil
    }
  }

  /// Whether it changes that store.
  var changesBase: Bool { self == .update }

  /// Whether less is better: times instead of rates.
  var isTime: Bool { self == .reopen }

  var unit: String {
    switch self {
    case .rawPreallocated, .rawGrowing: "syncs/s"
    case .commitsFull, .commitsFullAsync, .groupThreads, .groupTasks, .commitsNormal: "commits/s"
    case .stallsFull, .stallsNormal, .stallsCleaning: "commits/s"
    case .tail: "polls/s"
    case .latest, .reads: "reads/s"
    case .reopen: "ms"
    default: "records/s"
    }
  }

  var title: String {
    switch self {
    case .rawPreallocated: "raw: append 512 B + sync, preallocated file"
    case .rawGrowing: "raw: append 512 B + sync, growing file"
    case .bulk: "bulk: batches of 1,000 new records, normal"
    case .commitsFull: "single-record commits, full, one writer"
    case .commitsFullAsync: "the same through the asynchronous call"
    case .groupThreads: "the same, 16 writing threads"
    case .groupTasks: "the same, 16 writing tasks"
    case .commitsNormal: "single-record commits, normal"
    case .stallsFull: "stalls: single commits of 4 KiB, full, while segments are sealed"
    case .stallsNormal: "stalls: single commits, normal, while segments are sealed"
    case .stallsBatches: "stalls: batches of 100, normal, while segments are sealed"
    case .stallsCleaning: "stalls: single updates, normal, while segments are sealed and cleaned"
    case .update: "update: batches of 100, half existing keys"
    case .redelivery: "redelivery of stale batches of 500"
    case .sweep: "full sweep, pages of 500"
    case .sweepRandom: "full sweep, filled in random HLC order"
    case .tail: "tail polls of 100 records"
    case .latest: "latest HLC"
    case .merge: "skewed merge: 8 nodes, 10 minutes, batches of 200"
    case .reopen: "reopen after a clean close, and first reads"
    case .reads: "random point reads, warm"
    case .stream: "a recorded stream of changes, in its batches"
    case .git: "a git history, a batch a commit"
    case .fill, .fillRandom: "fill"
    }
  }
}
