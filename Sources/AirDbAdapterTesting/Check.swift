#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension AdapterConformance {
  /// One rule of the contract.
  ///
  /// Checks are equal if their ``id`` is.
  public struct Check: Sendable, Identifiable {
    /// A name in lower case, which stays the same in later versions.
    public let id: String

    /// The rule, in one sentence.
    public let title: String

    /// What the rule is for, and what breaks it.
    public let explanation: String

    let plan: @Sendable (PlanContext) -> Plan

    init(
      _ id: String, title: String, explanation: String,
      plan: @escaping @Sendable (PlanContext) -> Plan
    ) {
      self.id = id
      self.title = title
      self.explanation = explanation
      self.plan = plan
    }

    /// All checks, the simplest first.
    public static let all: [Check] = [
      empty, order, strictCursor, noLimit, limit, latest,
      lastWriterWins, staleChanges, newestOnly, duplicatesInBatch, redelivery, deletions,
      comparator, equalTimestamps,
      keyPairs, keyBytes, fields, largeFields, unknownTypes,
      batchAtomicity, reopening, concurrentWriters, concurrentReaders, cancellation,
      randomScripts,
    ]
  }
}

extension AdapterConformance.Check: Hashable, CustomStringConvertible {
  /// Whether the ids are equal.
  public static func == (lhs: Self, rhs: Self) -> Bool { lhs.id == rhs.id }

  /// Hashes the id.
  public func hash(into hasher: inout Hasher) { hasher.combine(id) }

  /// The id.
  public var description: String { id }
}

/// What a check does.
enum Plan {
  case run([Script])
  case skip(String)
}

/// What the plan of a check depends on.
struct PlanContext {
  let options: AdapterConformance.Options
  let canReopen: Bool

  var clock: SampleClock { SampleClock(options) }

  /// What payloads, keys and signatures are made of.
  var contents: [Data] { SampleBytes.all + options.payloads }

  /// A record of the samples.
  func record(
    _ id: String, _ time: Int, counter: Int = 0, collection: String = "notes",
    type: MutationType = .insert
  ) -> ChangeRecord {
    record(id, at: clock.text(time, counter: counter), collection: collection, type: type)
  }

  func record(
    _ id: String, at timestamp: String, collection: String = "notes",
    type: MutationType = .insert, content: String? = nil
  ) -> ChangeRecord {
    ChangeRecord(
      id: id, collection: collection, type: type,
      payload: Data((content ?? "\(id) at \(timestamp)").utf8), hlcTimestamp: timestamp,
      authorPublicKey: nil, signature: nil)
  }
}
