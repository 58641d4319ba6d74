/// What a commit survives once it has been acknowledged.
public enum Durability: Sendable, Hashable, Codable {
  /// The loss of power: each commit, or each group of concurrent ones, waits for the storage
  /// device (`fdatasync`; `F_FULLFSYNC` on Apple platforms).
  case powerLoss
  /// The death of the process, but not a loss of power. The store syncs in the background, at the
  /// latest after one second or 8 MiB; what a power loss takes is a suffix of the commits.
  case processCrash
}

/// How a store is opened. A value that is recorded in the store, such as ``timestampFormat``, counts when
/// the store is created; later, nil takes what is recorded, and opening it with another one is an
/// error.
public struct Configuration: Sendable {
  /// What commits survive. Not recorded in the store.
  public var durability: Durability = .powerLoss

  /// The size of the cache of blocks, as they are stored, and of index pages, in bytes. A store has
  /// its own.
  public var cacheBytes: Int = 16 << 20

  /// The author label of commits that are given none; at most 1,024 bytes of UTF-8.
  public var authorLabel: String = ""

  /// How timestamps are read and ordered. Recorded; nil is what the store has recorded, and
  /// ``TimestampFormat/hybrid`` for a new one.
  public var timestampFormat: TimestampFormat?

  /// The raw values of `MutationType` that are deletions; at most 64. Recorded; nil is what the store
  /// has recorded, and 2 alone for a new one.
  public var deletionValues: Set<Int>?

  /// The node of the store's own clock, with which it stamps what is changed by
  /// ``ChangeStore/put(_:forKey:author:)`` and the like: 1 to 900 bytes of UTF-8. Not recorded.
  ///
  /// No other store may stamp with the same node, so it must not come along when a store is restored from a
  /// backup or copied: see ``InstallationId``. Nil is a random one each time that the store is opened,
  /// which is as safe, but peers then see many nodes of one device.
  public var clockNode: String?

  /// Opens without the writer's lock, beside a live writer if there is one, and writes nothing.
  public var isReadOnly = false

  /// Whether a store is created where there is none. Never for ``isReadOnly``.
  public var createsIfMissing = true

  /// Open descriptors of sealed segments and indexes, at most; at least 2 are taken. A few more are
  /// used for the tail.
  public var maximumOpenFiles: Int = 32

  /// When superseded versions are cleaned away.
  public var cleaning = CleaningPolicy.automatic

  /// How long superseded versions stay in the history, by the dates of their commits; zero for no
  /// longer than consumers pin them.
  public var historyRetention: Duration = .zero

  /// How long deletions are remembered, by the dates of their commits; nil for ever.
  ///
  /// Forgetting them saves space and costs safety: a peer that comes back later with an old version
  /// brings the record back, unless ``resurrections`` keeps it out; and a reader that has not seen the
  /// deletion by then will never hear of it. Only deletions that all consumers have acknowledged, and
  /// whose records have no older version left in the store, are forgotten.
  public var tombstoneRetention: Duration?

  /// What becomes of a change that may bring back a record whose deletion has been forgotten.
  public var resurrections = ResurrectionRule.refuse

  /// The class of data protection of the store's directory, and so of all its files; nil leaves it
  /// to the system. Set when the store is created, and for its copies. Without effect elsewhere than
  /// on Apple platforms.
  public var fileProtection: FileProtection?

  /// Whether backups of the device leave the store out. Set when the store is created, and for its
  /// copies; ``ChangeStore/isExcludedFromBackup`` reads it back. Without effect elsewhere than on
  /// Apple platforms.
  public var isExcludedFromBackup = false

  /// Called with what happens inside: recoveries, repairs, failures. From any thread, also while the
  /// store holds locks: it must return soon, and calling the store from it may never return.
  public var eventHandler: (@Sendable (StoreEvent) -> Void)?

  /// Bytes at which a segment is sealed.
  package var segmentBytes: UInt64 = 16 << 20
  /// Records at which a segment is sealed.
  package var segmentRecords = 65_536
  /// Raw payload bytes of a block.
  package var blockBytes = 8 << 10
  /// Bytes of the log that a clean open may have to replay: closing seals a longer tail.
  package var replayBytes: UInt64 = 256 << 10

  /// The defaults, which the properties state.
  public init() {}

  /// For an app extension: less than 12 MiB of heap altogether.
  public static var appExtension: Configuration {
    var configuration = Configuration()
    configuration.cacheBytes = 2 << 20
    configuration.maximumOpenFiles = 8
    configuration.segmentBytes = 2 << 20
    configuration.segmentRecords = 8_192
    return configuration
  }
}

/// When the files of a store can be read while the device is locked: Apple's classes of data
/// protection.
///
/// A store opens files again and again, since it keeps few of them open. Under a class that forbids
/// this while the device is locked, calls then fail with `protectedDataUnavailable`: nothing is
/// damaged, and they succeed after the device has been unlocked.
public enum FileProtection: Sendable, Hashable {
  /// Never while the device is locked. For stores that are used in the foreground only.
  case complete
  /// Files that are open stay so; none is opened again. For a store that goes on for a while after
  /// the device has been locked.
  case completeUnlessOpen
  /// From the first unlock after a start on: works in the background. What the system does by
  /// itself.
  case completeUntilFirstUserAuthentication
  /// Always: Apple's `none`.
  case unprotected
}

/// How the timestamps of a store are written and ordered.
public enum TimestampFormat: Sendable, Hashable {
  /// A physical clock, a counter and a node: `1386492976000-0000-af4b9bf3d4e70612`,
  /// `2023-11-14T22:13:20.544Z-0000-node`. Ordered by the values of the parts.
  case hybrid
  /// Any text that is not empty, ordered by its UTF-8 bytes.
  case utf8Order
}

/// Something that happened inside a store and that no call reports.
public enum StoreEvent: Sendable {
  /// An open found the store not closed and cut what was not durable: so many bytes behind the
  /// last good commit, whose sequence is given.
  case recovered(discardedBytes: UInt64, lastSequence: UInt64, replayedRecords: Int)
  /// An index or the liveness was absent or damaged and has been built again from the log.
  case repaired(file: String, reason: String)
  /// A segment was sealed.
  case sealed(segment: UInt64, records: UInt64, bytes: UInt64)
  /// Neighbouring segments were compacted into one.
  case compacted(segments: Int, bytesBefore: UInt64, bytesAfter: UInt64)
  /// Work in the background failed; the store goes on as the error says.
  case failed(LogStoreError)
  /// The platform could give only a weaker durability than was asked for.
  case durabilityReduced
}
