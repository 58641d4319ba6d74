import AirDbLogStore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// What goes wrong in a script: fault model F2.
package enum Trouble: Sendable, CustomStringConvertible {
  case call(FaultCase)
  /// The disk holds so many bytes.
  case capacity(UInt64)
  /// So many files may be open.
  case descriptors(Int)

  package var description: String {
    switch self {
    case .call(let fault): fault.description
    case .capacity(let bytes): "a disk of \(bytes) bytes"
    case .descriptors(let count): "\(count) descriptors"
    }
  }

  func begin(_ files: SimulatedFileSystem) {
    switch self {
    case .call(let fault): files.inject(fault.plan)
    case .capacity(let bytes): files.capacity = bytes
    case .descriptors(let count): files.descriptorLimit = count
    }
  }

  func end(_ files: SimulatedFileSystem) {
    files.clearFaults()
    files.capacity = nil
    files.descriptorLimit = nil
  }

  /// Whether it stays until it is ended.
  var isPersistent: Bool {
    if case .call(let fault) = self, case .only = fault.plan.occurrence { false } else { true }
  }

  /// Whether a failed sync takes back what was written.
  var dropsUnsynced: Bool {
    if case .call(let fault) = self { fault.plan.failedSync == .dropped } else { false }
  }
}

/// One call of a script that goes wrong.
package struct FaultCase: Sendable, CustomStringConvertible {
  package let call: SimulatedCall
  /// Its number among all calls, from 1.
  package let number: Int
  package let plan: FaultPlan
  package let description: String

  init(
    _ call: SimulatedCall, _ number: Int, _ outcome: FaultPlan.Outcome, fromThenOn: Bool = false,
    _ failedSync: FailedSync = .keptInCache
  ) {
    self.call = call
    self.number = number
    plan = FaultPlan(
      outcome, on: fromThenOn ? .from(number) : .only(number), failedSync: failedSync)
    description =
      "call \(number), \(call): \(outcome)\(fromThenOn ? " from then on" : ""), \(failedSync)"
  }

  /// The ways in which a call is made to fail: those that it can in earnest, or all in a long run.
  package static func cases(_ call: SimulatedCall, _ number: Int) -> [FaultCase] {
    var cases: [FaultCase] = []
    // What the system answers to these two, the platform hides, or there is no such answer.
    if call.kind != .close && call.kind != .random {
      cases.append(FaultCase(call, number, .failing(EINTR)))
    }
    func add(_ errnos: [CInt], fromThenOn: [CInt] = []) {
      cases += errnos.map { FaultCase(call, number, .failing($0)) }
      cases += fromThenOn.map { FaultCase(call, number, .failing($0), fromThenOn: true) }
    }
    if isLongRun {
      let errnos = [EIO, ENOSPC, EDQUOT, EMFILE, EPERM, EROFS]
      add(errnos, fromThenOn: errnos)
    }
    switch call.kind {
    case .open, .list: add([EMFILE, EPERM], fromThenOn: [EMFILE])
    case .create: add([EMFILE, ENOSPC, EPERM], fromThenOn: [ENOSPC, EROFS])
    case .write:
      add([EIO, EDQUOT], fromThenOn: [ENOSPC])
      cases.append(FaultCase(call, number, .short(7)))
    case .read:
      add([EIO])
      cases.append(FaultCase(call, number, .short(1)))
    case .reserve: add([ENOSPC, EIO], fromThenOn: [EDQUOT])
    case .synchronize:
      add([ENOSPC], fromThenOn: [EIO])
      cases += FailedSync.allCases.map { FaultCase(call, number, .failing(EIO), $0) }
    // The entry of a directory that can neither be synced nor removed stays as it is for ever.
    case .synchronizeDirectory: add([EIO, EMFILE], fromThenOn: call.path == "/" ? [] : [EIO])
    case .rename, .createDirectory: add([EIO, ENOSPC, EPERM], fromThenOn: [EIO])
    case .remove, .truncate: add([EIO], fromThenOn: [EPERM])
    case .close, .size, .identity, .lock, .unlock, .random: add([EIO])
    case .removeDirectory: break
    }
    return cases
  }

  /// The calls of a script in which nothing goes wrong.
  package static func calls(of script: EngineScript) throws -> [SimulatedCall] {
    let calls = Locked<[SimulatedCall]>([])
    let run = ScriptRun(script, on: SimulatedFileSystem()) { _, call in
      calls.withLock { $0.append(call) }
    }
    try run.run()
    run.leave()
    return calls.withLock { $0 }
  }
}

