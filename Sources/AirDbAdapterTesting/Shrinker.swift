#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Makes a script that fails smaller, as long as it still fails (delta debugging).
///
/// Leaves out steps, batches and changes in ever smaller pieces, then what the changes carry, until
/// no single one of them can be left out, or the attempts are used up. What a script leads to decides
/// alone, so that for an adapter that does the same each time the result is the same, too.
struct Shrinker {
  typealias Step = AdapterConformance.Step

  private var attempts: Int
  private let disagreement: ([Step]) async -> Disagreement?

  private var steps: [Step] = []
  private var found = Disagreement(step: 0, expected: "", actual: "")

  init(attempts: Int, _ disagreement: @escaping ([Step]) async -> Disagreement?) {
    self.attempts = attempts
    self.disagreement = disagreement
  }

  mutating func shrink(
    _ steps: [Step], _ found: Disagreement
  ) async -> (steps: [Step], disagreement: Disagreement) {
    self.steps = steps
    self.found = found
    cutBehindFailure()
    var isSmaller = attempts > 0
    while isSmaller, attempts > 0 {
      isSmaller = await leaveOutSteps()
      if await leaveOutChanges() { isSmaller = true }
      if await simplifyChanges() { isSmaller = true }
    }
    return (self.steps, self.found)
  }

  /// Nothing that comes after the failing step was run.
  private mutating func cutBehindFailure() {
    steps = Array(steps.prefix(found.step + 1))
  }

  /// Takes over a smaller script if it fails.
  private mutating func accept(_ candidate: [Step]) async -> Bool {
    guard attempts > 0 else { return false }
    attempts -= 1
    guard let found = await disagreement(candidate) else { return false }
    self.found = found
    steps = candidate
    cutBehindFailure()
    return true
  }

  private mutating func leaveOutSteps() async -> Bool {
    await leaveOut {
      $0.count
    } without: { steps, range in
      var steps = steps
      steps.removeSubrange(range)
      return steps
    }
  }

  private mutating func leaveOutChanges() async -> Bool {
    var isSmaller = false
    var step = 0
    while step < steps.count {
      let index = step
      if case .applyConcurrently = steps[index] {
        let isDone = await leaveOut {
          index < $0.count ? $0[index].batches.count : 0
        } without: { steps, range in
          var batches = steps[index].batches
          batches.removeSubrange(range)
          return Self.replacing(batches, at: index, in: steps)
        }
        if isDone { isSmaller = true }
      }
      var batch = 0
      while index < steps.count, batch < steps[index].batches.count {
        let place = batch
        let isDone = await leaveOut {
          index < $0.count && place < $0[index].batches.count ? $0[index].batches[place].count : 0
        } without: { steps, range in
          var batches = steps[index].batches
          batches[place].removeSubrange(range)
          return Self.replacing(batches, at: index, in: steps)
        }
        if isDone { isSmaller = true }
        batch += 1
      }
      step += 1
    }
    return isSmaller
  }

  /// Leaves out ranges of something that the script has a number of: first all, then halves, down to
  /// single ones.
  private mutating func leaveOut(
    _ count: ([Step]) -> Int, without: ([Step], Range<Int>) -> [Step]
  ) async -> Bool {
    var isSmaller = false
    var size = count(steps)
    while size > 0, attempts > 0 {
      var start = 0
      while start < count(steps) {
        let range = start..<min(start + size, count(steps))
        if await accept(without(steps, range)) {
          isSmaller = true
        } else {
          start += size
        }
        if attempts == 0 { break }
      }
      size /= 2
    }
    return isSmaller
  }

  private static func replacing(
    _ batches: [[ChangeRecord]], at index: Int, in steps: [Step]
  ) -> [Step] {
    var steps = steps
    steps[index] = steps[index].with(batches)
    return steps
  }

  // MARK: Changes

  /// Tries each change without signature, without key, without payload, and as an insertion.
  private mutating func simplifyChanges() async -> Bool {
    var isSimpler = false
    for step in steps.indices {
      for batch in 0..<(step < steps.count ? steps[step].batches.count : 0) {
        var index = 0
        while step < steps.count, batch < steps[step].batches.count,
          index < steps[step].batches[batch].count
        {
          for simplification in Self.simplifications {
            guard step < steps.count, batch < steps[step].batches.count,
              index < steps[step].batches[batch].count
            else { break }
            var batches = steps[step].batches
            guard let simpler = simplification(batches[batch][index]) else { continue }
            batches[batch][index] = simpler
            if await accept(Self.replacing(batches, at: step, in: steps)) { isSimpler = true }
          }
          index += 1
        }
      }
    }
    return isSimpler
  }

  /// A simpler form of a change, or nil if it has that form.
  private static let simplifications: [@Sendable (ChangeRecord) -> ChangeRecord?] = [
    { $0.signature == nil ? nil : $0.with(signature: .some(nil)) },
    { $0.authorPublicKey == nil ? nil : $0.with(key: .some(nil)) },
    { $0.payload.isEmpty ? nil : $0.with(payload: Data()) },
    { $0.type.rawValue == MutationType.insert.rawValue ? nil : $0.with(type: .insert) },
  ]
}

extension ChangeRecord {
  /// The change with other parts. AirDB's own record cannot be changed in place.
  fileprivate func with(
    type: MutationType? = nil, payload: Data? = nil, key: Data?? = nil, signature: Data?? = nil
  ) -> ChangeRecord {
    ChangeRecord(
      id: id, collection: collection, type: type ?? self.type, payload: payload ?? self.payload,
      hlcTimestamp: hlcTimestamp, authorPublicKey: key ?? authorPublicKey,
      signature: signature ?? self.signature)
  }
}
