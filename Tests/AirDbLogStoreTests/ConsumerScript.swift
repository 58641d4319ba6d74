import AirDbLogStore
import TestSupport
import Testing

/// A scripted run with consumers.
struct ConsumerScript: Sendable, CustomTestStringConvertible {
  enum Step: Sendable {
    case step(EngineScript.Step)
    case register(String, Consumer.Retention, Consumer.Start)
    /// Up to the so-and-so-many-th commit of the run, counted from 1.
    case acknowledge(String, Int)
    /// To a commit; 0: to the beginning.
    case reset(String, Int)
    case retire(String)
    case retireAll
    case compact
  }

  var name: String
  var steps: [Step]

  init(_ name: String, _ durability: Durability, _ steps: [Step]) {
    self.name = "\(name), \(durability)"
    self.steps = [.step(.open(durability))] + steps
  }

  var testDescription: String { name }

  /// The same without steps, for what the engine's scripts are used for.
  var engineScript: EngineScript { EngineScript(name, []) }
}

extension ConsumerScript.Step {
  static let pump = Self.step(.pump)

  static func update(_ ids: String, _ time: Int, _ payload: Int = 40) -> Self {
    .step(.apply(CompactionScript.records(ids, time, payload)))
  }
}

extension ConsumerScript {
  /// All that can happen to consumers, in two sessions, with commits and a seal between.
  static func life(_ durability: Durability) -> ConsumerScript {
    let long = String(repeating: "long name ", count: 25)
    return ConsumerScript(
      "consumers", durability,
      [
        .register("first", .latestVersions, .beginning), .update("ab", 10),
        .acknowledge("first", 1), .update("bc", 20), .acknowledge("first", 2),
        .register("second", .history(), .end), .update("cd", 30), .acknowledge("second", 3),
        .acknowledge("second", 2), .acknowledge("first", 3),
        .reset("second", 1), .register("first", .history(maximumAge: .seconds(60)), .beginning),
        .update("de", 40), .pump, .acknowledge("second", 4),
      ] + (1...14).map { .register("\(long)\($0)", .latestVersions, .beginning) }
        + [
          // The table is now larger than one page.
          .acknowledge("\(long)3", 4), .retire("first"), .update("ef", 50), .step(.close),
          .step(.open(durability)), .acknowledge("second", 5), .update("fg", 60),
          .register("first", .latestVersions, .end), .acknowledge("second", 6), .reset("first", 0),
          .step(.leave), .step(.open(durability)), .retireAll, .update("gh", 70),
          .register("last", .history(), .beginning), .acknowledge("last", 7),
        ])
  }

  /// The same in few steps, for the suites that repeat it for each of its calls.
  static func short(_ durability: Durability) -> ConsumerScript {
    ConsumerScript(
      "few consumers", durability,
      [
        .update("ab", 10), .register("a", .history(), .beginning), .acknowledge("a", 1),
        .update("bc", 20), .acknowledge("a", 2), .register("b", .latestVersions, .end),
        .update("cd", 30), .acknowledge("a", 3), .acknowledge("b", 3), .reset("a", 1),
        .retire("b"), .step(.close), .step(.open(durability)), .update("de", 40),
        .acknowledge("a", 4), .update("ef", 50), .acknowledge("a", 5),
      ])
  }
}

/// What a store may be found to say of its consumers.
struct ConsumerState: Hashable, Sendable, CustomStringConvertible {
  struct One: Hashable, Sendable {
    var sequence: UInt64
    var retention: Consumer.Retention
    var resets: UInt64 = 0
  }

  var consumers: [String: One] = [:]

  var description: String {
    consumers.sorted { $0.key < $1.key }.map {
      "\($0.key.prefix(20)): \($0.value.sequence & 0xFFFF_FFFF) of \($0.value.sequence >> 32), "
        + "\($0.value.retention), \($0.value.resets) resets"
    }.description
  }

  init() {}

  init(_ store: ChangeStore) throws {
    for entry in try store.engine.consumers.consumers {
      consumers[String(decoding: entry.name, as: UTF8.self)] = One(
        sequence: entry.place.sequence, retention: Consumer.Retention(entry.retention),
        resets: entry.resets)
    }
  }
}

