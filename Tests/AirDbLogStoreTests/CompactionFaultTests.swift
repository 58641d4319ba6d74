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

/// Fault model F2 for compactions: calls fail in the middle of them (G4, G8).
@Suite("Failing calls in compactions")
struct CompactionFaultTests {
  /// One failing call of a compaction and of the removals after it.
  private struct Case: Sendable, CustomStringConvertible {
    var call: SimulatedCall
    var number: Int
    var errno: CInt
    var isPersistent: Bool

    var description: String {
      "call \(number), \(call), fails with \(errno)\(isPersistent ? " from then on" : "")"
    }

    var plan: FaultPlan {
      FaultPlan(.failing(errno), on: isPersistent ? .from(number) : .only(number))
    }

    /// For want of something, before anything happened that another attempt would not put right.
    var isRefusal: Bool {
      switch call.kind {
      case .open, .create, .write, .list, .read, .size: [ENOSPC, EMFILE, EPERM].contains(errno)
      default: false
      }
    }
  }

  private static func prepared(
    _ durability: Durability, isPurging: Bool = false
  ) throws -> (run: CompactionRun, files: SimulatedFileSystem) {
    let files = SimulatedFileSystem()
    var script = CompactionScript(
      "failing compaction", durability,
      [
        .update("abcdef", 10), .update("abc", 20), .update("ghi", 30), .delete("bg", 40), .pump,
        .update("a", 50), .pump, .update("d", 60), .age,
      ])
    script.isPurging = isPurging
    let run = CompactionRun(script, on: files)
    try run.perform()
    return (run, files)
  }

  /// The cases, and what is purged without a failure.
  private static func cases(
    _ durability: Durability, isPurging: Bool
  ) throws -> (cases: [Case], purges: [EngineTrace.Purge]) {
    let (run, files) = try prepared(durability, isPurging: isPurging)
    let calls = Locked<[SimulatedCall]>([])
    files.beforeEachCall { call in calls.withLock { $0.append(call) } }
    try run.perform(.compact)
    try run.perform(.pump)
    files.beforeEachCall(nil)
    let cases = calls.withLock { $0 }.enumerated().flatMap { index, call -> [Case] in
      // The other calls fail in compactions that purge nothing as well.
      if isPurging, !isLongRun {
        return (index % 4 == 0 ? [false, true] : [false]).map {
          Case(
            call: call, number: index + 1, errno: index % 2 == 0 ? ENOSPC : EIO,
            isPersistent: $0)
        }
      }
      let lasting = isLongRun ? [ENOSPC, EIO, EMFILE, EPERM] : [index % 2 == 0 ? ENOSPC : EIO]
      return [ENOSPC, EIO, EMFILE, EPERM].map {
        Case(call: call, number: index + 1, errno: $0, isPersistent: false)
      }
        + lasting.map { Case(call: call, number: index + 1, errno: $0, isPersistent: true) }
    }
    return (cases, run.run.trace.withLock { $0.purges })
  }

  @Test(
    "Whichever call fails, nothing is lost, and a compaction that was refused can be tried again",
    arguments: [Durability.powerLoss, .processCrash])
  func everyCall(_ durability: Durability) throws {
    try checkAll(durability, isPurging: false)
  }

  @Test(
    "Whichever call of a purge fails, nothing comes back, and the horizon is there or is not",
    arguments: isLongRun ? [Durability.powerLoss, .processCrash] : [.powerLoss])
  func everyCallOfPurges(_ durability: Durability) throws {
    try checkAll(durability, isPurging: true)
  }

  private func checkAll(_ durability: Durability, isPurging: Bool) throws {
    let (cases, purges) = try Self.cases(durability, isPurging: isPurging)
    #expect(purges.count == (isPurging ? 1 : 0))
    let name = "\(isPurging ? "purges" : "compactions"), \(durability)"
    let found = FaultOutcomes.of(name, cases) { try Self.check($0, durability, purges) }
    #expect(found.done > 0)
  }

