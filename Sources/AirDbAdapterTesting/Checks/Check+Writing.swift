#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension AdapterConformance.Check {
  /// The newest version wins, in whatever order the versions arrive.
  public static let lastWriterWins = Self(
    "last-writer-wins",
    title: "The version with the greatest timestamp wins, in every order of arrival",
    explanation: """
      Two peers that have seen the same changes in different orders must end with the same records. \
      Tried with all orders of four versions of a record, one of them a deletion.
      """
  ) { context in
    let versions = [
      context.record("a", 1), context.record("a", 2, type: .update),
      context.record("a", 3, type: .delete), context.record("a", 3, counter: 1, type: .update),
    ]
    return .run(
      permutations(of: versions).map { versions in
        Script(versions.map { .apply([$0]) } + [.readAll])
      })
  }

  /// A change that is not newer than the stored one is skipped.
  public static let staleChanges = Self(
    "stale-changes",
    title: "A change that is older than the stored one, or as old, is skipped",
    explanation: """
      Of two versions with equal timestamps the first stays. The rest of the batch counts all the \
      same: that one change is stale is no error.
      """
  ) { context in
    let stored = context.record("a", 10)
    let equal = context.record("a", at: stored.hlcTimestamp, type: .update, content: "equal")
    let older = context.record("a", 9, counter: 7, type: .delete)
    let other = context.record("b", 12)
    return .run([
      Script([.apply([stored]), .apply([equal]), .readAll]),
      Script([.apply([stored]), .apply([older]), .readAll]),
      Script([.apply([stored]), .apply([older, other, equal]), .readAll, .latest]),
    ])
  }

  /// The feed has one change for each record: its newest.
  public static let newestOnly = Self(
    "newest-only",
    title: "The feed has one change of each record, the newest, where its timestamp belongs",
    explanation: """
      A version that is superseded is given no more, for no cursor. The newer one is further behind.
      """
  ) { context in
    let first = (1...4).map { context.record("id\($0)", $0) }
    let newer = [
      context.record("id1", 10, type: .update), context.record("id3", 3, counter: 5, type: .update),
    ]
    return .run([
      Script([
        .apply(first), .apply(newer), .readAll, .sweep(limit: 1),
        .read(after: context.clock.text(2), limit: 10),
        .read(after: newer[1].hlcTimestamp, limit: 10),
      ])
    ])
  }

  /// Changes of one record in one batch count one after the other.
  public static let duplicatesInBatch = Self(
    "duplicates-in-batch",
    title: "Changes of one record in one batch count as applied one after the other",
    explanation: """
      In every order. Of two with equal timestamps the first stays. Writers that compare each change \
      with what was stored before the batch keep the last one instead of the newest.
      """
  ) { context in
    let stored = context.record("a", 2)
    let versions = [
      context.record("a", 1), context.record("a", 3, type: .update),
      context.record("a", 4, type: .delete),
      context.record("a", at: context.clock.text(4), type: .update, content: "as new"),
    ]
    return .run(
      permutations(of: versions).flatMap { versions in
        [
          Script([.apply(versions), .readAll]),
          Script([.apply([stored]), .apply([context.record("b", 3)] + versions), .readAll]),
        ]
      })
  }

  /// Applying again changes nothing.
  public static let redelivery = Self(
    "redelivery",
    title: "Applying the same changes again has no effect",
    explanation: """
      Peers deliver more than once. A whole history may come again, in another order and in other \
      batches, after its records have moved on.
      """
  ) { context in
    let history = [
      context.record("a", 1), context.record("b", 2), context.record("a", 3, type: .update),
      context.record("c", 4), context.record("b", 5, type: .delete),
    ]
    return .run([
      Script([.apply(history), .apply(history), .readAll, .latest]),
      Script(history.map { .apply([$0]) } + [.apply(history.reversed()), .readAll, .latest]),
      Script([.apply(history)] + history.map { .apply([$0]) } + [.readAll, .sweep(limit: 1)]),
      Script([.apply([history[0], history[0], history[0]]), .readAll]),
    ])
  }

  /// Deletions are changes like others.
  public static let deletions = Self(
    "deletions",
    title: "Deletions are in the feed, whole, and stay",
    explanation: """
      Other peers must learn of them, with the payload, key and signature that they came with. A \
      deletion of a record that was never there is kept too. An older version that comes later must \
      not bring the record back, and a newer one must.
      """
  ) { context in
    let insertion = context.record("a", 1)
    let older = context.record("a", 2, type: .update)
    let deletion = ChangeRecord(
      id: "a", collection: "notes", type: .delete, payload: Data("why".utf8),
      hlcTimestamp: context.clock.text(3), authorPublicKey: Data([1, 2]), signature: Data([3]))
    let again = context.record("a", 4)
    return .run([
      Script([.apply([insertion]), .apply([deletion]), .readAll, .latest]),
      Script([.apply([insertion, deletion]), .read(after: context.clock.text(1), limit: 5)]),
      Script([.apply([deletion]), .readAll, .latest]),
      Script([.apply([insertion]), .apply([deletion]), .apply([older]), .readAll]),
      Script([.apply([deletion]), .apply([again]), .readAll]),
    ])
  }

  /// A batch is stored as a whole, or not at all.
  public static let batchAtomicity = Self(
    "batch-atomicity",
    title: "A batch that is refused leaves nothing of it",
    explanation: """
      A batch with a malformed timestamp at its start, in its middle or at its end is either refused, \
      and then nothing of it is stored, or stored whole, in the place that the comparator gives it. A \
      record that the options say is refused must be, likewise. The adapter goes on to work \
      afterwards.
      """
  ) { context in
    let stored = context.record("a", 5)
    let good = [context.record("a", 6, type: .update), context.record("b", 7)]
    let later = context.record("b", 8)
    func scripts(
      _ bad: ChangeRecord, _ step: ([ChangeRecord]) -> AdapterConformance.Step
    ) -> [Script] {
      (0...good.count).map { place in
        var batch = good
        batch.insert(bad, at: place)
        return Script([
          .apply([stored]), step(batch), .readAll, .latest, .apply([later]), .readAll,
        ])
      }
    }
    return .run(
      context.clock.malformed.flatMap { text in
        scripts(context.record("c", at: text)) { .applyOrRefuse($0) }
      } + context.options.refusedRecords.flatMap { record in scripts(record) { .refuse($0) } })
  }

  /// What was applied is there when the storage is opened again.
  public static let reopening = Self(
    "reopening",
    title: "Everything is still there after the adapter was reopened",
    explanation: """
      Records, deletions, the order, what makes a change stale, the latest timestamp, and every byte. \
      Skipped for adapters that cannot be reopened.
      """
  ) { context in
    guard context.canReopen else { return .skip("No way to reopen the adapter was given.") }
    let first = (1...6).map { context.record("id\($0)", $0) }
    let second = [
      context.record("id2", 9, type: .delete), context.record("id7", 4),
      context.record("id3", 8, type: .update),
    ]
    // What an adapter keeps in memory as it came, it may still read back as something else.
    let bytes = context.contents.enumerated().map { index, content in
      ChangeRecord(
        id: "\u{E9}\u{0}\(index)", collection: index % 2 == 0 ? "" : "\u{FEFF}notes\r\n",
        type: index % 3 == 0 ? .delete : .update, payload: content,
        hlcTimestamp: context.clock.text(20 + index),
        authorPublicKey: index % 4 == 0 ? content : nil,
        signature: index % 4 == 1 ? Data() : index % 4 == 2 ? content : nil)
    }
    return .run([
      Script([.reopen, .readAll, .latest, .apply(first), .readAll]),
      Script([.apply(first), .reopen, .readAll, .latest, .sweep(limit: 2)]),
      Script([
        .apply(first), .reopen, .apply(second), .readAll, .reopen, .readAll, .latest,
        .apply([context.record("id2", 8)]), .apply(first), .readAll, .latest,
      ]),
      Script([.apply(bytes), .reopen, .readAll, .latest, .reopen, .readAll]),
    ])
  }
}

/// All orders of some elements.
func permutations<Element>(of elements: [Element]) -> [[Element]] {
  guard let first = elements.first else { return [[]] }
  return permutations(of: Array(elements.dropFirst())).flatMap { rest in
    (0...rest.count).map { place in
      var order = rest
      order.insert(first, at: place)
      return order
    }
  }
}
