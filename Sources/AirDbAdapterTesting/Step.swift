extension AdapterConformance {
  /// A call of an adapter in the script of a check, and what is expected of it.
  public enum Step: Sendable {
    /// Applies a batch, which must succeed.
    case apply([ChangeRecord])
    /// Applies a batch that an adapter may refuse: then nothing of it may be stored, and otherwise
    /// all of it must be.
    case applyOrRefuse([ChangeRecord])
    /// Applies a batch that the adapter must refuse.
    case refuse([ChangeRecord])
    /// Applies a batch in a task that is cancelled: beforehand if `yields` is nil, otherwise after
    /// the caller has yielded so many times. Then reads everything. All of the batch must be there,
    /// or nothing of it if the call threw.
    case applyCancelled([ChangeRecord], yields: Int?)
    /// Applies batches at the same time, each in its own task, beside tasks that read. Then reads
    /// everything.
    case applyConcurrently([[ChangeRecord]], readers: Int)
    /// Reads a page, which must be as full as `limit` allows and not split equal timestamps.
    case read(after: String?, limit: Int)
    /// Reads all pages, each from the last timestamp of the one before.
    case sweep(limit: Int)
    /// Reads the latest timestamp.
    case latest
    /// Ends the adapter and opens its storage again.
    case reopen

    /// A read of everything, in one page.
    static let readAll = Step.read(after: nil, limit: everything)

    /// More changes than any script has.
    static let everything = 1_000_000
  }
}

extension AdapterConformance.Step {
  /// The batches that the step applies.
  public var batches: [[ChangeRecord]] {
    switch self {
    case .apply(let batch), .applyOrRefuse(let batch), .refuse(let batch),
      .applyCancelled(let batch, _):
      [batch]
    case .applyConcurrently(let batches, _): batches
    case .read, .sweep, .latest, .reopen: []
    }
  }

  /// The same step with other batches, as many as it has; any number for concurrent ones.
  func with(_ batches: [[ChangeRecord]]) -> Self {
    switch self {
    case .apply: .apply(batches[0])
    case .applyOrRefuse: .applyOrRefuse(batches[0])
    case .refuse: .refuse(batches[0])
    case .applyCancelled(_, let yields): .applyCancelled(batches[0], yields: yields)
    case .applyConcurrently(_, let readers): .applyConcurrently(batches, readers: readers)
    case .read, .sweep, .latest, .reopen: self
    }
  }
}

/// Calls that are made one after the other, on an adapter of their own.
struct Script {
  var steps: [AdapterConformance.Step]
  /// What a random script was made from.
  var seed: UInt64?

  init(_ steps: [AdapterConformance.Step], seed: UInt64? = nil) {
    self.steps = steps
    self.seed = seed
  }
}

/// Where an adapter did not do what was expected.
struct Disagreement: Error {
  /// The index of the step.
  var step: Int
  var expected: String
  var actual: String
}
