import Foundation

/// All engines under all workloads, round by round.
struct Comparison {
  private let options: Options
  private let folder: WorkFolder
  private let engines: [EngineKind]
  private let inputs: [Workload: String]

  init(_ options: Options) throws {
    self.options = options
    folder = try WorkFolder(options.work, syncs: !options.isQuick)
    engines = options.engines.filter { engine in
      if engine.type == nil { Self.say("skipped: \(engine.title), which this build has not") }
      return engine.type != nil
    }
    var inputs: [Workload: String] = [:]
    if FileManager.default.isReadableFile(atPath: options.stream) {
      inputs[.stream] = options.stream
    } else if options.workloads.contains(.stream) {
      Self.say("skipped: stream; there is no \(options.stream)")
    }
    if (try? ChildOutput.of(["git", "-C", options.repository, "rev-parse", "HEAD"])) != nil {
      inputs[.git] = options.repository
    } else if options.workloads.contains(.git) {
      Self.say("skipped: git; \(options.repository) is no repository with a commit")
    }
    self.inputs = inputs
  }

  func run() throws {
    var results = Results(options, engines: engines)
    results.start()
    let bases = try fillBases()
    let workloads = options.workloads.filter { workload in
      ![.stream, .git].contains(workload) || inputs[workload] != nil
    }
    var expected: [Workload: Digest] = [:]
    for workload in workloads where !workload.isRaw {
      expected[workload] = try reference(workload)
    }
    // A quick run has no round to warm up; nor does it matter there that counting takes time.
    for round in (options.isQuick ? 1 : 0)...options.rounds {
      for workload in workloads {
        for engine in participants(workload, round) {
          let measurement = try measure(workload, engine, bases, isWarmUp: round == 0)
          if let digest = expected[workload] { try check(measurement, digest) }
          results.add(measurement, isWarmUp: round == 0)
        }
        Self.say(
          "round \(round) of \(options.rounds), \(workload.rawValue): "
            + results.line(workload, isWarmUp: round == 0))
      }
    }
    results.finish()
    try Report(results).write(to: options.output)
  }

  /// Rotated, so that none always comes first.
  private func participants(_ workload: Workload, _ round: Int) -> [EngineKind?] {
    if workload.isRaw { return [nil] }
    if workload.isOwn { return engines.contains(.airdb) ? [.airdb] : [] }
    guard !engines.isEmpty else { return [] }
    let first = round % engines.count
    return Array(engines[first...] + engines[..<first])
  }

  private func fillBases() throws -> [Base: String] {
    var bases: [Base: String] = [:]
    for fill in Set(options.workloads.compactMap(\.base)).sorted(by: { $0.rawValue < $1.rawValue })
    {
      let digest = try reference(fill)
      for engine in engines {
        let directory = try folder.directory("\(fill.rawValue)-\(engine.rawValue)")
        let measurement = try folder.run(task(fill, engine, directory))
        try check(measurement, digest)
        bases[Base(fill: fill, engine: engine)] = directory
      }
    }
    return bases
  }

  private struct Base: Hashable {
    var fill: Workload
    var engine: EngineKind
  }

  private func measure(
    _ workload: Workload, _ engine: EngineKind?, _ bases: [Base: String], isWarmUp: Bool
  ) throws -> Measurement {
    let base = engine.flatMap { engine in
      workload.base.flatMap { bases[Base(fill: $0, engine: engine)] }
    }
    let directory: String
    if let base, !workload.changesBase {
      directory = base
    } else {
      directory = try folder.directory("work", copyOf: base)
    }
    defer { if directory != base { folder.remove(directory) } }
    var task = task(workload, engine, directory)
    task.countsAllocations = isWarmUp || options.isQuick
    return try folder.run(task)
  }

  private func task(_ workload: Workload, _ engine: EngineKind?, _ directory: String) -> Case {
    Case(
      workload: workload, engine: engine, directory: directory, records: options.records,
      order: options.order, payloadBytes: options.payloadBytes, input: inputs[workload])
  }

  /// What the store must hold, or what must have been read: by the dictionary.
  private func reference(_ workload: Workload) throws -> Digest? {
    // These are checked where they read.
    if workload == .tail || workload == .reopen { return nil }
    return try folder.run(task(workload, .reference, folder.directory("reference"))).digest
  }

  private func check(_ measurement: Measurement, _ expected: Digest?) throws {
    guard let expected else { return }
    guard measurement.digest == expected else {
      throw BenchmarkError(
        "\(measurement.engine?.title ?? "") holds other records than it should after "
          + "\(measurement.workload.rawValue): \(String(describing: measurement.digest)), "
          + "not \(expected)")
    }
  }

  static func say(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }
}
