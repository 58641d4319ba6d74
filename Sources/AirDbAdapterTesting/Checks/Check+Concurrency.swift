extension AdapterConformance.Check {
  /// Writers at the same time lose nothing.
  public static let concurrentWriters = Self(
    "concurrent-writers",
    title: "Batches that are applied at the same time are all applied",
    explanation: """
      The end is what any order of the batches leads to: of each record the newest version. Adapters \
      that read, wait and then write lose what was written meanwhile.
      """
  ) { context in
    let stored = (0..<4).map { context.record("id\($0)", 0, counter: $0) }
    return .run(
      (0..<4).map { round in
        let batches = (0..<12).map { writer in
          // Some records are everybody's, some are the writer's own.
          (0..<4).map { context.record("id\($0)", 10 + (writer * 5 + round) % 12, counter: $0) }
            + [context.record("own\(writer)", 50 + writer)]
        }
        return Script([
          .apply(stored), .applyConcurrently(batches, readers: 0), .sweep(limit: 3), .latest,
        ])
      })
  }

  /// A reader beside writers sees whole batches.
  public static let concurrentReaders = Self(
    "concurrent-readers",
    title: "A read beside writers sees a batch as a whole, or nothing of it",
    explanation: """
      One page shows one state. What was read once is there at the next read, or something newer; and \
      the latest timestamp does not go back.
      """
  ) { context in
    .run(
      (0..<4).map { round in
        let batches = (0..<8).map { writer in
          (0..<6).map { context.record("id\($0)", 10 + (writer * 5 + round) % 8, counter: $0) }
        }
        return Script([.applyConcurrently(batches, readers: 3), .latest])
      })
  }

  /// A batch of a cancelled task is applied as a whole, or not at all.
  public static let cancellation = Self(
    "cancellation",
    title: "A cancelled task's batch is applied as a whole, or refused as a whole",
    explanation: """
      A call that returns has stored its batch, cancelled or not. One that throws may have stored it \
      or not, but no part of it. The adapter goes on to work afterwards. Tried with tasks that are \
      cancelled before the call, and with some that are cancelled during it.
      """
  ) { context in
    let stored = context.record("id0", 1)
    let later = context.record("id0", 90, type: .update)
    return .run(
      [nil, 0, 1, 2, 3, 5, 8, 13].map { yields in
        let batch = (0..<20).map { context.record("id\($0)", 10, counter: $0) }
        return Script([
          .apply([stored]), .applyCancelled(batch, yields: yields), .readAll, .latest,
          .apply([later]), .readAll, .latest,
        ])
      })
  }
}
