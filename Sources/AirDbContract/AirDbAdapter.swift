/// The persistence under AirDB: a place that keeps the newest change of every record, and gives
/// changes back in the order of their timestamps.
///
/// AirDB calls these methods from any isolation, and may call them concurrently. An adapter is
/// therefore `Sendable`.
///
/// Timestamps are texts of a hybrid logical clock. "Ascending", "greater" and "newest" mean the
/// order of ``HlcComparator``, which is not the order of `String`.
public protocol AirDbAdapter: Sendable {
  /// The newest change of each record whose timestamp is greater than a cursor, in ascending
  /// order of timestamps.
  ///
  /// Deletions are changes too. To read on, pass the timestamp of the last change of one page as
  /// the cursor of the next; a page is empty only when nothing is left. An adapter must not end a
  /// page between changes of equal timestamps, as the next page would then skip the others: it
  /// gives more than `limit` changes instead.
  ///
  /// - Parameters:
  ///   - sinceHlcTimestamp: The cursor: only changes after this timestamp are given. Nil gives
  ///     changes from the first one on.
  ///   - limit: The number of changes after which the page ends. Zero or less gives none.
  /// - Throws: An error of the adapter, if it cannot read, or does not understand the cursor.
  func getChangesSince(sinceHlcTimestamp: String?, limit: Int) async throws -> [ChangeRecord]

  /// Stores changes, all of them or none.
  ///
  /// The last writer wins, for each record: a change is skipped when its timestamp is not greater
  /// than that of the stored change of the same collection and id. Changes of one call count as
  /// applied one after the other. Applying the same changes again has no effect.
  ///
  /// - Parameter changes: The changes, in any order.
  /// - Throws: An error of the adapter, if it cannot store the changes or refuses one of them.
  func applyChanges(_ changes: [ChangeRecord]) async throws

  /// The greatest timestamp that was ever stored, or nil if there was none.
  ///
  /// - Throws: An error of the adapter, if it cannot read.
  func getLatestHlc() async throws -> String?
}
