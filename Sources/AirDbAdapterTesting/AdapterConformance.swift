#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The contract of an adapter as checks that any adapter can be held to.
///
/// The checks know nothing of the adapter but its three methods. They need no test framework; the
/// result is a ``Report``, which a test or a program looks at as it likes.
///
/// ```swift
/// let conformance = AdapterConformance { try ChangeStore.inMemory() }
/// let report = await conformance.run([.order, .equalTimestamps])
/// if !report.isConforming { print(report) }
/// ```
///
/// Without an argument, ``run(_:)`` runs all of them. Each check runs scripts of calls, each on a
/// fresh adapter, and compares every answer with that of a plain model. A script that fails is made
/// smaller as long as it still fails. See <doc:CheckAnAdapter>.
///
/// A conformance may be used from any task. Its checks run one after the other.
public struct AdapterConformance: Sendable {
  /// What the checks may ask of the adapter.
  public let options: Options

  let canReopen: Bool
  let begin: @Sendable () async throws -> any AdapterSession

  /// Describes how adapters are made.
  ///
  /// - Parameters:
  ///   - options: What the checks may ask of the adapter.
  ///   - makeAdapter: Makes an adapter without any changes, which shares nothing with those made
  ///     before. Called once for each script, hundreds of times in a run.
  ///   - reopen: Ends an adapter, and opens its storage again. Without it the checks that need it
  ///     are skipped.
  ///   - dispose: Called once with each adapter when it is no longer needed, also after a failure:
  ///     the place to close it and to remove its files. Not called with an adapter in whose place
  ///     there is a reopened one.
  public init<Adapter: AirDbAdapter & Sendable>(
    options: Options = Options(),
    makeAdapter: @escaping @Sendable () async throws -> Adapter,
    reopen: (@Sendable (Adapter) async throws -> Adapter)? = nil,
    dispose: (@Sendable (Adapter) async throws -> Void)? = nil
  ) {
    self.options = options
    canReopen = reopen != nil
    begin = {
      Session(current: try await makeAdapter(), reopening: reopen, disposing: dispose)
    }
  }

  /// Runs checks, one after the other.
  ///
  /// Whatever the adapter does wrong is in the report; nothing is thrown. A trap in the adapter ends
  /// the process, as traps do. When the task is cancelled, the checks that are left are skipped.
  ///
  /// - Parameter checks: The checks to run; all by default.
  public func run(_ checks: [Check] = Check.all) async -> Report {
    var report = Report(outcomes: [])
    for check in checks {
      let result = await result(of: check)
      report.outcomes.append(
        Report.Outcome(
          check: check, result: Task.isCancelled ? .skipped("The run was cancelled.") : result))
    }
    return report
  }

  private func result(of check: Check) async -> Report.Result {
    if Task.isCancelled { return .skipped("The run was cancelled.") }
    guard let limit = options.timeLimit else { return await resultWithoutLimit(of: check) }
    return await first(within: limit) { await resultWithoutLimit(of: check) }
      ?? .failed(
        Failure(
          check: check, input: [], expected: "an end within \(limit)",
          actual: "the adapter did not return", seed: nil))
  }

  private func resultWithoutLimit(of check: Check) async -> Report.Result {
    let scripts: [Script]
    switch check.plan(PlanContext(options: options, canReopen: canReopen)) {
    case .skip(let reason): return .skipped(reason)
    case .run(let planned): scripts = planned
    }
    for script in scripts {
      guard let disagreement = await disagreement(in: script.steps) else { continue }
      var shrinker = Shrinker(attempts: options.shrinkAttempts) { await self.disagreement(in: $0) }
      let least = await shrinker.shrink(script.steps, disagreement)
      return .failed(
        Failure(
          check: check, input: least.steps, expected: least.disagreement.expected,
          actual: least.disagreement.actual, seed: script.seed))
    }
    return .passed
  }
}

// MARK: - Options

extension AdapterConformance {
  /// What the checks may ask of an adapter.
  public struct Options: Sendable {
    /// How the timestamps of the checks are written.
    public var timestamps: TimestampStyle = .decimal

    /// The nodes in timestamps, none of them empty. With an empty list the checks take the default.
    public var nodes = ["a", "b", "c"]

    /// The size of the largest payload, in bytes.
    public var largestPayload = 1 << 20

    /// Contents as the app has them, which the checks store beside their own.
    ///
    /// For an adapter that looks into payloads, to keep their parts under names or in columns, say: what
    /// it makes of them again must be the same bytes, for all forms that a peer may write.
    public var payloads: [Data] = []

    /// The length of the longest id, in bytes.
    public var longestId = 1_024

    /// Raw values of types that have no name, all of which an adapter must keep.
    ///
    /// An adapter that converts a raw value to a smaller integer traps on the extremes. To see what
    /// else it does, leave those out.
    public var unknownTypes = [3, -1, 1_000, Int(Int32.max), Int.min, Int.max]

    /// Records that the adapter is known to refuse, apart from malformed timestamps: those beyond
    /// its limits, say. A batch with one of them must be refused as a whole.
    public var refusedRecords: [ChangeRecord] = []

    /// Whether the adapter is reopened after each call of a script: finds what it keeps in memory
    /// only. Needs a way to reopen it.
    public var reopensBetweenCalls = false

    /// From what the random scripts are made. The same seed makes the same scripts.
    public var seed: UInt64 = 1

    /// How many random scripts ``Check/randomScripts`` runs.
    public var randomScripts = 40

    /// How many calls a random script has.
    public var randomSteps = 40

    /// How many adapters are made, at most, to find a smaller script that fails. Zero reports the
    /// script as it was.
    public var shrinkAttempts = 1_000

    /// After how long a check is given up as failed; nil never. A call that does not return is left
    /// behind, with its adapter.
    public var timeLimit: Duration?

    /// The defaults, which the properties state.
    public init() {}
  }

  /// How timestamps are written.
  public enum TimestampStyle: Sendable, Hashable, CaseIterable {
    /// Milliseconds in decimal digits: `1700000000000-0000-a`.
    case decimal
    /// An instant in ISO 8601: `2023-11-14T22:13:20.000Z-0000-a`.
    case iso8601
    /// A text that is not of that grammar, and is ordered by its bytes.
    case opaque
  }
}