/// A script in which one call goes wrong, and how an app would go on: what was refused is handed over
/// again; after an unknown outcome the store is reopened.
package final class FaultRun {
  private let life: ScriptRun
  private let trouble: Trouble
  private let without: FaultPlan?
  private let images = Locked(CrashImages(.least))
  private var isFirstError = true
  private var isResuming = false
  /// The commits when the first one after the fault was acknowledged; a crash then is of interest.
  private var crashesAfterNextCommit = false
  package private(set) var refusals = 0
  package private(set) var unknowns = 0

  /// `without` is in force all the time: for the tests that show that this run
  /// notices when something is missing.
  package init(_ script: EngineScript, _ trouble: Trouble, without: FaultPlan? = nil) {
    self.trouble = trouble
    self.without = without
    life = ScriptRun(script, on: SimulatedFileSystem())
    trouble.begin(life.files)
    if let without { life.files.inject(without) }
    life.syncsMayDrop = trouble.dropsUnsynced
  }

  /// Runs the script to its end in spite of the fault, and answers what crashes on the way leave.
  package func run() throws -> [CrashImage] {
    for step in life.script.steps {
      switch step {
      case .apply(let batch): try apply(batch)
      default: try perform(step)
      }
    }
    endTrouble()
    addCrash("at the end")
    life.leave()
    return images.withLock { $0.images }
  }

  private func endTrouble() {
    trouble.end(life.files)
    if let without { life.files.inject(without) }
  }

  private func addCrash(_ moment: String) {
    let trace = life.trace.withLock { $0 }
    images.withLock { $0.add(life.files, trace, "\(trouble), crash \(moment)") }
  }

  // MARK: Steps

  private func perform(_ step: EngineScript.Step) throws {
    if case .resume = step { isResuming = true }
    defer { isResuming = false }
    do {
      try life.perform(step)
    } catch let error as LogStoreError {
      try note(error)
      switch step {
      case .open:
        life.leave()
        try retryOpening(step)
      case .close:
        // Closed all the same; the next open recovers.
        life.leave()
        endTrouble()
      case .suspend:
        // Suspended all the same; taking it up again recovers.
        endTrouble()
      case .resume:
        do {
          try life.perform(step)
        } catch let error as LogStoreError {
          try expect(trouble.isPersistent, "a second attempt to resume failed, too: \(error)")
          endTrouble()
          try life.perform(step)
        }
      case .flush where error.code == .outcomeUnknown:
        try goOnAfterUnknown()
      default:
        throw OracleViolation("\(step) failed: \(error)")
      }
    }
  }

  private func retryOpening(_ step: EngineScript.Step) throws {
    do {
      try life.perform(step)
      return
    } catch let error as LogStoreError {
      try expect(trouble.isPersistent, "a second open failed, too: \(error)")
    }
    endTrouble()
    life.leave()
    try life.perform(step)
  }

  private func apply(_ batch: [ChangeRecord]) throws {
    for attempt in 0..<4 {
      if attempt == 2 { endTrouble() }
      do {
        let before = life.trace.withLock { $0.visible }
        try life.apply(batch)
        if crashesAfterNextCommit, life.trace.withLock({ $0.visible }) > before {
          crashesAfterNextCommit = false
          addCrash("after the next commit")
        }
        return
      } catch let error as LogStoreError {
        try note(error)
        if error.code == .outcomeUnknown {
          try goOnAfterUnknown()
        } else {
          try goOnAfterRefusal(error)
        }
      }
    }
    throw OracleViolation("a batch is refused although the fault is over")
  }

  // MARK: Errors

  /// Checks the kind of an error against the call that went wrong (G4).
  private func note(_ error: LogStoreError) throws {
    crashesAfterNextCommit = true
    guard isFirstError, !trouble.isPersistent, case .call(let fault) = trouble,
      case .failing(let errno) = fault.plan.outcome
    else { return }
    isFirstError = false
    try expect(errno != EINTR, "an interrupted call came through: \(error)")
    let call = fault.call
    let isOfSegment = call.path.hasSuffix(".segment")
    let isRefusal = [ENOSPC, EDQUOT, EMFILE, EPERM].contains(errno)
    switch call.kind {
    case .open, .create, .reserve, .list, .read, .size:
      try expect(
        error.code != .outcomeUnknown || !isRefusal, "nothing was written, and yet: \(error)")
    case .write where isOfSegment && call.offset >= 64, .synchronize where isOfSegment:
      try expect(
        error.code == .outcomeUnknown || isOpening,
        "a failed write or sync of the log is unknown, not: \(error)")
    default: break
    }
  }

  /// Whether the store is being opened: its failures are retried by opening again.
  private var isOpening: Bool { life.store == nil || isResuming }

  private func goOnAfterRefusal(_ error: LogStoreError) throws {
    refusals += 1
    let codes: [LogStoreError.Code] = [
      .noSpace, .tooManyOpenFiles, .protectedDataUnavailable, .inputOutput,
    ]
    try expect(codes.contains(error.code), "refused with \(error)")
    life.trace.withLock { $0.refuse() }
    try checkReads()
  }

  /// Nothing more is written, reads go on, and reopening the same object recovers.
  private func goOnAfterUnknown() throws {
    unknowns += 1
    endTrouble()
    guard let store = life.store else { return }
    let operations = life.files.operations.count
    do {
      try store.applyAndWait([EngineExamination.fresh(0)])
      throw OracleViolation("a commit was accepted after an unknown outcome")
    } catch let error as LogStoreError {
      try expect(error.code == .outcomeUnknown, "after an unknown outcome: \(error)")
    }
    try expect(life.files.operations.count == operations, "something was written")
    try checkReads()
    addCrash("after the unknown outcome")
    try reopen(store)
    try life.resolve()
    addCrash("after reopening")
  }

  /// Reopens, with crashes at every operation.
  private func reopen(_ store: ChangeStore) throws {
    let trace = life.trace.withLock { $0 }
    let (files, images, trouble) = (life.files, images, trouble)
    files.beforeEachCall { [weak files] call in
      guard call.kind.changesDisk, let files else { return }
      images.withLock { $0.add(files, trace, "\(trouble), reopening, crash before \(call)") }
    }
    defer { files.beforeEachCall(nil) }
    try store.reopen()
  }

  /// Reads serve what was published last.
  private func checkReads() throws {
    guard let store = life.store else { return }
    let model = life.trace.withLock { $0.models[$0.visible] }
    do {
      try EngineOracle(store).check(model, absent: EngineExamination.absent)
    } catch let error as LogStoreError {
      // What a failed sync dropped, nobody can read; and a fault may still be in force.
      let isAllowed = error.code == .corrupt && trouble.dropsUnsynced || trouble.isPersistent
      try expect(isAllowed, "a read failed: \(error)")
    }
  }
}
