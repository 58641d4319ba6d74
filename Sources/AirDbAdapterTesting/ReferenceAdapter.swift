/// An adapter in memory that is plain enough to be seen to be right: the contract as code.
///
/// It keeps the newest version of each record in a dictionary, and sorts it for each page. Texts are
/// compared by their UTF-8 bytes, timestamps by `HlcComparator`, which orders every text: it refuses
/// nothing. Changes of equal timestamps come in the order of their keys.
///
/// For tests, and to compare other adapters with. Reads take O(*n* log *n*) in the number of
/// records.
public actor ReferenceAdapter: AirDbAdapter {
  private var state = ReferenceState()

  /// Creates an adapter without changes.
  public init() {}

  /// The newest change of each record after a cursor, in ascending order.
  public func getChangesSince(sinceHlcTimestamp: String?, limit: Int) -> [ChangeRecord] {
    state.page(after: sinceHlcTimestamp, limit: limit)
  }

  /// Stores the changes that are newer than what is stored.
  public func applyChanges(_ changes: [ChangeRecord]) {
    state.apply(changes)
  }

  /// The greatest timestamp that was ever stored, or nil if there was none.
  public func getLatestHlc() -> String? {
    state.latest
  }
}
