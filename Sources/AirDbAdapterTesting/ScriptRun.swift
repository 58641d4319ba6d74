extension AdapterConformance {
  /// Runs a script on a fresh adapter until a step does not end as expected; nil if all do.
  func disagreement(in steps: [Step]) async -> Disagreement? {
    let session: any AdapterSession
    do {
      session = try await begin()
    } catch {
      return Disagreement(step: 0, expected: "a fresh adapter", actual: "error: \(error)")
    }
    var run = ScriptRun(session, reopensBetweenCalls: options.reopensBetweenCalls)
    var found = await run.run(steps)
    do {
      try await run.session.dispose()
    } catch {
      found =
        found
        ?? Disagreement(
          step: max(0, steps.count - 1), expected: "an adapter that can be disposed of",
          actual: "error: \(error)")
    }
    return found
  }
}

/// An adapter and the model beside it, while a script runs.
struct ScriptRun {
  typealias Step = AdapterConformance.Step

  private(set) var session: any AdapterSession
  private let reopensBetweenCalls: Bool
  private var state = ReferenceState()

  private var adapter: any AirDbAdapter & Sendable { session.adapter }

  init(_ session: any AdapterSession, reopensBetweenCalls: Bool) {
    self.session = session
    self.reopensBetweenCalls = reopensBetweenCalls
  }

  mutating func run(_ steps: [Step]) async -> Disagreement? {
    for (index, step) in steps.enumerated() {
      do {
        try await run(step)
        if reopensBetweenCalls { try await run(.reopen) }
      } catch var disagreement as Disagreement {
        disagreement.step = index
        return disagreement
      } catch {
        // A step that must succeed threw what the adapter did.
        return Disagreement(step: index, expected: "no error", actual: "error: \(error)")
      }
    }
    return nil
  }

  private mutating func run(_ step: Step) async throws {
    switch step {
    case .apply(let batch):
      try await adapter.applyChanges(batch)
      state.apply(batch)
    case .applyOrRefuse(let batch):
      if await failure(applying: batch) == nil { state.apply(batch) }
    case .refuse(let batch):
      if await failure(applying: batch) == nil {
        throw Disagreement(expected: "an error", actual: "the batch was applied")
      }
    case .applyCancelled(let batch, let yields): try await applyCancelled(batch, yields)
    case .applyConcurrently(let batches, let readers):
      try await applyConcurrently(batches, readers)
    case .read(let cursor, let limit): try await read(after: cursor, limit)
    case .sweep(let limit): try await sweep(limit)
    case .latest: try await readLatest()
    case .reopen: try await session.reopen()
    }
  }

  private func failure(applying batch: [ChangeRecord]) async -> (any Error)? {
    do {
      try await adapter.applyChanges(batch)
      return nil
    } catch {
      return error
    }
  }
}

// MARK: - Reading

extension ScriptRun {
  private func read(after cursor: String?, _ limit: Int) async throws {
    let page = try await adapter.getChangesSince(sinceHlcTimestamp: cursor, limit: limit)
    try compare(state.page(after: cursor, limit: limit), page)
  }

  /// Reads pages until one is empty. An adapter that never comes to an end is stopped when it has
  /// given twice what there is.
  private func sweep(_ limit: Int) async throws {
    let expected = state.feed
    var found: [ChangeRecord] = []
    var cursor: String?
    while found.count <= 2 * expected.count {
      let page = try await adapter.getChangesSince(sinceHlcTimestamp: cursor, limit: limit)
      guard let last = page.last else { break }
      found += page
      cursor = last.hlcTimestamp
    }
    try compare(expected, found)
  }

  private func readLatest() async throws {
    let latest = try await adapter.getLatestHlc()
    // Of equal timestamps in different spellings, any that was stored is the greatest.
    let known = state.feed.last { change in
      latest.map { change.hlcTimestamp.utf8.elementsEqual($0.utf8) } ?? false
    }
    let isGreatest =
      switch (state.latest, latest) {
      case (nil, nil): true
      case (let greatest?, let latest?):
        known != nil && HlcComparator.compare(greatest, latest) == 0
      default: false
      }
    guard !isGreatest else { return }
    throw Disagreement(
      expected: state.latest.map(printed) ?? "nil",
      actual: latest.map(printed) ?? "nil")
  }

  /// Compares changes that were read with those that should be, but for the order of those whose
  /// timestamps are equal.
  private func compare(_ expected: [ChangeRecord], _ actual: [ChangeRecord]) throws(Disagreement) {
    let isAscending = zip(actual, actual.dropFirst()).allSatisfy {
      HlcComparator.compare($0.hlcTimestamp, $1.hlcTimestamp) <= 0
    }
    let comparable = isAscending ? ReferenceState.sorted(actual) : actual
    guard !Self.areIdentical(comparable, expected) else { return }
    let (first, second) = descriptions(ofExpected: expected, actual: comparable)
    throw Disagreement(expected: first, actual: second)
  }

