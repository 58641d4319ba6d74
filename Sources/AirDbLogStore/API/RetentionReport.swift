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

  init(
    _ consumers: [ConsumerTable.Entry], _ state: Published, _ manifest: Manifest, now: Int64
  ) {
    self.consumers = consumers.map { Consumer.Status($0, state, manifest.storeId, now: now) }
    pinnedBytes = self.consumers.map(\.pinnedBytes).max() ?? 0
    logBytes = state.bytes(behind: 0)
    horizon = manifest.retentionHorizon
  }
}

extension Consumer {
  /// A consumer as it is now.
  public struct Status: Sendable, Hashable {
    /// The name.
    public let name: String
    /// How far it has come; nil: it is at the beginning.
    public let position: Position?
    /// What is kept for it.
    public let retention: Retention
    /// When it was registered, in milliseconds since 1970.
    public let registeredDate: Int64
    /// Bytes of the log behind its position, in whole segments.
    public let lagBytes: UInt64
    /// Bytes of the log of which every version is kept for it, in whole segments.
    public let pinnedBytes: UInt64
    /// When the first of those will not be kept any more even if it stays where it is, in milliseconds
    /// since 1970; nil if no age was given, or nothing is kept for it.
    public let pinnedUntil: Int64?
    /// Whether it is so far behind that not every version is kept that it has not seen.
    public let isBeyondCap: Bool

    init(_ entry: ConsumerTable.Entry, _ state: Published, _ store: StoreId, now: Int64) {
      name = String(decoding: entry.name, as: UTF8.self)
      position = entry.place.position(in: store)
      retention = Retention(entry.retention)
      registeredDate = entry.registeredDate
      lagBytes = state.bytes(behind: entry.place.sequence)
      let pinnedAfter = entry.pinnedAfter(in: state, now: now)
      pinnedBytes = pinnedAfter.map { state.bytes(behind: $0) } ?? 0
      pinnedUntil = entry.pinnedUntil(in: state, now: now)
      isBeyondCap = pinnedAfter.map { $0 > entry.place.sequence } ?? false
    }
  }
}
