#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

// Looking at a store as a whole: figures, a full check, a copy.
extension ChangeStore {
  /// Figures about the store as it is now.
  ///
  /// - Parameter countingDeletions: Whether to find out ``Statistics/liveDeletions``.
  /// - Complexity: In proportion to the number of segments and of records that are not sealed; loads
  ///   the liveness if that has not happened yet. To count deletions, in proportion to all records:
  ///   every page of the indexes that is in HLC order is read.
  public func statistics(
    countingDeletions: Bool = false
  ) throws(LogStoreError) -> Statistics {
    try reading { (engine) throws(LogStoreError) in
      try engine.statistics(countingDeletions: countingDeletions)
    }
  }

  /// Checks everything: each checksum and each rule of the format in every frame, and the indexes, the
  /// liveness and the manifest against the frames.
  ///
  /// It sees one state of the store; commits go on meanwhile. What it finds it reports; it changes
  /// nothing. Damage that can be built again from the log is marked as such. Behind a damaged frame it
  /// goes on with the next sound one; the index and the liveness of such a segment are not looked at,
  /// since they would have to be compared with what is lost. In a read-only store it begins again if the
  /// writer replaces files meanwhile, and any does if it is reopened.
  ///
  /// - Parameter progress: Called now and then with the part that is done, 0...1.
  /// - Throws: ``LogStoreError`` with `cancelled` if the task was cancelled; another code if the files
  ///   could not be read. Damage is not thrown but reported.
  /// - Complexity: Reads all bytes of the store; memory for the rows of one segment.
  public func verify(
    progress: (@Sendable (Double) -> Void)? = nil
  ) throws(LogStoreError) -> VerificationReport {
    try reading { (engine) throws(LogStoreError) in
      let report = try Verifier(engine, progress).run()
      if report.isClean { return report }
      guard try isCurrent(engine) else {
        throw LogStoreError(.inputOutput, "The store was reopened during the check.")
      }
      return report
    }
  }

  /// Copies the store, as one state of it shows it, into a directory that must not exist yet, while
  /// commits go on. Its parent must exist.
  ///
  /// The copy is complete and durable when this returns; after a crash before that it has no manifest
  /// and is no store. It is the same store at another place: one of the two should not be written any
  /// more, since both would give out the same sequences. Its consumers are as far as they were when the
  /// copy was begun: one that goes on with the copy gets again what it has had since.
  ///
  /// - Throws: ``LogStoreError`` with `alreadyExists`; `directoryNotFound` if the parent does not exist;
  ///   `expired` if the store was reopened meanwhile, `closed` or `suspended` if it was closed or
  ///   suspended; `staleReader` if it is open read-only and the writer replaced its files meanwhile;
  ///   `noSpace` and the like, or `corrupt`. What has been copied by then stays, is no store, and is to
  ///   be removed by the caller.
  /// - Complexity: Copies all bytes of the store.
  public func backUp(to path: String) throws(LogStoreError) {
    if let writer = try writerIfAny { try writer.synchronize() }
    let engine = try engine
    do throws(LogStoreError) {
      try Backup(engine, to: path).run()
    } catch {
      // Whatever failed, it may be for files that went with the engine.
      guard error.code == .inputOutput || error.code == .corrupt, try !isCurrent(engine) else {
        throw error
      }
      throw LogStoreError(
        .expired, "The store was reopened while it was copied; the copy is not complete.",
        file: path)
    }
  }

  /// Copies the store. See ``backUp(to:)-(String)``.
  public func backUp(to url: URL) throws(LogStoreError) {
    try backUp(to: url.path)
  }

  /// Whether backups of the device leave the store out, as the system has it now. False where there
  /// are no such backups. See ``Configuration/isExcludedFromBackup``.
  public var isExcludedFromBackup: Bool {
    get throws(LogStoreError) {
      let engine = try engine
      do throws(SystemError) {
        return try engine.platform.isExcludedFromBackup(engine.directory.path)
      } catch {
        throw LogStoreError(error, "read an attribute", file: engine.directory.path)
      }
    }
  }
}

