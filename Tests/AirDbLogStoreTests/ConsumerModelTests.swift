import AirDbLogStore
import TestSupport
import Testing

/// Random runs with consumers against a dictionary, and against what was promised to those that pin
/// history: with compactions, reopenings, kills and losses of power between.
struct ConsumerModelTests {
  /// A change that is in the log.
  private struct Version: Hashable {
    var sequence: UInt64
    var id: String
  }

  /// One random run.
  private struct Run {
    let run = ConsumerRun(
      ConsumerScript("random", .powerLoss, []), on: SimulatedFileSystem())
    var random: SeededGenerator
    var time = 0
    /// What each consumer of history may still ask for.
    var promised: [String: Set<Version>] = [:]

    init(seed: UInt64) throws {
      random = SeededGenerator(seed: seed)
      try run.perform()
    }

    private var store: ChangeStore { run.run.store! }
    private var state: ConsumerState { run.expected.withLock { $0.state } }
    private var commitCount: Int { run.expected.withLock { $0.positions.count } }

    private mutating func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &random) }

    private func versions(after position: Position?) throws -> Set<Version> {
      let commits = try store.commits(after: position, limit: .max, byteLimit: .max).commits
      return Set(
        commits.flatMap { commit in
          commit.changes.map { Version(sequence: commit.position.sequence, id: $0.key.id) }
        })
    }

    mutating func step() throws {
      let names = state.consumers.keys.sorted()
      switch below(20) {
      case 0..<8: try commit()
      case 8, 9:
        let retention: Consumer.Retention = below(3) > 0 ? .history() : .latestVersions
        try change(
          .register("consumer \(below(6))", retention, below(2) == 0 ? .beginning : .end))
      case 10..<14:
        guard let name = names.randomElement(using: &random), commitCount > 0 else { return }
        try change(.acknowledge(name, 1 + below(commitCount)))
      case 14:
        guard let name = names.randomElement(using: &random) else { return }
        try change(.reset(name, below(commitCount + 1)))
      case 15:
        guard let name = names.randomElement(using: &random), below(3) == 0 else { return }
        try change(.retire(name))
      case 16: try run.perform(.compact)
      case 17:
        try run.perform(.step(.close))
        try run.perform(.step(.open(.powerLoss)))
      case 18:
        try run.perform(.step(.leave))
        try run.perform(.step(.open(.powerLoss)))
      default:
        try run.perform(.step(.losePower(.subset(seed: random.next()), .old)))
        try run.perform(.step(.open(.powerLoss)))
      }
      if below(3) == 0 { try run.perform(.pump) }
      try check()
    }

    private mutating func commit() throws {
      time += 1
      let ids = String("abcdefgh".shuffled(using: &random).prefix(1 + below(3)))
      try run.perform(.update(ids, time * 10, below(200)))
      let sequence = try store.position!.sequence
      for name in promised.keys {
        promised[name]?.formUnion(ids.map { Version(sequence: sequence, id: "\($0)") })
      }
    }

    /// A change of a consumer, and what it is promised by it.
    private mutating func change(_ step: ConsumerScript.Step) throws {
      let before = state
      try run.perform(step)
      for (name, one) in state.consumers where before.consumers[name] != one {
        let wasPinning = before.consumers[name].map { $0.retention != .latestVersions } ?? false
        let isMoved = before.consumers[name]?.resets != one.resets
        if one.retention == .latestVersions {
          promised[name] = nil
        } else if !wasPinning || isMoved {
          promised[name] = try versions(after: store.consumer(named: name, one).position())
        }
      }
      for name in promised.keys where state.consumers[name] == nil { promised[name] = nil }
    }

    private func check() throws {
      let found = try ConsumerState(store)
      try expect(found == state, "there is \(found), not \(state)")
      for (name, one) in state.consumers {
        guard let promised = promised[name] else { continue }
        let there = try versions(after: store.consumer(named: name, one).position())
        let missing = promised.filter { $0.sequence > one.sequence }.subtracting(there)
        try expect(missing.isEmpty, "\(name) has not seen \(missing.count) versions that are gone")
      }
    }

    func finish() throws {
      try EngineOracle(store).check(
        run.run.trace.withLock { $0.newest }, absent: EngineExamination.absent)
      try EngineOracle(store).verify()
    }
  }

  @Test(arguments: 0..<(isLongRun ? 2_000 : 12))
  func `Whatever happens, consumers are where the model says, and what they pin is there`(seed: Int)
    throws
  {
    var run = try Run(seed: UInt64(seed))
    for number in 0..<80 {
      do {
        try run.step()
      } catch {
        throw OracleViolation("step \(number): \(error)")
      }
    }
    try run.finish()
  }
}

extension ChangeStore {
  fileprivate func consumer(named name: String, _ one: ConsumerState.One) throws -> Consumer {
    try consumer(named: name, retaining: one.retention)
  }
}
