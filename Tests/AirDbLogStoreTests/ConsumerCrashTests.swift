import AirDbLogStore
import TestSupport
import Testing

/// Fault model F1 for consumers: power is lost, or the process killed, at every operation.
@Suite("Crashes with consumers")
struct ConsumerCrashTests {
  @Test(
    "After a crash at any operation consumers are where they were, or where they were going",
    arguments: [Durability.powerLoss, .processCrash])
  func everyOperation(_ durability: Durability) throws {
    let sweep = try ConsumerSweep(.life(durability))
    for violation in sweep.examine() { Issue.record("\(violation)") }
    print(
      "Crashes, \(sweep.script.name): \(sweep.points) crash points,",
      "\(sweep.images.count) images that differ")
    #expect(sweep.images.contains { $0.expected.allowed.count == 2 })
  }

  /// A call that does not do what it says.
  struct Tooth: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var plan: FaultPlan
    var durability = Durability.powerLoss
  }

  static let teeth = [
    Tooth(
      testDescription: "the slot",
      plan: FaultPlan(.ignored, kinds: [.synchronize], pathSuffix: "/CONSUMERS")),
    Tooth(
      testDescription: "the commit that is acknowledged",
      plan: FaultPlan(.ignored, kinds: [.synchronize], pathSuffix: ".segment"),
      durability: .processCrash),
    Tooth(
      testDescription: "a new file",
      plan: FaultPlan(.ignored, kinds: [.synchronize], pathSuffix: "CONSUMERS.new")),
    Tooth(
      testDescription: "a new file, behind its rename",
      plan: FaultPlan(.delayed, kinds: [.synchronize], pathSuffix: "CONSUMERS.new")),
    Tooth(
      testDescription: "the entry of a new file",
      plan: FaultPlan(.ignored, kinds: [.synchronizeDirectory], pathSuffix: "/store", on: .from(5))),
  ]

  @Test("Without this sync, the crash suite fails", arguments: teeth)
  func tooth(_ tooth: Tooth) throws {
    let sweep = try ConsumerSweep(.short(tooth.durability), faults: [tooth.plan])
    #expect(!sweep.examine(most: 1).isEmpty)
  }

  @Test(
    "Without the syncs of what a dead process left, the crash suite fails",
    arguments: [
      FaultPlan(.ignored, kinds: [.synchronize], pathSuffix: "CONSUMERS.new"),
      FaultPlan(.ignored, kinds: [.synchronizeDirectory], pathSuffix: "/store"),
    ])
  func settling(_ without: FaultPlan) throws {
    let sweep = try ConsumerSweep(.short(.powerLoss))
    #expect(!sweep.examine(without: without, most: 1).isEmpty)
  }
}

/// What a crash at each operation of a script leaves, and what it must be.
struct ConsumerSweep {
  struct Image: Sendable, CustomStringConvertible {
    var files: SimulatedFileSystem
    var trace: EngineTrace
    var expected: ConsumerRun.Expected
    var least: Int
    var isDeath: Bool
    var description: String
  }

  private struct Key: Hashable {
    var digest: Int
    var losses: Int
    var allowed: Set<ConsumerState>
    var least: Int
    var isDeath: Bool
  }

  private struct Collected: Sendable {
    var images: [Image] = []
    var keys: Set<Key> = []
    var points = 0
  }

  let script: ConsumerScript
  let images: [Image]
  let points: Int

  init(_ script: ConsumerScript, faults: [FaultPlan] = []) throws {
    self.script = script
    let files = SimulatedFileSystem()
    for fault in faults { files.inject(fault) }
    let collected = Locked(Collected())
    let state = Locked<(@Sendable () -> (EngineTrace, ConsumerRun.Expected))?>(nil)
    let add: @Sendable (SimulatedFileSystem, String) -> Void = { files, origin in
      guard let (trace, expected) = state.withLock({ $0 })?() else { return }
      collected.withLock { Self.add(files, trace, expected, origin, to: &$0) }
    }
    let run = ConsumerRun(script, on: files) { files, call in
      if call.kind.changesDisk { add(files, "\(script.name), before \(call)") }
    }
    let (trace, expected) = (run.run.trace, run.expected)
    state.withLock { $0 = { (trace.withLock { $0 }, expected.withLock { $0 }) } }
    try run.perform()
    files.beforeEachCall(nil)
    add(files, "\(script.name), at the end")
    (images, points) = collected.withLock { ($0.images, $0.points) }
  }

