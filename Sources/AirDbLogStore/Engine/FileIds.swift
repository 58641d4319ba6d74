/// Gives out the ids of new files, each once.
///
/// An id is used only if it is below the limit in the manifest: after a crash, files with ids below
/// that are known to be this store's.
package final class FileIds: Sendable {
  private let nextId: Locked<UInt64>

  /// How many ids a manifest reserves beyond those that were given out.
  private static let reserve: UInt64 = 16

  /// Every id below the limit may have been used by the sessions before.
  package init(after manifest: Manifest) {
    nextId = Locked(manifest.fileIdLimit)
  }

  /// Whether the manifest covers the next id, with a few to spare for others that ask meanwhile.
  package func hasReserved(_ manifest: Manifest) -> Bool {
    nextId.withLock { $0 } + Self.reserve / 4 < manifest.fileIdLimit
  }

  /// Makes a manifest reserve more ids.
  package func extend(_ manifest: inout Manifest) {
    manifest.fileIdLimit = max(manifest.fileIdLimit, nextId.withLock { $0 } + Self.reserve)
  }

  /// An id that was never given out. The caller has seen to ``hasReserved(_:)``.
  package func next() -> UInt64 {
    nextId.withLock { next in
      defer { next += 1 }
      return next
    }
  }
}