  /// Answers how the compaction failed, if it did.
  private static func check(
    _ fault: Case, _ durability: Durability, _ purges: [EngineTrace.Purge]
  ) throws -> LogStoreError.Code? {
    let (run, files) = try prepared(durability, isPurging: !purges.isEmpty)
    let before = run.run.trace.withLock { trace in
      trace.purges = purges
      return trace.newest
    }
    let store = run.run.store!
    let operations = files.operations.count
    files.inject(fault.plan)
    var failure: LogStoreError?
    var result: CompactionResult?
    do {
      result = try store.compact()
    } catch {
      failure = error
    }
    // Files that cannot be removed wait for the next writing open. A background sync that fails stops
    // writing like any other.
    if failure == nil { try run.run.pump() }
    let isUnknown = try store.writerIfAny?.refusal != nil
    files.clearFaults()
    if let result { try run.notePurge(since: before, result) }
    // What could not be done any more may be the look for more to do, behind a purge that is done.
    var isDone = failure == nil
    if !isUnknown, !purges.isEmpty {
      let trace = run.run.trace.withLock { $0 }
      let count = try EngineOracle(store).purges(of: trace)
      run.run.trace.withLock { $0.purgesDone = count }
      isDone = isDone || count > 0
    }
    try expect(
      isUnknown == (failure?.code == .outcomeUnknown) || failure == nil,
      "writing goes on after: \(failure!)")
    if let failure { try FaultOutcomes.expectAllowed(failure, isRefusal: fault.isRefusal) }
    // Reads go on, whatever happened.
    try check(store, run)
    try examineCrash(run, files, "\(fault)")
    if failure != nil, !isUnknown, !fault.isPersistent, fault.call.kind != .remove {
      if isDone { try run.run.pump() }
      // A seal leaves its index to the next attempt.
      let isSealed = try store.engine.snapshot.tail.allSatisfy { $0.finalLength == 0 }
      if isSealed { try expectOnlyUsedFiles(store, files) }
    }
    if isUnknown {
      let before = files.operations.count
      do {
        try store.applyAndWait([EngineScript.record("fresh", 1_000)])
        throw OracleViolation("a commit was accepted after an unknown outcome")
      } catch let error as LogStoreError {
        try expect(error.code == .outcomeUnknown, "after an unknown outcome: \(error)")
      }
      try expect(files.operations.count == before, "something was written")
      try store.reopen()
      try run.run.resolve()
    }
    // A look at the segments, before anything is done, can fail as well.
    try expect(
      files.operations.count > operations || fault.call.kind == .open || fault.call.kind == .read,
      "nothing was done at all")
    // Commits go on, and the compaction can be tried again.
    try run.perform(.update("ck", 200))
    try run.perform(.compact)
    try run.perform(.update("m", 210))
    try run.perform(.pump)
    try check(store, run)
    try EngineOracle(store).verify()
    try EngineOracle(store).refusesResurrections(
      of: run.run.trace.withLock { $0 }, run.run.trace.withLock { $0.visible })
    try expect(
      run.run.trace.withLock { $0.purgesDone > 0 } != purges.isEmpty, "nothing was purged")
    if fault.number % 3 == 0 || isLongRun { try examineCrash(run, files, "\(fault), at the end") }
    return failure?.code
  }

  /// Throws unless the store holds what is visible.
  private static func check(_ store: ChangeStore, _ run: CompactionRun) throws {
    let trace = run.run.trace.withLock { $0 }
    let oracle = EngineOracle(store)
    try oracle.check(oracle.model(of: trace, trace.visible), absent: CompactionScript.absent)
  }

  /// A loss of power now.
  private static func examineCrash(
    _ run: CompactionRun, _ files: SimulatedFileSystem, _ origin: String
  ) throws {
    var effort = CrashImages.Effort.least
    effort.seededSubsets = 0
    var images = CrashImages(effort)
    images.add(files, run.run.trace.withLock { $0 }, origin)
    for image in images.images {
      try EngineExamination(run.script.engineScript).examine(image, isThorough: false)
    }
  }

  @Test
  func `On a full disk a compaction that cannot be done changes nothing and gives its space back`()
    throws
  {
    let (run, files) = try Self.prepared(.powerLoss)
    let store = run.run.store!
    // What was prepared ahead of time would be given to the first attempt.
    try run.perform(.pump)
    _ = try store.writerIfAny?.makesRoom(after: LogStoreError(.noSpace, ""))
    let used = files.usedBytes
    let names = try files.list(ScriptRun.path).sorted()
    // Every amount of space that is left, until it is enough.
    var room: UInt64 = 0
    var refusals = 0
    while true {
      files.capacity = used + room
      do {
        try store.compact()
        break
      } catch {
        #expect(error.code == .noSpace, "\(room) bytes: \(error)")
        refusals += 1
      }
      #expect(try files.list(ScriptRun.path).sorted() == names, "\(room) bytes")
      #expect(files.usedBytes == used, "\(room) bytes")
      let model = run.run.trace.withLock { $0.newest }
      try EngineOracle(store).check(model, absent: CompactionScript.absent)
      room += 448
      try #require(room < 1 << 20)
    }
    try run.perform(.pump)
    #expect(refusals > 10)
    #expect(files.usedBytes < used)
    files.capacity = nil
    try run.perform(.update("ak", 200))
    try run.perform(.pump)
    try EngineOracle(store).check(
      run.run.trace.withLock { $0.newest }, absent: CompactionScript.absent)
    try EngineOracle(store).verify()
  }
}
