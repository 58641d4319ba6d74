#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation

  extension Command {
    /// The process that the demo kills. It writes to one store what it reads in another, and prints
    /// after each batch that the store has acknowledged how many changes it has.
    static let killedWriter = Command(
      name: "write-until-killed", operands: "STORE SOURCE", operandCount: 2...2,
      summary: "Part of the demo."
    ) { arguments, _ in
      var reading = Configuration()
      reading.isReadOnly = true
      let source = try ChangeStore(at: arguments.operands[1], configuration: reading)
      let store = try ChangeStore(at: arguments.operands[0])
      var script = try WriterScript(
        source, after: WriterScript.changes(latest: store.latestTimestamp))
      // Without its reader it has no purpose.
      while !Output.standard.isClosed, let batch = try script.nextBatch() {
        try store.applyAndWait(batch)
        try Output.standard.printLine("\(script.changes)")
      }
    }
  }

  /// Kills a process that writes, and looks at what is there afterwards.
  struct KillTrial {
    let executable: URL
    let store: String
    let source: ChangeStore
    let sourcePath: String
    let interruption: Interruption

    struct Result {
      var acknowledged = 0
      var found = 0
      var discardedBytes: UInt64 = 0
      var recovery = Duration.zero
    }

    /// Kills a writer after at least so many acknowledgements.
    func run(after count: Int) throws -> Result {
      var result = Result()
      result.acknowledged = try writeAndKill(after: count)
      let discarded = Discarded()
      var configuration = Configuration()
      configuration.eventHandler = { discarded.note($0) }
      let start = ContinuousClock.now
      let recovered = try ChangeStore(at: store, configuration: configuration)
      result.recovery = ContinuousClock.now - start
      result.discardedBytes = discarded.bytes
      result.found = WriterScript.changes(latest: try recovered.latestTimestamp)
      var differences = Differences()
      if result.found < result.acknowledged {
        differences.add(
          "\(result.acknowledged) changes were acknowledged, \(result.found) are there")
      }
      try WriterScript.check(recovered, against: source, after: result.found, &differences)
      for problem in try recovered.verify().problems {
        differences.add("\(problem.file): \(problem.reason)")
      }
      try recovered.close()
      try differences.check("The store differs from what was acknowledged before the kill")
      return result
    }

    private func writeAndKill(after count: Int) throws -> Int {
      let process = try ChildProcess(
        executable, [Command.killedWriter.name, "--", store, sourcePath],
        environment: ProcessInfo.processInfo.environment, errors: .standardError, interruption)
      defer { process.stop() }
      var acknowledged = 0
      var lines = 0
      // Whole lines only: what is cut short was not acknowledged.
      while let line = try? process.output.bytes(until: 0x0A) {
        acknowledged = Int(String(decoding: line, as: UTF8.self)) ?? acknowledged
        lines += 1
        if lines == count { process.kill(SIGKILL) }
      }
      let status = process.finish()
      try interruption.check()
      guard status == -SIGKILL, lines >= count else {
        throw ToolError(.notFound, "The writer ended by itself with status \(status).")
      }
      return acknowledged
    }
  }

  /// `@unchecked Sendable`: the variable is only touched under the lock.
  private final class Discarded: @unchecked Sendable {
    private let lock = NSLock()
    private var count: UInt64 = 0

    var bytes: UInt64 { lock.withLock { count } }

    func note(_ event: StoreEvent) {
      if case .recovered(let bytes, _, _) = event { lock.withLock { count = bytes } }
    }
  }
#endif
