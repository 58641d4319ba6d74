import AirDbLogStore
import TestSupport
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Fault model F2 for consumers: calls fail in the middle of a change (G4).
@Suite("Failing calls in changes of consumers")
struct ConsumerFaultTests {
  /// A change, what comes before it, and which of its calls fails how.
  private struct Case: Sendable, CustomStringConvertible {
    var change: Change
    var number: Int
    var call: SimulatedCall
    var errno: CInt
    var isPersistent = false
    var failedSync = FailedSync.keptInCache

    var description: String {
      "\(change.name), call \(number), \(call), fails with \(errno)"
        + (isPersistent ? " from then on" : "") + ", \(failedSync)"
    }

    var plan: FaultPlan {
      FaultPlan(
        .failing(errno), on: isPersistent ? .from(number) : .only(number), failedSync: failedSync)
    }

    /// For want of something, before anything that another attempt would not put right.
    var isRefusal: Bool {
      // A sync begins with the identity of its file.
      call.kind != .synchronize && call.kind != .identity
        && [ENOSPC, EMFILE, EPERM].contains(errno)
    }
  }

  private struct Change: Sendable {
    var name: String
    var step: ConsumerScript.Step
    /// Whether the session has changed a consumer before.
    var isSettled = true
  }

  private static let changes = [
    Change(name: "first progress of a session", step: .acknowledge("a", 2), isSettled: false),
    Change(name: "progress", step: .acknowledge("a", 2)),
    Change(name: "registering", step: .register("c", .history(), .end)),
    Change(name: "registering for the first time", step: .register("c", .history(), .end)),
    Change(name: "resetting", step: .reset("a", 0)),
    Change(name: "retiring", step: .retire("b")),
    Change(name: "retiring all", step: .retireAll),
  ]

  private static func prepared(
    _ change: Change, _ durability: Durability
  ) throws -> ConsumerRun {
    let run = ConsumerRun(
      ConsumerScript("failing", durability, []), on: SimulatedFileSystem())
    try run.perform()
    try run.perform(.update("ab", 10))
    if change.name != "registering for the first time" {
      try run.perform(.register("a", .history(), .beginning))
      try run.perform(.register("b", .latestVersions, .end))
      if !change.isSettled {
        try run.perform(.step(.close))
        try run.perform(.step(.open(durability)))
      }
    }
    try run.perform(.update("bc", 20))
    if change.isSettled, !run.expected.withLock({ $0.state.consumers.isEmpty }) {
      try run.perform(.acknowledge("a", 1))
    }
    return run
  }

  private static func cases(_ durability: Durability) throws -> [Case] {
    var cases: [Case] = []
    for change in changes {
      let run = try prepared(change, durability)
      let calls = Locked<[SimulatedCall]>([])
      run.run.files.beforeEachCall { call in calls.withLock { $0.append(call) } }
      try run.perform(change.step)
      run.run.files.beforeEachCall(nil)
      for (index, call) in calls.withLock({ $0 }).enumerated() where call.kind != .close {
        let isSync = call.kind == .synchronize || call.kind == .synchronizeDirectory
        for errno in [ENOSPC, EIO, EMFILE, EPERM] {
          for failedSync in isSync ? FailedSync.allCases : [.keptInCache] {
            cases.append(
              Case(
                change: change, number: index + 1, call: call, errno: errno,
                failedSync: failedSync))
          }
        }
        cases.append(
          Case(change: change, number: index + 1, call: call, errno: EIO, isPersistent: true))
      }
    }
    return cases
  }

  @Test(
    "Whichever call fails, consumers are as before or as wanted, and go on",
    arguments: [Durability.powerLoss, .processCrash])
  func everyCall(_ durability: Durability) throws {
    let cases = try Self.cases(durability)
    _ = FaultOutcomes.of("changes of consumers, \(durability)", cases) {
      try Self.check($0, durability)
    }
  }

  /// Answers how the change failed, if it did.
  private static func check(_ fault: Case, _ durability: Durability) throws -> LogStoreError.Code? {
    let run = try prepared(fault.change, durability)
    let store = run.run.store!
    let files = run.run.files
    let before = run.expected.withLock { $0.state }
    files.inject(fault.plan)
    var failure: LogStoreError?
    do {
      try run.perform(fault.change.step)
    } catch let error as LogStoreError {
      failure = error
    }
    files.clearFaults()
    if let failure {
      try FaultOutcomes.expectAllowed(failure, isRefusal: fault.isRefusal)
      try expect(try ConsumerState(store) == before, "a failed change shows")
    }
    try examineCrash(run, "\(fault)")
    if failure?.code == .outcomeUnknown {
      try goOnAfterUnknown(run, store, fault)
    } else if failure != nil {
      // The same again succeeds.
      try run.perform(fault.change.step)
    }
    // Changes and compactions go on, and survive.
    try run.perform(.update("cd", 30))
    if try ConsumerState(store).consumers["a"] != nil {
      try run.perform(.acknowledge("a", run.expected.withLock { $0.positions.count }))
    }
    try run.perform(.register("d", .latestVersions, .beginning))
    try run.perform(.compact)
    try examineCrash(run, "\(fault), at the end")
    return failure?.code
  }

  /// No consumer is changed and nothing is cleaned until the store is reopened; unless it was the log
  /// whose sync failed, commits and reads go on.
  private static func goOnAfterUnknown(
    _ run: ConsumerRun, _ store: ChangeStore, _ fault: Case
  ) throws {
    let files = run.run.files
    let operations = files.operations.count
    var attempts = [{ try store.retireAllConsumers() }]
    if !fault.call.path.hasSuffix(".segment") {
      // What a compaction asks first.
      attempts.append { _ = try store.engine.consumers.settled() }
    }
    for attempt in attempts {
      do {
        try attempt()
        throw OracleViolation("a change was made after an unknown outcome")
      } catch let error as LogStoreError {
        try expect(error.code == .outcomeUnknown, "after an unknown outcome: \(error)")
      }
    }
    try expect(files.operations.count == operations, "something was written")
    if !fault.call.path.hasSuffix(".segment") {
      try run.perform(.update("xy", 25))
    }
    let model = run.run.trace.withLock { $0.models[$0.visible] }
    if fault.failedSync != .dropped || !fault.call.path.hasSuffix(".segment") {
      try EngineOracle(store).check(model, absent: EngineExamination.absent)
    }
    try store.reopen()
    run.run.syncsMayDrop = true
    try run.run.resolve()
    let found = try ConsumerState(store)
    let allowed = run.expected.withLock { $0.allowed }
    try expect(allowed.contains(found), "reopened there is \(found)")
    // Nobody has relied on it yet, so that it may still be one or the other.
    try examineCrash(run, "\(fault), reopened")
    _ = try store.engine.consumers.settled()
    run.expected.withLock {
      $0.state = found
      $0.next = nil
    }
    try examineCrash(run, "\(fault), settled")
  }

  private static func examineCrash(_ run: ConsumerRun, _ origin: String) throws {
    let (trace, expected) = (run.run.trace.withLock { $0 }, run.expected.withLock { $0 })
    for rule in [SurvivorRule.none, .all] + (isLongRun ? [.allButFirst, .allButLast] : []) {
      let image = ConsumerSweep.Image(
        files: run.run.files.image(rule), trace: trace, expected: expected, least: trace.durable,
        isDeath: false, description: "\(origin), \(rule)")
      do {
        try ConsumerExamination(run.script).examine(image, without: nil, isThorough: false)
      } catch {
        throw OracleViolation("\(image): \(error)")
      }
    }
  }
}
