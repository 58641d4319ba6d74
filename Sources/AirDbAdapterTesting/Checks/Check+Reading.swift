extension AdapterConformance.Check {
  /// A fresh adapter has nothing to give.
  public static let empty = Self(
    "empty",
    title: "A fresh adapter has no changes and no latest timestamp",
    explanation: """
      The latest timestamp is nil, not an empty text. A batch without changes is no error, and \
      changes nothing.
      """
  ) { context in
    let change = context.record("a", 5)
    return .run([
      Script([.latest, .readAll, .read(after: context.clock.text(0), limit: 10)]),
      Script([.apply([]), .latest, .readAll]),
      Script([.apply([change]), .apply([]), .readAll]),
    ])
  }

  /// Changes come in ascending order, not in that of arrival.
  public static let order = Self(
    "order",
    title: "Changes come in ascending order of their timestamps",
    explanation: """
      By time, then counter, then node; whatever the order in which they were applied, and whether in \
      one batch or in many.
      """
  ) { context in
    let clock = context.clock
    let changes = [5, 1, 9, 3, 7, 0, 8].enumerated().map { index, time in
      context.record("id\(index)", time)
    }
    let counters = [2, 0, 30, 1, 4].enumerated().map { index, counter in
      context.record("id\(index)", 4, counter: counter)
    }
    let nodes = context.options.nodes.indices.reversed().map { node in
      context.record("id\(node)", at: clock.text(4, counter: 1, node: node))
    }
    return .run(
      [changes, counters, nodes].flatMap { changes in
        [
          Script([.apply(changes), .readAll]),
          Script(changes.map { .apply([$0]) } + [.readAll]),
          Script(changes.flatMap { [.apply([$0]), .readAll] }),
        ]
      })
  }

  /// Only what is after the cursor is given.
  public static let strictCursor = Self(
    "strict-cursor",
    title: "A read gives what is after its cursor, and not what is at it",
    explanation: """
      The cursor need not be the timestamp of a change: one before, between or behind all of them is \
      as good. A change that arrives late is given for every cursor before its timestamp.
      """
  ) { context in
    let changes = (1...5).map { context.record("id\($0)", $0 * 10) }
    let everywhere = (0...60).filter { $0 % 5 == 0 }.map { time in
      AdapterConformance.Step.read(after: context.clock.text(time), limit: 10)
    }
    return .run([
      Script([.apply(changes)] + everywhere),
      Script([.apply(changes.reversed()), .apply([context.record("late", 15)])] + everywhere),
    ])
  }

  /// A limit of zero or less gives no changes.
  public static let noLimit = Self(
    "limit-of-nothing",
    title: "A limit of zero or less gives no changes",
    explanation: """
      Databases that take such a limit for none give everything; others trap. A program that asks for \
      what is left of its budget asks for nothing, then.
      """
  ) { context in
    let changes = (1...3).map { context.record("id\($0)", $0) }
    return .run(
      [0, -1, Int.min].map { limit in
        Script([
          .apply(changes), .read(after: nil, limit: limit),
          .read(after: changes[0].hlcTimestamp, limit: limit),
        ])
      })
  }

  /// A page has as many changes as the limit says, if there are so many.
  public static let limit = Self(
    "limit",
    title: "A page has as many changes as its limit, if so many are left",
    explanation: """
      A caller may take a page with fewer changes for the last one. A limit beyond the end, up to the \
      greatest number, gives what there is, and reserves no memory for what there is not.
      """
  ) { context in
    let changes = (1...5).map { context.record("id\($0)", $0) }
    let limits = [1, 2, 4, 5, 6, 100, Int(Int32.max), Int.max]
    return .run(
      limits.map { limit in
        Script([
          .apply(changes), .read(after: nil, limit: limit),
          .read(after: changes[1].hlcTimestamp, limit: limit),
          .read(after: changes[4].hlcTimestamp, limit: limit), .sweep(limit: limit),
        ])
      })
  }

  /// The latest timestamp is the greatest that was ever stored.
  public static let latest = Self(
    "latest",
    title: "The latest timestamp is the greatest that was ever stored",
    explanation: """
      Not the one that was stored last, nor that of the last change of a batch. A deletion counts. A \
      clock that is set from it would otherwise go back.
      """
  ) { context in
    let times = [4, 9, 2, 9, 11, 1]
    let changes = times.enumerated().map { context.record("id\($0)", $1) }
    let deletion = context.record("id0", 50, type: .delete)
    return .run([
      Script(changes.flatMap { [.apply([$0]), .latest] }),
      Script([.apply(changes), .latest]),
      Script([.apply(changes), .apply([deletion]), .latest, .apply([changes[0]]), .latest]),
      Script([.apply([changes[1], changes[0]]), .apply([changes[2]]), .latest]),
    ])
  }

  /// The order of the adapter is that of the comparator.
  public static let comparator = Self(
    "comparator",
    title: "One order rules pages, cursors, the last writer and the latest: the comparator's",
    explanation: """
      The order of texts, or that of Unicode, is another: "9" is before "10", and "f" before "10"; \
      two fractions of a second, or a counter with and without zeros before it, may be equal. An \
      adapter that sorts by one order and merges by another loses changes.
      """
  ) { context in
    let clock = context.clock
    let timestamps = clock.treacherous
    let changes = timestamps.enumerated().map { context.record("id\($0)", at: $1) }
    let spelled = clock.spellings(100).enumerated().map { context.record("id\($0)", at: $1) }
    let versions = timestamps.enumerated().map {
      context.record("same", at: $1, content: "version \($0)")
    }
    return .run([
      Script([.apply(changes), .readAll, .latest]),
      Script([.apply(changes)] + timestamps.map { .read(after: $0, limit: .everything) }),
      Script([.apply(changes), .sweep(limit: 1), .sweep(limit: 7)]),
      Script(versions.flatMap { [.apply([$0]), .readAll, .latest] }),
      Script(versions.reversed().flatMap { [.apply([$0]), .readAll] }),
      // Different spellings of one timestamp, with a change before them and one behind.
      Script(
        [.apply([context.record("before", 99), context.record("behind", 101)]), .apply(spelled)]
          + spelled.map { .read(after: $0.hlcTimestamp, limit: 10) }
          + [.read(after: nil, limit: 2), .sweep(limit: 1), .sweep(limit: 2), .sweep(limit: 3)]),
      Script(
        clock.spellings(100).enumerated().flatMap { index, text -> [AdapterConformance.Step] in
          [.apply([context.record("same", at: text, content: "spelling \(index)")]), .readAll]
        }),
    ])
  }

  /// No page splits a run of equal timestamps.
  public static let equalTimestamps = Self(
    "equal-timestamps",
    title: "No change is lost where a page ends among changes of equal timestamps",
    explanation: """
      The cursor of the next page is the timestamp of the last change of this one, and the other \
      changes of that timestamp are not after it. So a page must not end among them, but exceeds its \
      limit. A query with "greater than" and "limit" alone loses the others for ever.
      """
  ) { context in
    var changes: [ChangeRecord] = []
    for (time, count) in [(1, 1), (2, 3), (3, 1), (4, 2), (5, 7)] {
      changes += (0..<count).map { context.record("id\(time)-\($0)", time) }
    }
    let cursors = [nil] + [1, 2, 4].map { Optional(context.clock.text($0)) }
    return .run(
      [1, 2, 3, 4, 5, 8, 13, 14].map { limit in
        Script(
          [.apply(changes), .sweep(limit: limit)]
            + cursors.map { .read(after: $0, limit: limit) })
      } + [Script(changes.reversed().map { .apply([$0]) } + [.sweep(limit: 2)])])
  }
}

extension Int {
  fileprivate static let everything = AdapterConformance.Step.everything
}
