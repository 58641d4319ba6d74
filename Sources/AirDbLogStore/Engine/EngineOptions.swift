package import HlcText

/// The configuration of a store in the terms of the engine.
package struct EngineOptions: Sendable {
  package var durability: Durability
  package var cacheBytes: Int
  package var authorLabel: [UInt8]
  package var format: HlcFormat
  /// Ascending.
  package var deletionValues: [Int64]
  package var isReadOnly: Bool
  package var createsIfMissing: Bool
  package var maximumOpenFiles: Int
  package var segmentBytes: UInt64
  package var segmentRecords: Int
  package var blockBytes: Int
  package var replayBytes: UInt64
  /// For a directory that this creates; nil if there is nothing to set.
  package var attributes: DirectoryAttributes?
  package var eventHandler: (@Sendable (StoreEvent) -> Void)?

  package init(_ configuration: Configuration) throws(LogStoreError) {
    durability = configuration.durability
    cacheBytes = max(0, configuration.cacheBytes)
    authorLabel = Array(configuration.authorLabel.utf8)
    format = configuration.timestampFormat == .hybrid ? .hybrid : .utf8Order
    deletionValues = configuration.deletionValues.map { Int64($0) }.sorted()
    isReadOnly = configuration.isReadOnly
    createsIfMissing = configuration.createsIfMissing && !configuration.isReadOnly
    maximumOpenFiles = configuration.maximumOpenFiles
    segmentBytes = configuration.segmentBytes
    segmentRecords = configuration.segmentRecords
    blockBytes = configuration.blockBytes
    replayBytes = configuration.replayBytes
    attributes = DirectoryAttributes(configuration)
    eventHandler = configuration.eventHandler
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
