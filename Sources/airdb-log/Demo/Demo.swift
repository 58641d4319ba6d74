#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation

  /// The demo, step by step. Each step prints its line when it is done.
  @MainActor
  struct Demo {
    private let repository: Repository
    private let directory: WorkDirectory
    private let interruption: Interruption
    private let limit: Int?

    private static let kills = 3
    /// A writer is killed after one of these numbers of commits, by chance.
    private static let commitsBeforeKill = 20...200

    /// Does what the command says; after a signal, ends by it when all is cleaned up, so that a
    /// shell sees it.
    static func run(_ arguments: Arguments, _ command: Command) async throws {
      do {
        try await runInWorkDirectory(arguments, command)
      } catch let interruption as Interrupted {
        Interruption.end(by: interruption.signal)
      }
    }

    private static func runInWorkDirectory(
      _ arguments: Arguments, _ command: Command
    ) async throws {
      let limit = try arguments.count("--limit", of: command)
      guard limit != 0 else { throw command.usageError("The limit must be at least 1.") }
      let interruption = Interruption()
      var directory = try WorkDirectory()
      defer { directory.remove() }
      interruption.watch { [directory] in directory.remove() }
      let repository = try Repository(
        at: arguments.options["--repository"] ?? FileManager.default.currentDirectoryPath,
        errorFile: directory.scratchFile("git-errors"), interruption)
      if let folder = arguments.options["--keep"] { try directory.keepStores(in: folder) }
      let demo = Demo(
        repository: repository, directory: directory, interruption: interruption, limit: limit)
      try await demo.run()
      if let folder = arguments.options["--keep"] {
        try demo.report("Kept", "the stores in \(folder)")
      }
    }

    private func run() async throws {
      try report("Repository", "\(repository.path) at \(repository.head.prefix(12))")
      let path = directory.store("replayed")
      let replay = try replay(to: path)
      let start = ContinuousClock.now
      let store = try ChangeStore(at: path)
      try report("Reopened", "in \(Figures.duration(ContinuousClock.now - start))")
      let live = Int(try store.statistics().liveRecords)
      let files = try TreeComparison(repository: repository, interruption: interruption)
        .run(store, commit: limit == nil ? repository.head : replay.lastCommit)
      try report(
        "Compared",
        "\(Figures.count(files, "file", "files")) of git's tree: all equal; "
          + "and \(Figures.count(live - files, "deletion", "deletions"))")
      try await synchronize(store, live)
      try kill(store, path)
      try verify(store)
      try store.close()
    }

    private func report(_ label: String, _ text: String) throws {
      let space = String(repeating: " ", count: max(1, 12 - label.count))
      try Output.standard.printLine("\(label)\(space)\(text)")
    }

    // MARK: Steps

    private func replay(to path: String) throws -> Replay.Result {
      // A history is loaded in bulk: one sync at its end serves as well as one a commit. The writers
      // that are killed sync each commit.
      var configuration = Configuration()
      configuration.durability = .processCrash
      let store = try ChangeStore(at: path, configuration: configuration)
      let result = try Replay(repository: repository, interruption: interruption, limit: limit)
        .run(into: store)
      let start = ContinuousClock.now
      try store.flush(to: .powerLoss)
      let flush = ContinuousClock.now - start
      try store.close()
      let files = try StoreFiles(at: path)
      try report(
        "Replayed",
        "\(Figures.count(result.commits, "commit", "commits")), "
          + "\(Figures.count(result.records, "record", "records")) in "
          + "\(Figures.duration(result.duration)), "
          + "\(Figures.duration(result.storeDuration)) of it in the store: "
          + "\(Figures.rate(result.records, in: result.storeDuration)) records/s")
      try report(
        "Durable",
        "each commit against a crash of the process, all against a loss of power after a sync of "
          + Figures.duration(flush))
      try report(
        "Bytes",
        "payloads \(Figures.bytes(result.payloadBytes)); the log, with LZ4, "
          + "\(Figures.bytes(files[.segments])); on disk \(Figures.bytes(files.total))")
      if result.standIns > 0 {
        try report(
          "Note",
          "\(Figures.count(result.standIns, "content", "contents")) replaced by the id: not in this "
            + "clone, or larger than 256 MiB")
      }
      return result
    }

    private func synchronize(_ store: ChangeStore, _ live: Int) async throws {
      let target = try ChangeStore(at: directory.store("synced"))
      let synchronization = Synchronization(interruption: interruption)
      let result = try await synchronization.run(from: store, to: target, expected: live)
      try synchronization.compare(store, target)
      try target.close()
      try report(
        "Synced",
        "\(Figures.count(result.records, "record", "records")) in "
          + "\(Figures.count(result.pages, "page", "pages")), "
          + "\(Figures.duration(result.duration)): all equal")
    }

    private func kill(_ store: ChangeStore, _ path: String) throws {
      guard try store.statistics().liveRecords > 0 else { return }
      guard let executable = Bundle.main.executableURL else {
        throw ToolError(.notFound, "The tool does not find its own executable.")
      }
      let trial = KillTrial(
        executable: executable, store: directory.store("killed"), source: store, sourcePath: path,
        interruption: interruption)
      var lines: [String] = []
      let progress = Progress("Killing a writer")
      for round in 0..<Self.kills {
        progress.show(Double(round) / Double(Self.kills))
        let result = try trial.run(after: Int.random(in: Self.commitsBeforeKill))
        lines.append(
          "\(Figures.count(result.acknowledged)) changes acknowledged, "
            + "\(Figures.count(result.found)) there; recovered in "
            + Figures.duration(result.recovery))
      }
      progress.finish()
      for line in lines { try report("Killed", line) }
    }

    private func verify(_ store: ChangeStore) throws {
      let progress = Progress("Verifying")
      let start = ContinuousClock.now
      let verification = try store.verify { progress.show($0) }
      let duration = ContinuousClock.now - start
      progress.finish()
      var differences = Differences()
      for problem in verification.problems {
        differences.add("\(problem.file): \(problem.reason)")
      }
      try differences.check("The check found damage")
      try interruption.check()
      try report(
        "Verified",
        "\(Figures.bytes(verification.checkedBytes)) in \(Figures.duration(duration)): no damage")
    }
  }
#endif
