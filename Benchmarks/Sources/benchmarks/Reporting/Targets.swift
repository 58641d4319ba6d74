/// What the engine is to reach, as ratios within one run, and whether it does.
struct Target {
  /// What is compared, as a line of the report.
  var title: String
  /// The ratio that was measured, its least and greatest over the rounds, and what to.
  var ratio: Double
  var range: ClosedRange<Double>
  var basis: String
  var wanted: Double
  /// Whether the ratio is to be at most what is wanted.
  var isCeiling = false

  var isMet: Bool { isCeiling ? ratio <= wanted : ratio >= wanted }
}

extension Target {
  /// Rates at least so many times those of the best peer.
  private static let ofBestPeer: [(Workload, Double)] = [
    (.bulk, 2.7), (.commitsFull, 1.8), (.commitsNormal, 1.8), (.update, 2.8), (.redelivery, 2.4),
    (.sweep, 2.0), (.sweepRandom, 1.0), (.tail, 1.5), (.latest, 2.0), (.merge, 4.0), (.reads, 1.0),
  ]

  static func rateOfBestPeer(_ workload: Workload) -> Double? {
    ofBestPeer.first { $0.0 == workload }?.1
  }

  static func all(_ results: Results) -> [Target] {
    var targets: [Target] = []
    for (workload, wanted) in ofBestPeer {
      guard let best = results.bestPeer(workload) else { continue }
      targets += results.compare(
        workload, .airdb, workload, best, basis: best.title, wanted: wanted)
    }
    targets += results.compare(
      .commitsFull, .airdb, .rawPreallocated, nil, basis: "raw, preallocated", wanted: 0.85)
    for group in [Workload.groupThreads, .groupTasks] {
      targets += results.compare(
        group, .airdb, .commitsFull, .airdb, basis: "one writer", wanted: 8)
    }
    targets += results.compare(
      .reopen, .airdb, .reopen, .lmdb, basis: "LMDB", wanted: 1, isCeiling: true)
    return targets + results.absolute()
  }
}

extension Results {
  func bestPeer(_ workload: Workload) -> EngineKind? {
    let known = peers.filter { value(workload, $0) != nil }
    return known.max { value(workload, $0)! < value(workload, $1)! }
  }

  /// The median of the ratios of the rounds: what disturbs a round disturbs both.
  fileprivate func compare(
    _ workload: Workload, _ engine: EngineKind?, _ other: Workload, _ basis: EngineKind?,
    basis name: String, wanted: Double, isCeiling: Bool = false
  ) -> [Target] {
    let pairs = zip(measurements(workload, engine), measurements(other, basis))
    let ratios = pairs.map { $0.value / $1.value }
    return target(
      workload.title, ratios, name, wanted, isCeiling: isCeiling)
  }

  private func target(
    _ title: String, _ ratios: [Double], _ basis: String, _ wanted: Double, isCeiling: Bool
  ) -> [Target] {
    guard let ratio = benchmarks.median(ratios), let least = ratios.min(),
      let greatest = ratios.max()
    else { return [] }
    return [
      Target(
        title: title, ratio: ratio, range: least...greatest, basis: basis, wanted: wanted,
        isCeiling: isCeiling)
    ]
  }

  /// Those that are no ratio of rates.
  fileprivate func absolute() -> [Target] {
    var targets: [Target] = []
    let sync = measurements(.commitsFull, .airdb)
    let async = measurements(.commitsFullAsync, .airdb)
    targets += target(
      "asynchronous commit: microseconds more than the synchronous one",
      zip(async, sync).map {
        ($0.seconds / Double($0.operations) - $1.seconds / Double($1.operations)) * 1e6
      },
      "one writer, synchronous", 25, isCeiling: true)
    for workload in workloads where measurements(workload, .airdb).contains(where: \.isTimed) {
      // Five times the median, and one sync.
      let syncTime = median(.rawPreallocated, nil) { $0.latency?.p99 } ?? 0
      for (name, quantity) in [
        ("p99", { (latency: Latency) in latency.p99 }), ("maximum", { $0.maximum }),
      ] {
        targets += target(
          "\(workload.title): \(name) of a commit",
          measurements(workload, .airdb).compactMap { measurement in
            measurement.latency.map { max(0, quantity($0) - syncTime) / $0.p50 }
          }, "its p50, less one sync", 5, isCeiling: true)
      }
    }
    let smallest = peers.compactMap { disk($0) }.min()
    if let smallest, let own = disk(.airdb),
      let engine = peers.first(where: { disk($0) == smallest })
    {
      targets += target(
        "bytes on disk after updates, idle", [own / smallest], engine.title, 0.9, isCeiling: true)
    }
    if let memory = peakMemory(.airdb) {
      targets += target(
        "peak anonymous memory of all workloads, MB", [memory / 1e6], "nothing", 64,
        isCeiling: true)
    }
    return targets
  }

  /// Of the store that was updated and left alone.
  func disk(_ engine: EngineKind) -> Double? {
    median(.update, engine) { $0.diskBytes.map { Double($0) } }
  }

  /// The most of all workloads whose input is made up.
  func peakMemory(_ engine: EngineKind) -> Double? {
    workloads.filter { !$0.isRaw && $0 != .stream && $0 != .git }
      .compactMap { median($0, engine) { Double($0.peakAnonymousBytes) } }.max()
  }
}