extension ChangeStore {
  /// Cleans away all superseded versions that nobody needs any more, now and on this thread.
  ///
  /// Commits and reads go on meanwhile. Files go when no running read uses them. Cancelling the task
  /// ends it with `cancelled`; what had been done by then stays done. On a nearly full disk it does less
  /// at a time.
  ///
  /// It goes step by step, each of which takes effect as a whole. If it throws, the one under way has
  /// changed nothing, and those before it stay done, also where they have forgotten deletions:
  /// ``StoreEvent/compacted(segments:bytesBefore:bytesAfter:)`` tells of each, and
  /// ``RetentionReport/horizon`` how far deletions are forgotten.
  ///
  /// - Parameter progress: Called now and then with the part that is done, 0...1.
  /// - Throws: ``LogStoreError`` with `noSpace` if not even the smallest step found room; `cancelled`;
  ///   with `outcomeUnknown` the step under way may or may not have taken effect, which
  ///   ``ChangeStore/reopen()`` finds out.
  /// - Complexity: Rewrites the live records of every segment that has superseded ones; needs as much
  ///   space again as the largest run of them has live bytes: at most 256 MiB, unless a single commit
  ///   was larger.
  @discardableResult
  public func compact(
    progress: (@Sendable (Double) -> Void)? = nil
  ) throws(LogStoreError) -> CompactionResult {
    let isCancelled: @Sendable () -> Bool = { Task.isCancelled }
    let outcome = try cleaner.run(.everything, isCancelled: isCancelled, progress: progress)
    return CompactionResult(
      segments: outcome.segments, bytesBefore: outcome.bytesBefore,
      bytesAfter: outcome.bytesAfter, recordsDropped: outcome.recordsDropped,
      tombstonesPurged: outcome.tombstonesPurged)
  }
}

/// What a compaction did.
public struct CompactionResult: Sendable, Hashable {
  /// Segments that were replaced.
  public let segments: Int
  /// Of those, with their indexes.
  public let bytesBefore: UInt64
  /// Of what replaced them.
  public let bytesAfter: UInt64
  /// Superseded records that were left out.
  public let recordsDropped: UInt64
  /// Deletions that have been forgotten. See ``Configuration/tombstoneRetention``.
  public let tombstonesPurged: UInt64
}

/// Figures about a store.
public struct Statistics: Sendable, Hashable {
  /// The newest versions of all keys, deletions among them.
  public var liveRecords: UInt64 = 0
  /// Deletions among them; nil unless they were counted.
  public var liveDeletions: UInt64?
  /// All records in the log, superseded ones among them.
  public var records: UInt64 = 0
  /// Segments that are full and have an index on disk.
  public var sealedSegments = 0
  /// Bytes of the sealed segments.
  public var segmentBytes: UInt64 = 0
  /// Bytes of their indexes.
  public var indexBytes: UInt64 = 0
  /// Bytes of the segments that are not sealed, as far as the log goes.
  public var unsealedBytes: UInt64 = 0
  /// Records in them.
  public var unsealedRecords: UInt64 = 0
  /// Bytes of the cache that are in use now.
  public var cacheBytes = 0
  /// Filters, fences and bitmaps that have been loaded, and what is known of where commits are.
  public var residentIndexBytes = 0
  /// 32 hexadecimal digits.
  public var storeId = ""
  /// How timestamps are read and ordered.
  public var timestampFormat = TimestampFormat.hybrid
  /// The mutation types that are deletions.
  public var deletionValues: Set<Int> = []
  /// The version of the file format.
  public var formatVersion = 0
  /// The generation of the manifest.
  public var generation: UInt64 = 0
  /// How many times the store has been opened and written to, one that is open now included once it has
  /// written.
  public var sessions: UInt32 = 0
  /// When the store was created.
  public var createdDate: Date { Date(milliseconds: createdMilliseconds) }
  /// When the last commit was made; for an empty store ``createdDate``.
  public var lastCommitDate: Date { Date(milliseconds: lastCommitMilliseconds) }
  /// The dates as the log has them, in milliseconds since 1970.
  package var createdMilliseconds: Int64 = 0
  package var lastCommitMilliseconds: Int64 = 0
}

/// What a full check found.
public struct VerificationReport: Sendable {
  /// One thing that is wrong.
  public struct Problem: Sendable {
    /// The file.
    public let file: String
    /// Where in it, if that is known.
    public let offset: UInt64?
    /// What is wrong, as a sentence without a full stop.
    public let reason: String
    /// Whether it lies in data that a writing open builds again from the log.
    public let isDerived: Bool
  }

  /// What is wrong, in the order in which it was found.
  public internal(set) var problems: [Problem] = []
  /// Records that were decoded, superseded ones among them.
  public internal(set) var checkedRecords: UInt64 = 0
  /// Commits that were checked, those that a compaction has packed into one frame one by one.
  public internal(set) var checkedCommits: UInt64 = 0
  /// Bytes of the log that were checked.
  public internal(set) var checkedBytes: UInt64 = 0
  /// Bytes of the log that could not be: damaged frames, and what lies between a damaged frame header
  /// and the next sound one.
  public internal(set) var uncheckedBytes: UInt64 = 0

  /// Whether nothing is wrong.
  public var isClean: Bool { problems.isEmpty }
}
