/// How far garbage has outrun the cleaner.
///
/// A limit of bytes a second would let a store grow as fast as commits supersede what is in it. So the
/// limit counts only up to some garbage; beyond that the cleaner goes as fast as it can, and at last
/// writers wait for it a little.
package struct CleaningPressure: Sendable {
  /// Bytes of superseded versions that somebody keeps: no cleaner gets rid of them.
  private let kept: UInt64
  private let segmentBytes: UInt64

  /// Garbage beyond this part of what must be there counts, or of a segment, which may be all garbage
  /// when it is sealed, if that is more;
  private static let low = (store: 0.1, segment: 0.25)
  /// and from this part on it counts in full.
  private static let high = (store: 0.5, segment: 1.0)

  package init(
    _ candidates: [CompactionPlan.Candidate], in state: Published, segmentBytes: UInt64
  ) {
    let droppable = candidates.reduce(0) { $0 + $1.supersededBytes }
    let superseded = Self.superseded(in: state)
    kept = superseded - min(droppable, superseded)
    self.segmentBytes = segmentBytes
  }

  /// 0: the cleaner keeps up. 1: it does not, even as fast as it can.
  package func level(in state: Published) -> Double {
    let superseded = Self.superseded(in: state)
    let garbage = superseded - min(kept, superseded)
    let needed = Double(state.sealed.reduce(0) { $0 + $1.segment.info.bytes } - garbage)
    func bound(_ part: (store: Double, segment: Double)) -> Double {
      max(part.store * needed, part.segment * Double(segmentBytes))
    }
    let low = bound(Self.low)
    return min(max((Double(garbage) - low) / max(bound(Self.high) - low, 1), 0), 1)
  }

  private static func superseded(in state: Published) -> UInt64 {
    state.sealed.reduce(0) { sum, sealed in
      let info = sealed.segment.info
      guard info.recordCount > 0 else { return sum }
      let part = Double(sealed.supersededCount) / Double(info.recordCount)
      return sum + min(UInt64(Double(info.bytes) * part), info.bytes)
    }
  }
}

extension Published.Sealed {
  /// Records of the segment that are not the newest version of their key.
  var supersededCount: UInt64 {
    let info = segment.info
    return info.recordCount - (info.entryCount - dead.count)
  }
}

extension Manifest.Segment {
  /// Of both files.
  var bytes: UInt64 { length + indexLength }
}