/// Carries such a script out, and knows what must be there of its consumers.
///
/// The state may be read from a hook of the platform, in the middle of a step.
final class ConsumerRun {
  let script: ConsumerScript
  let run: ScriptRun
  let expected = Locked(Expected())

  struct Expected: Sendable {
    /// What was acknowledged.
    var state = ConsumerState()
    /// What the change under way makes of it.
    var next: ConsumerState?
    /// The positions of the commits, of those that were lost too.
    var positions: [Position] = []

    var allowed: Set<ConsumerState> { Set([state, next].compactMap(\.self)) }
  }

  init(
    _ script: ConsumerScript, on files: SimulatedFileSystem,
    watch: (@Sendable (SimulatedFileSystem, SimulatedCall) -> Void)? = nil
  ) {
    self.script = script
    run = ScriptRun(script.engineScript, on: files, watch: watch)
  }

  func perform() throws {
    for step in script.steps { try perform(step) }
  }

  func perform(_ step: ConsumerScript.Step) throws {
    if case .step(let step) = step { return try perform(step) }
    if case .compact = step {
      try run.store?.compact()
      return
    }
    guard let store = run.store else { return }
    let before = expected.withLock { $0 }
    let next = Self.outcome(of: step, before, end: try store.position)
    expected.withLock { $0.next = next }
    try carryOut(step, store, before.positions)
    let found = try ConsumerState(store)
    try expect(found == next, "after \(step) there is \(found), not \(next)")
    expected.withLock {
      $0.state = next
      $0.next = nil
    }
    // What a position names survives any loss of power.
    run.trace.withLock { trace in
      let greatest = next.consumers.values.map(\.sequence).max() ?? 0
      let count = trace.commits.prefix(trace.visible).last?.sequence ?? 0
      if greatest >= count { trace.makeDurable() }
    }
  }

  private func perform(_ step: EngineScript.Step) throws {
    try run.perform(step)
    guard case .apply = step, let position = try run.store?.position else { return }
    expected.withLock { $0.positions.append(position) }
  }

  private func carryOut(
    _ step: ConsumerScript.Step, _ store: ChangeStore, _ positions: [Position]
  ) throws {
    func consumer(_ name: String) throws -> Consumer {
      let retention = try ConsumerState(store).consumers[name]?.retention ?? .latestVersions
      return try store.consumer(named: name, retaining: retention)
    }
    switch step {
    case .step, .compact: break
    case .register(let name, let retention, let start):
      _ = try store.consumer(named: name, retaining: retention, from: start)
    case .acknowledge(let name, let commit):
      try consumer(name).acknowledge(positions[commit - 1])
    case .reset(let name, let commit):
      try consumer(name).reset(to: commit == 0 ? nil : positions[commit - 1])
    case .retire(let name): try consumer(name).retire()
    case .retireAll: try store.retireAllConsumers()
    }
  }

  /// What a step makes of the consumers.
  private static func outcome(
    of step: ConsumerScript.Step, _ before: Expected, end: Position?
  ) -> ConsumerState {
    var state = before.state
    func sequence(_ commit: Int) -> UInt64 {
      commit == 0 ? 0 : before.positions[commit - 1].sequence
    }
    switch step {
    case .step, .compact: break
    case .register(let name, let retention, let start):
      let first =
        switch start {
        case .beginning: UInt64(0)
        case .end: end?.sequence ?? 0
        case .position(let position): position.sequence
        }
      let one = ConsumerState.One(sequence: first, retention: retention)
      state.consumers[name, default: one].retention = retention
    case .acknowledge(let name, let commit):
      state.consumers[name]!.sequence = max(state.consumers[name]!.sequence, sequence(commit))
    case .reset(let name, let commit):
      state.consumers[name]!.sequence = sequence(commit)
      state.consumers[name]!.resets += 1
    case .retire(let name): state.consumers[name] = nil
    case .retireAll: state.consumers = [:]
    }
    return state
  }
}
