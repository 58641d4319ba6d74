package import HlcText

/// The configuration of a store in the terms of the engine.
package struct EngineOptions: Sendable {
  package var durability: Durability
  package var cacheBytes: Int
  package var authorLabel: [UInt8]
  /// What was asked for; nil if what is recorded is to count.
  package var requestedFormat: HlcFormat?
  /// The same; ascending.
  package var requestedDeletionValues: [Int64]?
  /// What counts: what the store has recorded once that is known.
  package private(set) var format: HlcFormat
  /// The same; ascending.
  package private(set) var deletionValues: [Int64]
  package var isReadOnly: Bool
  package var createsIfMissing: Bool
  package var maximumOpenFiles: Int
  package var segmentBytes: UInt64
  package var segmentRecords: Int
  package var blockBytes: Int
  package var replayBytes: UInt64
  package var cleaning: CleaningPolicy
  /// 0: superseded versions are kept for consumers only.
  package var historyMilliseconds: Int64
  /// Nil: tombstones are kept for ever.
  package var tombstoneMilliseconds: Int64?
  package var acceptsResurrections: Bool
  /// For a directory that this creates; nil if there is nothing to set.
  package var attributes: DirectoryAttributes?
  /// The node of the store's clock; nil for a random one of each writer.
  package var clockNode: String?
  package var eventHandler: (@Sendable (StoreEvent) -> Void)?

  package init(_ configuration: Configuration) throws(LogStoreError) {
    durability = configuration.durability
    cacheBytes = max(0, configuration.cacheBytes)
    authorLabel = Array(configuration.authorLabel.utf8)
    requestedFormat = configuration.timestampFormat.map { $0 == .hybrid ? .hybrid : .utf8Order }
    requestedDeletionValues = configuration.deletionValues.map { $0.map { Int64($0) }.sorted() }
    format = requestedFormat ?? .hybrid
    deletionValues = requestedDeletionValues ?? [2]
    isReadOnly = configuration.isReadOnly
    createsIfMissing = configuration.createsIfMissing && !configuration.isReadOnly
    maximumOpenFiles = configuration.maximumOpenFiles
    segmentBytes = configuration.segmentBytes
    segmentRecords = configuration.segmentRecords
    blockBytes = configuration.blockBytes
    replayBytes = configuration.replayBytes
    cleaning = configuration.cleaning
    historyMilliseconds = Self.bounded(configuration.historyRetention)
    tombstoneMilliseconds = configuration.tombstoneRetention.map(Self.bounded)
    acceptsResurrections = configuration.resurrections == .accept
    attributes = DirectoryAttributes(configuration)
    clockNode = configuration.clockNode
    eventHandler = configuration.eventHandler
    if let clockNode { try HybridLogicalClock.check(node: clockNode) }
    guard authorLabel.count <= Limits.label else {
      throw LogStoreError(
        .limitExceeded,
        "The author label has \(authorLabel.count) bytes; at most 1,024 are allowed.")
    }
    guard deletionValues.count <= Limits.deletionValues else {
      throw LogStoreError(
        .limitExceeded, "There are \(deletionValues.count) deletion values; at most 64 are allowed."
      )
    }
  }

  /// The options for a store with this manifest, which must fit what was asked for.
  package func resolved(for manifest: Manifest) -> EngineOptions {
    var options = self
    options.format = HlcFormat(rawValue: manifest.hlcFormat) ?? format
    options.deletionValues = manifest.deletionValues
    return options
  }

  /// An age that can be taken from any date.
  private static func bounded(_ age: Duration) -> Int64 {
    min(max(age.milliseconds, 0), .max / 4)
  }
}

extension DirectoryAttributes {
  /// What a configuration asks for; nil if nothing.
  fileprivate init?(_ configuration: Configuration) {
    self.init()
    isExcludedFromBackup = configuration.isExcludedFromBackup
    protection =
      switch configuration.fileProtection {
      case nil: nil
      case .complete: .complete
      case .completeUnlessOpen: .completeUnlessOpen
      case .completeUntilFirstUserAuthentication: .completeUntilFirstUserAuthentication
      case .unprotected: .unprotected
      }
    if self == DirectoryAttributes() { return nil }
  }
}
