#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Calls that go wrong, and how.
///
/// ```swift
/// files.inject(FaultPlan(.failing(ENOSPC), kinds: [.write, .reserve], on: .from(3)))
/// files.inject(FaultPlan(.ignored, kinds: [.synchronizeDirectory]))
/// ```
package struct FaultPlan: Sendable {
  package enum Outcome: Sendable, Hashable {
    /// Fails with this errno. A close has closed all the same. A sync leaves its pages as the plan
    /// says, unless it was only interrupted; any other call has done nothing.
    case failing(CInt)
    /// A read or write ends after at most this many bytes. Other calls are not touched.
    case short(Int)
    /// Claims success and does nothing: the engine as it would be without this call. Calls that
    /// give something back (opening, listing, sizes, reads) are not touched.
    case ignored
    /// A sync that comes late: at the next sync of a directory, behind the rename that it was to
    /// go before.
    case delayed
  }

  /// Which of the matching calls, counted from 1.
  package enum Occurrence: Sendable, Hashable {
    case every
    case only(Int)
    case from(Int)

    func includes(_ number: Int) -> Bool {
      switch self {
      case .every: true
      case .only(let wanted): number == wanted
      case .from(let first): number >= first
      }
    }
  }

  package let outcome: Outcome
  /// The kinds of calls that match, or nil for all of them.
  package let kinds: Set<SimulatedCall.Kind>?
  /// What the path of a matching call ends with; of a rename, either path.
  package let pathSuffix: String
  package let occurrence: Occurrence
  /// What a failed sync leaves.
  package let failedSync: FailedSync

  private var matches = 0

  package init(
    _ outcome: Outcome, kinds: Set<SimulatedCall.Kind>? = nil, pathSuffix: String = "",
    on occurrence: Occurrence = .every, failedSync: FailedSync = .keptInCache
  ) {
    // Interrupted calls are repeated until they are not.
    if case .only = occurrence {
    } else {
      precondition(outcome != .failing(EINTR), "a call that is always interrupted never ends")
    }
    self.outcome = outcome
    self.kinds = kinds
    self.pathSuffix = pathSuffix
    self.occurrence = occurrence
    self.failedSync = failedSync
  }

  /// Counts the call if it matches, and answers whether it is one to go wrong.
  mutating func strikes(_ call: SimulatedCall) -> Bool {
    if let kinds, !kinds.contains(call.kind) { return false }
    let isNamed = call.path.hasSuffix(pathSuffix) || call.target?.hasSuffix(pathSuffix) == true
    guard pathSuffix.isEmpty || isNamed else { return false }
    matches += 1
    return occurrence.includes(matches)
  }
}
