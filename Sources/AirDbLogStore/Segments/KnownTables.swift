/// The checksums of transaction tables that have been found sound.
///
/// The checksum of a frame's body covers its table, but takes the checksums of all of its blocks. So the
/// table's own is kept once that has been checked, and the next reading of the table needs no more.
///
/// Usable from any thread.
package final class KnownTables: Sendable {
  private struct Place: Sendable, Hashable {
    var file: UInt64
    var offset: UInt64
  }

  /// Of 24 bytes each, so that the heap stays within its bound.
  private static let capacity = 1_024

  private let known = Locked<[Place: UInt32]>([:])

  package init() {}

  /// Of the frame at an offset of a file, if it is known.
  package func checksum(_ file: UInt64, _ offset: UInt64) -> UInt32? {
    known.withLock { $0[Place(file: file, offset: offset)] }
  }

  package func note(_ file: UInt64, _ offset: UInt64, _ checksum: UInt32) {
    known.withLock { known in
      if known.count >= Self.capacity { known.removeAll(keepingCapacity: true) }
      known[Place(file: file, offset: offset)] = checksum
    }
  }
}
