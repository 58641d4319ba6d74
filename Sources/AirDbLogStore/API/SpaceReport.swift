/// Where the bytes of a store go.
///
/// What a segment's records take is divided by their number: an estimate, unless all are of one size.
public struct SpaceReport: Sendable, Hashable {
  /// A segment that is full and has an index.
  public struct Segment: Sendable, Hashable {
    /// Its number, which its files are named by, in hexadecimal.
    public var number: UInt64 = 0
    /// Whether a compaction made it.
    public var isCompacted = false
    /// All records in it.
    public var records: UInt64 = 0
    /// Bytes of newest versions, deletions left out.
    public var liveBytes: UInt64 = 0
    /// Bytes of versions that a newer one has superseded.
    public var supersededBytes: UInt64 = 0
    /// Of those what a compaction would remove now: nobody keeps it.
    public var removableBytes: UInt64 = 0
    /// Bytes of deletions that are the newest version of their record.
    public var tombstoneBytes: UInt64 = 0
    /// Bytes of its index.
    public var indexBytes: UInt64 = 0
  }

  /// In the order of the log.
  public internal(set) var segments: [Segment] = []
  /// Bytes of the log that are not sealed.
  public internal(set) var unsealedBytes: UInt64 = 0
}

/// What a compaction would do.
public struct CompactionEstimate: Sendable, Hashable {
  /// Segments that would be replaced.
  public internal(set) var segments = 0
  /// Bytes that would be read.
  public internal(set) var bytesToRead: UInt64 = 0
  /// Bytes that the store would take less.
  public internal(set) var bytesFreed: UInt64 = 0
  /// Bytes that are needed for a while, at most at one time.
  public internal(set) var scratchBytes: UInt64 = 0
  /// The names of consumers that have not seen all of what would go: they follow latest versions, or
  /// are beyond their cap.
  public internal(set) var affectedConsumers: [String] = []
}

extension ChangeStore {
  /// What ``compact(progress:)`` would do now, about: records are taken to be of one size. Changes
  /// nothing.
  ///
  /// What is not sealed yet is left out.
  /// - Complexity: Without I/O to speak of, unless history is kept or deletions are to be forgotten:
  ///   then it reads the indexes of the segments concerned.
  public func compactionEstimate() throws(LogStoreError) -> CompactionEstimate {
    try reading { (engine) throws(LogStoreError) in try engine.compactionEstimate() }
  }

  /// Where the bytes of the store go, segment by segment.
  ///
  /// - Complexity: Reads the indexes of all segments once.
  public func spaceReport() throws(LogStoreError) -> SpaceReport {
    try reading { (engine) throws(LogStoreError) in try engine.spaceReport() }
  }
}