  private static func areIdentical(_ lhs: [ChangeRecord], _ rhs: [ChangeRecord]) -> Bool {
    lhs.count == rhs.count && zip(lhs, rhs).allSatisfy { $0.isIdentical(to: $1) }
  }
}

// MARK: - Cancellation

extension ScriptRun {
  private mutating func applyCancelled(_ batch: [ChangeRecord], _ yields: Int?) async throws {
    let adapter = adapter
    let task = Task { () -> (any Error)? in
      if yields == nil { withUnsafeCurrentTask { $0?.cancel() } }
      do {
        try await adapter.applyChanges(batch)
        return nil
      } catch {
        return error
      }
    }
    for _ in 0..<(yields ?? 0) { await Task.yield() }
    task.cancel()
    let failure = await task.value

    let found = try await adapter.getChangesSince(
      sinceHlcTimestamp: nil, limit: Step.everything)
    var applied = state
    applied.apply(batch)
    if failure != nil, Self.areIdentical(ReferenceState.sorted(found), state.feed) { return }
    // A call that threw may have come too late to be cancelled.
    try compare(applied.feed, found)
    state = applied
  }
}

// MARK: - Concurrency

extension ScriptRun {
  private mutating func applyConcurrently(
    _ batches: [[ChangeRecord]], _ readers: Int
  ) async throws {
    let adapter = adapter
    let before = state
    try await withThrowingTaskGroup(of: Void.self) { group in
      for batch in batches {
        group.addTask { try await adapter.applyChanges(batch) }
      }
      for _ in 0..<readers {
        group.addTask {
          var observer = ConcurrentReader(adapter: adapter, before: before, batches: batches)
          for _ in 0..<2 * batches.count {
            try await observer.read()
            await Task.yield()
          }
        }
      }
      try await group.waitForAll()
    }
    for batch in batches { state.apply(batch) }
    try await read(after: nil, Step.everything)
  }
}

/// Reads while batches are applied, and compares each answer with what they could have led to.
///
/// No two changes of one key have equal timestamps here, so that the order of the batches does not
/// matter.
private struct ConcurrentReader {
  let adapter: any AirDbAdapter & Sendable
  let before: ReferenceState
  let batches: [[ChangeRecord]]
  /// The greatest of what was read as latest.
  private var latest: String?
  /// What was read last.
  private var seen: [ReferenceState.Key: String] = [:]

  init(
    adapter: any AirDbAdapter & Sendable, before: ReferenceState, batches: [[ChangeRecord]]
  ) {
    self.adapter = adapter
    self.before = before
    self.batches = batches
  }

  mutating func read() async throws {
    let found = try await adapter.getChangesSince(
      sinceHlcTimestamp: nil, limit: AdapterConformance.Step.everything)
    try expectWholeBatches(in: found)
    try expectNothingOlder(in: found)
    let latest = try await adapter.getLatestHlc()
    try expectNotLess(latest, than: found.last?.hlcTimestamp)
    try expectNotLess(latest, than: self.latest)
    self.latest = latest
  }

  /// The batches of which some change is there must explain everything that is there: any other
  /// that was applied adds nothing, as each of its changes is superseded by one of these.
  private func expectWholeBatches(in found: [ChangeRecord]) throws(Disagreement) {
    var state = before
    for batch in batches {
      let isThere = batch.contains { change in found.contains { $0.isIdentical(to: change) } }
      if isThere { state.apply(batch) }
    }
    let expected = state.feed
    let isExplained =
      expected.count == found.count
      && zip(ReferenceState.sorted(found), expected).allSatisfy { $0.isIdentical(to: $1) }
    guard !isExplained else { return }
    let (first, second) = descriptions(ofExpected: expected, actual: found)
    throw Disagreement(
      expected: "while batches are applied, all of a batch or nothing of it:\n\(first)",
      actual: second)
  }

  private mutating func expectNothingOlder(in found: [ChangeRecord]) throws(Disagreement) {
    var now: [ReferenceState.Key: String] = [:]
    for change in found { now[ReferenceState.Key(change)] = change.hlcTimestamp }
    for (key, timestamp) in seen.sorted(by: { $0.key < $1.key }) {
      if let newer = now[key], HlcComparator.compare(newer, timestamp) >= 0 { continue }
      throw Disagreement(
        expected: "a record whose timestamp was read as \(printed(timestamp)), "
          + "with that or a greater one",
        actual: now[key].map(printed) ?? "no such record")
    }
    seen = now
  }

  private func expectNotLess(_ latest: String?, than other: String?) throws(Disagreement) {
    guard let other else { return }
    if let latest, HlcComparator.compare(latest, other) >= 0 { return }
    throw Disagreement(
      expected: "a latest timestamp of at least \(printed(other)), which was read before",
      actual: latest.map(printed) ?? "nil")
  }
}

extension Disagreement {
  /// A disagreement in the step that is running.
  init(expected: String, actual: String) {
    self.init(step: 0, expected: expected, actual: actual)
  }
}
