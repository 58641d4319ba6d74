extension AdapterConformance {
  /// What a run of checks has found.
  public struct Report: Sendable {
    /// A check and what became of it.
    public struct Outcome: Sendable {
      /// The check.
      public let check: Check
      /// What became of it.
      public let result: Result
    }

    /// What became of a check.
    public enum Result: Sendable {
      /// The adapter did what was expected, throughout.
      case passed
      /// The adapter did something else.
      case failed(Failure)
      /// The check was not run, for a reason.
      case skipped(String)
    }

    /// An outcome for each check, in the order in which they were run.
    public internal(set) var outcomes: [Outcome]

    /// What failed.
    public var failures: [Failure] {
      outcomes.compactMap { if case .failed(let failure) = $0.result { failure } else { nil } }
    }

    /// Whether nothing failed. What was skipped is not known to hold.
    public var isConforming: Bool { failures.isEmpty }
  }

  /// How an adapter breaks a rule.
  public struct Failure: Error, Sendable {
    /// The check that failed.
    public let check: Check

    /// The calls that lead to the failure on a fresh adapter, the last of which failed. None if no
    /// adapter could be made, or if it did not return.
    public let input: [Step]

    /// What the last call should have done.
    public let expected: String

    /// What it did.
    public let actual: String

    /// For a random script, ``Options/seed`` with which it is the first one.
    public let seed: UInt64?
  }
}

extension AdapterConformance.Failure: CustomStringConvertible {
  /// The rule, the calls, what was expected and what happened, in lines.
  public var description: String {
    var text = "\(check.id): \(check.title)"
    if let seed { text += "\nseed: \(seed)" }
    text += "\ninput:"
    text += input.isEmpty ? " none" : input.map { "\n" + Self.indented("\($0)") }.joined()
    text += "\nexpected: " + expected.replacing("\n", with: "\n  ")
    text += "\nactual: " + actual.replacing("\n", with: "\n  ")
    return text
  }

  private static func indented(_ text: String) -> String {
    "  " + text.replacing("\n", with: "\n  ")
  }
}

extension AdapterConformance.Report: CustomStringConvertible {
  /// A line for each check, and below it how it failed.
  public var description: String {
    var counts = (passed: 0, failed: 0, skipped: 0)
    var text = ""
    for outcome in outcomes {
      switch outcome.result {
      case .passed:
        counts.passed += 1
        text += "passed  \(outcome.check.id)\n"
      case .failed(let failure):
        counts.failed += 1
        text += "FAILED  " + "\(failure)".replacing("\n", with: "\n        ") + "\n"
      case .skipped(let reason):
        counts.skipped += 1
        text += "skipped \(outcome.check.id): \(reason)\n"
      }
    }
    return text
      + "\(counts.passed) passed, \(counts.failed) failed, \(counts.skipped) skipped"
  }
}
