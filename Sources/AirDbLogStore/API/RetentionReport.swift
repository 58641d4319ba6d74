#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Who keeps what from being cleaned away.
public struct RetentionReport: Sendable, Hashable {
  /// All consumers, in the order of the bytes of their names.
  public let consumers: [Consumer.Status]
  /// Bytes of the log of which every version is kept because some consumer asks for that.
  public let pinnedBytes: UInt64
  /// Bytes of the log altogether.
  public let logBytes: UInt64
  /// The sequence up to which deletions may have been cleaned away: a consumer before it has to be
  /// rebuilt. 0 if none have been.
  public let horizon: UInt64

  init(_ consumers: [Consumer.Status], _ state: Published, horizon: UInt64) {
    self.consumers = consumers
    pinnedBytes = consumers.map(\.pinnedBytes).max() ?? 0
    logBytes = state.bytes(behind: 0)
    self.horizon = horizon
  }
}

extension Consumer {
  /// How far a consumer is behind the end of the log.
  public struct Lag: Sendable, Hashable {
    /// Commits that were made behind its position. Those that have been cleaned away count, too, but for
    /// some around the ends of sessions.
    public let commits: UInt64
    /// Bytes of the log behind its position.
    public let bytes: UInt64
  }

  /// A consumer as it is now.
  public struct Status: Sendable, Hashable {
    /// The name.
    public let name: String
    /// How far it has come; nil: it is at the beginning.
    public let position: Position?
    /// What is kept for it.
    public let retention: Retention
    /// When it was registered.
    public let registeredDate: Date
    /// How far behind it is.
    public let lag: Lag
    /// Bytes of the log of which every version is kept for it, in whole segments.
    public let pinnedBytes: UInt64
    /// When the first of those will not be kept any more even if it stays where it is; nil if no age was
    /// given, or nothing is kept for it.
    public let pinnedUntil: Date?
    /// Whether it is so far behind that not every version is kept that it has not seen.
    public let isBeyondCap: Bool

    init(
      _ entry: ConsumerTable.Entry, _ state: Published, _ storeId: String, lag: Lag, now: Int64
    ) {
      name = String(decoding: entry.name, as: UTF8.self)
      position = entry.place.position(in: storeId)
      retention = Retention(entry.retention)
      registeredDate = Date(milliseconds: entry.registeredDate)
      self.lag = lag
      let pinnedAfter = entry.pinnedAfter(in: state, now: now)
      pinnedBytes = pinnedAfter.map { state.bytes(behind: $0) } ?? 0
      pinnedUntil = entry.pinnedUntil(in: state, now: now).map { Date(milliseconds: $0) }
      isBeyondCap = pinnedAfter.map { $0 > entry.place.sequence } ?? false
    }
  }
}
