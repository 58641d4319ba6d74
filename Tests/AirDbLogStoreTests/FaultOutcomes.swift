import AirDbLogStore
import TestSupport
import Testing

/// What came of failing calls, over many of them.
struct FaultOutcomes: Sendable, CustomStringConvertible {
  private(set) var done = 0
  private(set) var refusals = 0
  private(set) var unknowns = 0

  var description: String {
    "\(done) came through, \(refusals) refusals, \(unknowns) unknown outcomes"
  }

  private mutating func add(_ code: LogStoreError.Code?) {
    switch code {
    case nil: done += 1
    case .outcomeUnknown?: unknowns += 1
    default: refusals += 1
    }
  }

  /// Checks each case, on several threads. `check` answers how what was tried failed, if it did, and
  /// throws what is wrong about that, which is recorded.
  static func of<Case: Sendable>(
    _ name: String, _ cases: [Case],
    _ check: @escaping @Sendable (Case) throws -> LogStoreError.Code?
  ) -> FaultOutcomes {
    let outcomes = Locked(FaultOutcomes())
    let violations = forEachInThreads(cases) { fault in
      let code = try check(fault)
      outcomes.withLock { $0.add(code) }
    }
    for violation in violations { Issue.record("\(name): \(violation)") }
    let found = outcomes.withLock { $0 }
    print("Failing calls in \(name): \(cases.count) faults, \(found)")
    #expect(found.refusals > 0 && found.unknowns > 0, "\(name)")
    return found
  }

  /// Throws unless a failure is of a kind that a failing call may have, and says no more than happened.
  static func expectAllowed(_ failure: LogStoreError, isRefusal: Bool) throws {
    let codes: [LogStoreError.Code] = [
      .noSpace, .tooManyOpenFiles, .protectedDataUnavailable, .inputOutput, .outcomeUnknown,
    ]
    try expect(codes.contains(failure.code), "it failed with \(failure)")
    try expect(
      failure.code != .outcomeUnknown || !isRefusal, "nothing happened, and yet: \(failure)")
  }
}
