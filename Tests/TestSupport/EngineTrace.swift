package import AirDbLogStore

/// What a run has done to a store so far, and so what a store may be found to hold later: guarantees
/// G1 and G2 as bounds on a prefix of the commit order.
///
/// Invariant: `durable <= visible <= commits.count <= visible + attempted in one group`.
package struct EngineTrace: Sendable {
  /// A batch that stored something, or may have.
  package struct Commit: Sendable {
    package let batch: [ChangeRecord]
    /// Known once it was acknowledged, or seen in a store that was opened later.
    package var sequence: UInt64?
  }

  /// In the order in which they were handed to the store. Those beyond `visible` have not been
  /// acknowledged.
  package private(set) var commits: [Commit] = []
  /// What the store holds after each number of commits.
  package private(set) var models = [ReferenceModel()]
  /// How many survive the death of the process.
  package private(set) var visible = 0
  /// How many survive the loss of power.
  package private(set) var durable = 0
  /// The greatest sequence that was ever acknowledged or seen.
  package private(set) var greatestSequence: UInt64 = 0
  /// Known once the store has been opened: then it is there for good.
  package var storeId: String?
  /// The purges of tombstones, in order; those beyond `purgesDone` may happen.
  package var purges: [Purge] = []
  package var purgesDone = 0
  /// How often commits may have been lost.
  package private(set) var losses = 0

  /// What has been purged so far, and the horizon that goes with it.
  package struct Purge: Sendable {
    package var horizon: UInt64
    package var timestamp: String
    /// The timestamps of the tombstones.
    package var tombstones: [ReferenceModel.Key: String]

    package init(
      horizon: UInt64, timestamp: String, tombstones: [ReferenceModel.Key: String]
    ) {
      self.horizon = horizon
      self.timestamp = timestamp
      self.tombstones = tombstones
    }
  }

  package init() {}

  /// The newest versions with every batch that may have been stored.
  package var newest: ReferenceModel { models[commits.count] }
}

extension EngineTrace {
  /// What a store with that many commits and purges answers.
  package func model(_ count: Int, purges: Int) -> ReferenceModel {
    purges == 0 ? models[count] : models[count].purged(self.purges[purges - 1].tombstones)
  }

  /// A batch is about to be handed to the store. Answers what must become of it, by the model.
  package mutating func begin(_ batch: [ChangeRecord]) throws -> ReferenceModel.Outcome {
    var model = newest
    let outcome = try model.apply(batch)
    if outcome.accepted > 0 {
      commits.append(Commit(batch: batch))
      models.append(model)
    }
    return outcome
  }

  /// The store acknowledged everything that was handed to it.
  package mutating func acknowledge(_ sequence: UInt64, durably isDurable: Bool) throws {
    guard sequence > greatestSequence else {
      throw OracleViolation("sequence \(sequence) was given after \(greatestSequence)")
    }
    greatestSequence = sequence
    commits[commits.count - 1].sequence = sequence
    visible = commits.count
    if isDurable { durable = visible }
  }

  /// The store refused the last batch: "not committed" means never.
  package mutating func refuse() { truncate(to: visible) }

  /// Everything that is visible has been made durable.
  package mutating func makeDurable() { durable = visible }

  /// Power was lost: what was only visible may be gone.
  package mutating func losePower() {
    visible = durable
    losses += 1
  }

  /// A store that was opened holds so many commits: those after them are lost, for good.
  package mutating func resolve(_ count: Int, lastSequence: UInt64) throws {
    guard count == 0 || commits[count - 1].sequence ?? lastSequence == lastSequence else {
      throw OracleViolation(
        "commit \(count) was \(commits[count - 1].sequence ?? 0) and is \(lastSequence) now")
    }
    if count < commits.count { losses += 1 }
    truncate(to: count)
    if count > 0 { commits[count - 1].sequence = lastSequence }
    visible = count
    durable = count
    greatestSequence = max(greatestSequence, lastSequence)
  }

  private mutating func truncate(to count: Int) {
    commits.removeLast(commits.count - count)
    models.removeLast(models.count - 1 - count)
  }
}

/// A store that is not what its trace allows.
package struct OracleViolation: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}
