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
    _ durability: Durability
  ) throws -> (run: CompactionRun, files: SimulatedFileSystem) {
    let files = SimulatedFileSystem()
    let run = CompactionRun(
      CompactionScript(
        "failing compaction", durability,
        [
          .update("abcdef", 10), .update("abc", 20), .update("ghi", 30), .delete("bg", 40), .pump,
          .update("a", 50), .pump, .update("d", 60),
        ]), on: files)
    try run.perform()
    return (run, files)
  }

  private static func cases(_ durability: Durability) throws -> [Case] {
    let (run, files) = try prepared(durability)
    let calls = Locked<[SimulatedCall]>([])
    files.beforeEachCall { call in calls.withLock { $0.append(call) } }
    try run.perform(.compact)
    try run.perform(.pump)
    files.beforeEachCall(nil)
    return calls.withLock { $0 }.enumerated().flatMap { index, call in
      let lasting = isLongRun ? [ENOSPC, EIO, EMFILE, EPERM] : [index % 2 == 0 ? ENOSPC : EIO]
      return [ENOSPC, EIO, EMFILE, EPERM].map {
        Case(call: call, number: index + 1, errno: $0, isPersistent: false)
      }
        + lasting.map { Case(call: call, number: index + 1, errno: $0, isPersistent: true) }
    }
  }

  @Test(
    "Whichever call fails, nothing is lost, and a compaction that was refused can be tried again",
    arguments: [Durability.powerLoss, .processCrash])
  func everyCall(_ durability: Durability) throws {
    let cases = try Self.cases(durability)
    let next = Locked(0)
    let counts = Locked((done: 0, refusals: 0, unknowns: 0))
    inThreads(2) { _ in
      while true {
        let place = next.withLock { place in
          defer { place += 1 }
          return place
        }
        guard place < cases.count else { return }
        do {
          let code = try Self.check(cases[place], durability)
          counts.withLock {
            switch code {
            case nil: $0.done += 1
            case .outcomeUnknown?: $0.unknowns += 1
            default: $0.refusals += 1
            }
          }
        } catch {
          Issue.record("\(durability), \(cases[place]): \(error)")
        }
      }
    }
    let found = counts.withLock { $0 }
    print(
      "Failing calls in compactions, \(durability): \(cases.count) faults, \(found.done) came",
      "through, \(found.refusals) refusals, \(found.unknowns) unknown outcomes")
    #expect(found.done > 0 && found.refusals > 0 && found.unknowns > 0)
  }

  /// Answers how the compaction failed, if it did.
  private static func check(_ fault: Case, _ durability: Durability) throws -> LogStoreError.Code? {
    let (run, files) = try prepared(durability)
    let store = run.run.store!
    let operations = files.operations.count
    files.inject(fault.plan)
    var failure: LogStoreError?
    do {
      try store.compact()
    } catch {
      failure = error
    }
    // Files that cannot be removed wait for the next writing open. A background sync that fails stops
    // writing like any other.
    if failure == nil { try run.run.pump() }
    let isUnknown = try store.writerIfAny?.refusal != nil
    files.clearFaults()
    try expect(
      isUnknown == (failure?.code == .outcomeUnknown) || failure == nil,
      "writing goes on after: \(failure!)")
    try expect(
      failure?.code != .outcomeUnknown || !fault.isRefusal, "nothing happened, and yet: \(failure!)"
    )
    if let failure {
      let codes: [LogStoreError.Code] = [
        .noSpace, .tooManyOpenFiles, .protectedDataUnavailable, .inputOutput, .outcomeUnknown,
      ]
      try expect(codes.contains(failure.code), "it failed with \(failure)")
    }
    // Reads go on, whatever happened.
    let model = run.run.trace.withLock { $0.models[$0.visible] }
    try EngineOracle(store).check(model, absent: CompactionScript.absent)
    try examineCrash(run, files, "\(fault)")
    if failure != nil, !isUnknown, !fault.isPersistent, fault.call.kind != .remove {
      try expectOnlyUsedFiles(store, files)
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
    let end = run.run.trace.withLock { $0.models[$0.visible] }
    try EngineOracle(store).check(end, absent: CompactionScript.absent)
    try EngineOracle(store).verify()
    if fault.number % 3 == 0 || isLongRun { try examineCrash(run, files, "\(fault), at the end") }
    return failure?.code
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
