/// What a survey found out by reading a segment's index, kept as long as it is true: a run looks at
/// all segments again after each of its steps.
///
/// Usable from any thread.
final class SurveyFindings: Sendable {
  /// What a finding rests on. Dead entries never come back to life, so that their number says which
  /// they are.
  struct Basis: Sendable, Equatable {
    /// Where what is kept in any case begins.
    var place: UInt64
    var dead: UInt64
    /// The segments before it.
    var earlier: [UInt64] = []
  }

  struct Purgeable: Sendable {
    /// Tombstones that may go.
    var count: UInt64 = 0
    /// Those that older versions keep from going,
    var held: UInt64 = 0
    /// and the segments that have these.
    var holders: Set<UInt64> = []
  }

  private struct Known: Sendable {
    var live: (basis: Basis, count: UInt64)?
    var purgeable: (basis: Basis, found: Purgeable)?
  }

  private let known = Locked(Known())

  /// The live entries before a place.
  func live(
    _ basis: Basis, _ count: () throws(LogStoreError) -> UInt64
  ) throws(LogStoreError) -> UInt64 {
    if let live = known.withLock({ $0.live }), live.basis == basis { return live.count }
    let count = try count()
    known.withLock { $0.live = (basis, count) }
    return count
  }

  /// The tombstones before a place.
  func purgeable(
    _ basis: Basis, _ find: () throws(LogStoreError) -> Purgeable
  ) throws(LogStoreError) -> Purgeable {
    if let found = known.withLock({ $0.purgeable }), found.basis == basis { return found.found }
    let found = try find()
    known.withLock { $0.purgeable = (basis, found) }
    return found
  }
}
