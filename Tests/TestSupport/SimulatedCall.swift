/// A call on the seam, as fault plans match it and recordings show it.
package struct SimulatedCall: Sendable, Hashable, CustomStringConvertible {
  package enum Kind: Sendable, Hashable, CaseIterable {
    case open, create, close, read, write, synchronize, truncate, reserve, size, identity
    case lock, unlock
    case createDirectory, list, rename, remove, removeDirectory, synchronizeDirectory
    case random

    /// Whether the medium may differ after the call: the others are no crash points.
    package var changesDisk: Bool {
      switch self {
      case .create, .write, .synchronize, .truncate, .reserve: true
      case .createDirectory, .rename, .remove, .removeDirectory, .synchronizeDirectory: true
      case .open, .close, .read, .size, .identity, .lock, .unlock, .list, .random: false
      }
    }
  }

  package let kind: Kind
  /// The path that the call names or under which its descriptor was opened; for a rename the old.
  package let path: String
  /// The new path of a rename.
  package var target: String?
  package var offset: UInt64 = 0
  package var count = 0

  package var description: String {
    var text = "\(kind) \(path)"
    if let target { text += " to \(target)" }
    if count > 0 { text += " [\(offset), \(offset + UInt64(count)))" }
    return text
  }
}

/// When in an operation the power is lost.
package enum CrashMoment: Sendable, Hashable {
  /// It has not begun.
  case before
  /// A write or reservation has done this many bytes. Other operations have not begun: what they
  /// have half done is what the survivors of the pending operations stand for.
  case inside(bytes: Int)
  /// It has ended, but its caller never hears of it.
  case after
}

extension SimulatedCall {
  /// The moments to try for this operation: before, after, and inside a write after each byte if
  /// it is no longer than `byteLimit`, else at each border of a sector.
  package func crashMoments(byteLimit: Int = 0) -> [CrashMoment] {
    guard kind == .write, count > 1 else { return [.before, .after] }
    let inside: [CrashMoment]
    if count <= byteLimit {
      inside = (1..<count).map { .inside(bytes: $0) }
    } else {
      let sector = Int(Granularity.sectorSize)
      let first = sector - Int(offset % Granularity.sectorSize)
      inside = stride(from: first, to: count, by: sector).map { .inside(bytes: $0) }
    }
    return [.before] + inside + [.after]
  }
}