  private static func add(
    _ files: SimulatedFileSystem, _ trace: EngineTrace, _ expected: ConsumerRun.Expected,
    _ origin: String, to collected: inout Collected
  ) {
    collected.points += 1
    func add(_ image: SimulatedFileSystem, least: Int, isDeath: Bool, _ origin: String) {
      let key = Key(
        digest: image.digest,
        losses: trace.losses, allowed: expected.allowed, least: least, isDeath: isDeath)
      guard collected.keys.insert(key).inserted else { return }
      collected.images.append(
        Image(
          files: image, trace: trace, expected: expected, least: least, isDeath: isDeath,
          description: origin))
    }
    let rules = files.survivorRules(
      .sector, exhaustiveLimit: isLongRun ? 8 : 2, seededSubsets: isLongRun ? 40 : 1)
    let hasPending = files.pendingCount(.sector) > 0
    for lost in hasPending ? [LostContent.old, .mixed(seed: 2)] : [.old] {
      for rule in rules {
        add(
          files.image(rule, granularity: .sector, lost: lost), least: trace.durable,
          isDeath: false, "\(origin), \(rule), \(lost)")
      }
    }
    add(files.afterProcessDeath(), least: trace.visible, isDeath: true, "\(origin), killed")
  }

  /// Examines everything until there are `most` violations.
  func examine(without: FaultPlan? = nil, most: Int = 10) -> [OracleViolation] {
    let script = script
    return forEachInThreads(Array(images.enumerated()), most: most) { number, image in
      try ConsumerExamination(script).examine(
        image, without: without, isThorough: isLongRun || number % 12 == 0)
    }
  }
}

/// Opens what a crash left, and checks what is said of consumers.
struct ConsumerExamination {
  let script: ConsumerScript

  init(_ script: ConsumerScript) { self.script = script }

  private var examination: EngineExamination { EngineExamination(script.engineScript) }

  func examine(_ image: ConsumerSweep.Image, without: FaultPlan?, isThorough: Bool) throws {
    let files = image.files
    if isThorough, !image.isDeath, files.content(of: ScriptRun.path + "/MANIFEST") != nil {
      try lookReadOnly(image)
    }
    if let without { files.inject(without) }
    let opened = try examination.open(files)
    let found = try check(opened.store, image)
    // What a compaction would rely on survives.
    _ = try opened.store.engine.consumers.settled()
    let survivors = try examination.open(files.image(.none)).store
    let left = try ConsumerState(survivors)
    try expect(left == found, "\(left) survives of \(found)")
    try expect(
      files.content(of: ScriptRun.path + "/CONSUMERS.new") == nil, "a new file was left")
    if isThorough { try goOn(files, image, found) }
  }

  private func check(
    _ store: ChangeStore, _ image: ConsumerSweep.Image
  ) throws -> ConsumerState {
    let count = try EngineOracle(store).prefix(of: image.trace, least: image.least)
    let found = try ConsumerState(store)
    try expect(
      image.expected.allowed.contains(found),
      "there is \(found), not \(image.expected.allowed.map(\.description).sorted())")
    let known = Set(image.trace.commits[..<count].map(\.sequence))
    for (name, one) in found.consumers where one.sequence > 0 {
      try expect(known.contains(one.sequence), "\(name) is behind a commit that is not there")
    }
    return found
  }

  private func lookReadOnly(_ image: ConsumerSweep.Image) throws {
    let files = image.files.copy()
    let opened = try examination.open(files, isReadOnly: true)
    _ = try check(opened.store, image)
    try opened.store.close()
    let writes = files.operations.filter { $0.kind != .synchronize }
    try expect(writes.isEmpty, "a read-only store did \(writes)")
  }

  /// A second open finds the same, and progress after that survives.
  private func goOn(
    _ files: SimulatedFileSystem, _ image: ConsumerSweep.Image, _ found: ConsumerState
  ) throws {
    let files = files.copy()
    let store = try examination.open(files).store
    try expect(try ConsumerState(store) == found, "the second open finds something else")
    try EngineOracle(store).verify()
    let position = try store.applyAndWait([EngineExamination.record(image.trace)]).position!
    var model = found
    for (name, one) in found.consumers {
      try store.consumer(named: name, retaining: one.retention).acknowledge(position)
      model.consumers[name]?.sequence = position.sequence
    }
    _ = try store.consumer(named: "new", from: .end)
    model.consumers["new"] = ConsumerState.One(
      sequence: position.sequence, retention: .latestVersions)
    let survivors = try examination.open(files.image(.none)).store
    let left = try ConsumerState(survivors)
    try expect(left == model, "of \(model) there is \(left)")
    try expect(try survivors.position == position, "the commit that was acknowledged is gone")
  }
}

extension EngineExamination {
  /// A record that no script has.
  fileprivate static func record(_ trace: EngineTrace) -> ChangeRecord {
    EngineScript.record("fresh", 1_000_000 + Int(trace.greatestSequence & 0xFFFF))
  }
}
