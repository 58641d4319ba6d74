#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A batch that was applied, as history shows it.
public struct Commit: Sendable {
  /// Behind this commit.
  public let position: Position
  /// When it was made, to the millisecond. It never decreases from one commit to the next, whatever the
  /// time does, and is not before the timestamps that the store itself gave the commit.
  public var date: Date { Date(milliseconds: milliseconds) }
  /// The date as the log has it, in milliseconds since 1970.
  package let milliseconds: Int64
  /// The author label that ``ChangeStore/apply(_:author:)`` was given, or the configuration's.
  public let author: String
  /// Its changes that are still in the log and that the filter lets pass, in the order of the batch; at
  /// least one. A change that a later one superseded goes when it is cleaned away.
  public let changes: [Change]
}

/// One change of a commit. Its payload, author key and signature are read on demand.
///
/// A change that is kept keeps the file that it is in, also when that has been compacted: hold on to
/// records rather than to changes.
public struct Change: Sendable {
  /// The record that was changed.
  public let key: RecordKey
  /// What was done to it.
  public let type: MutationType
  /// The timestamp, as it came in.
  public let hlcTimestamp: String
  private let logged: Engine.LoggedChange

  init(_ logged: Engine.LoggedChange) {
    key = RecordKey(collection: logged.collection, id: logged.id)
    type = logged.type
    hlcTimestamp = logged.hlc
    self.logged = logged
  }

  /// The whole record, read and decompressed now. What was fetched stays readable while the log is
  /// compacted, until the store is closed, suspended or reopened.
  ///
  /// - Throws: ``LogStoreError`` with `closed` or `expired`; `staleReader` if the store is open
  ///   read-only and its writer has removed the file meanwhile; another code if the file cannot be read.
  /// - Complexity: A read of one block, or none if that is cached.
  public func record() throws(LogStoreError) -> ChangeRecord { try logged.record() }
}

/// A page of history.
public struct CommitPage: Sendable {
  /// In the order of the log. May be empty although there is more: see ``next``.
  public let commits: [Commit]
  /// Where the next page goes on: behind all that was looked at, whether the filter let it pass or
  /// not. Nil only if the log was empty.
  public let next: Position?
  /// Whether this was the end of the log when it was read. A page that ended at its limit may say no
  /// and be followed by an empty one.
  public let isLast: Bool
}
