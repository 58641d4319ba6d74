/// What became of a migration between a store and another adapter.
///
/// See ``ChangeStore/migrate(from:pageSize:author:resuming:progress:settingAside:)``,
/// ``ChangeStore/migrate(to:pageSize:resuming:progress:)`` and <doc:MigratingAdapters>.
public struct Migration: Sendable, Hashable {
  /// Records that were copied, those of the calls before that were resumed among them. Copying a record
  /// that the target has already changes nothing there.
  public internal(set) var copied = 0
  /// Records that the last comparison looked at.
  public internal(set) var compared = 0
  /// Of those, records that are the same on both sides, byte for byte.
  public internal(set) var identical = 0
  /// Of those, records of which the target has a newer version, written there meanwhile or before.
  public internal(set) var newerInTarget = 0
  /// Records that only a comparison brought over: the source has received them since they were copied,
  /// or the target had lost them. Zero if nobody writes meanwhile.
  public internal(set) var late = 0
  /// Records that the store does not take, and that were handed to the caller.
  public internal(set) var setAside = 0
  /// Records that only the target has.
  ///
  /// Counted by a migration into another adapter. One into a store does not look for them, which takes
  /// more than the source: zero.
  public internal(set) var onlyInTarget = 0
  /// How many records differ after all.
  public internal(set) var differenceCount = 0
  /// The first of them, at most 100.
  public internal(set) var differences: [Difference] = []
  /// The latest timestamp that the source claims, if it is later than all that it gave: it may hide
  /// changes, or have forgotten a deletion.
  public internal(set) var latestNotGiven: String?

  /// Whether the target has all that the source gave in the comparison, or something newer, byte for
  /// byte. Not if a record was set aside.
  public var isVerified: Bool { differenceCount == 0 && setAside == 0 }

  /// A record that the target does not have as the source has it.
  public struct Difference: Sendable, Hashable {
    /// In which way.
    public enum Kind: Sendable, Hashable {
      /// The target does not give it, although it was applied there.
      case missing
      /// The target has an older version, although the newer one was applied there.
      case older
      /// The target has other content of the same timestamp. It keeps that, as last writer wins demands:
      /// a sign that two writers share a node, or that the target does not keep records as they came.
      case conflicting
    }

    /// The record.
    public let key: RecordKey
    /// In which way it differs.
    public let kind: Kind
    /// The timestamp of the source's version.
    public let timestamp: String
  }

  /// How far a migration is: what the next call needs to go on from there.
  ///
  /// Keep it where the app keeps such things, in a file or with its settings. It is not kept in the
  /// store, where it would be a record that goes to all peers. It may be lost, or be an old one, at no
  /// cost but time: what is copied twice is applied once, and the comparison at the end begins at the
  /// beginning, whatever a checkpoint says. One of another store, or of the other direction, is
  /// ignored.
  public struct Checkpoint: Sendable, Hashable, Codable {
    /// Records that have been copied.
    public internal(set) var copied = 0
    /// Whether all have been, so that only the comparison is left.
    public internal(set) var isCopied = false
    /// The timestamp up to which it has come.
    public internal(set) var timestamp: String?
    let storeId: String
    let isIntoStore: Bool

    init(storeId: String, isIntoStore: Bool) {
      self.storeId = storeId
      self.isIntoStore = isIntoStore
    }
  }

  /// How far a migration is, for whoever waits for it.
  public struct Progress: Sendable, Hashable {
    /// What is being done.
    public enum Phase: Sendable, Hashable {
      /// Records are copied.
      case copying
      /// All records of both sides are compared.
      case comparing
    }

    /// What is being done.
    public let phase: Phase
    /// Records that this phase is done with.
    public let records: Int
    /// How many there will be, about; nil if that is not known.
    public let expected: Int?
    /// What to keep for a next call. All before it is durable in a ``ChangeStore``, also against a loss
    /// of power; what another adapter makes durable only its author knows.
    public let checkpoint: Checkpoint
  }
}

extension Migration {
  mutating func add(_ kind: Difference.Kind, _ record: ChangeRecord) {
    differenceCount += 1
    guard differences.count < 100 else { return }
    differences.append(
      Difference(key: RecordKey(record), kind: kind, timestamp: record.hlcTimestamp))
  }
}

/// The order of the timestamps of a store.
struct TimestampOrder {
  private let isOfBytes: Bool

  init(_ store: ChangeStore) throws(LogStoreError) {
    isOfBytes = try store.engine.options.format == .utf8Order
  }

  /// -1, 0 or 1, as the first is before, equal to, or after the second.
  func compare(_ first: String, _ second: String) -> Int {
    guard isOfBytes else { return HlcComparator.compare(first, second) }
    if first.utf8.elementsEqual(second.utf8) { return 0 }
    return first.utf8.lexicographicallyPrecedes(second.utf8) ? -1 : 1
  }

  /// Puts a timestamp in the place of the greatest if it is greater; answers whether it is.
  @discardableResult
  func keepGreatest(_ greatest: inout String?, _ timestamp: String) -> Bool {
    if let greatest, compare(timestamp, greatest) <= 0 { return false }
    greatest = timestamp
    return true
  }
}
