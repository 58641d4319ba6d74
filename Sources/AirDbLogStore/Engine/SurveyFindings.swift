/// What a survey found out by reading a segment and its index, kept as long as it is true: a run looks at
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

  /// Where in a segment the first record is that is kept in any case.
  struct Boundary: Sendable {
    /// As that of an entry; see ``SealedIndex/HlcEntry/place``.
    var place = UInt64.max
    /// Records before it.
    var records: UInt64 = 0
    /// The last commit that was looked at before it, and the one that it is at.
    var last: Neighbour?
    var first: Neighbour?

    struct Neighbour: Sendable {
      var sequence: UInt64
      var date: Int64
    }

    /// Whether it is where a rule has it: sequences and dates both grow along the log.
    fileprivate func holds(_ isKept: (UInt64, Int64) -> Bool) -> Bool {
      if let last, isKept(last.sequence, last.date) { return false }
      return first.map { isKept($0.sequence, $0.date) } ?? false
    }
  }

  /// What it is that is kept.
  enum Rule: Sendable {
    case versions
    case tombstones
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
    var boundaries: [Rule: Boundary] = [:]
  }

  private let known = Locked(Known())

  /// Where what a rule keeps begins.
  func boundary(
    _ rule: Rule, _ isKept: (UInt64, Int64) -> Bool, _ find: () throws(LogStoreError) -> Boundary
  ) throws(LogStoreError) -> Boundary {
    if let known = known.withLock({ $0.boundaries[rule] }), known.holds(isKept) { return known }
    let found = try find()
    known.withLock { $0.boundaries[rule] = found }
    return found
  }

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
