package import HlcText

/// What readers see: swapped or changed by the writer under one short lock, copied by each read.
///
/// A copy is a consistent snapshot. It costs a few retains; what the writer changes later is
/// copied then, in small pieces, and only if a reader still holds it.
package struct Published: Sendable {
  /// In log order.
  package var sealed: ContiguousArray<Sealed> = []
  /// The segments in memory, in log order: those being sealed, then the one that is written to.
  package var tail: [RowLog] = []
  /// Rows with a global number below this are visible.
  package var visibleRows: UInt64 = 0
  package var end = LogEnd()
  /// What the first segment of the tail follows.
  package var sealedEnd = LogEnd()
  /// What of the log is known durable.
  package var durableEnd = LogEnd()
  package var commitDate: Int64 = 0
  package var greatestHlc: Greatest?
  /// The greatest timestamp of a tombstone that was purged: what is not newer and has no version
  /// here may have been deleted.
  package var purgeHorizon: Greatest?
  package var physicalKind: HlcPhysicalKind?
  /// Whether `sealed[i].dead` has been loaded.
  package var hasLiveness = true

  package init() {}

  package struct Sealed: Sendable {
    package let segment: SealedSegment
    package var dead: DeadBits

    package init(segment: SealedSegment, dead: DeadBits) {
      self.segment = segment
      self.dead = dead
    }
  }

  package struct Greatest: Sendable {
    package var key: HlcKey
    package var text: String
  }
}

extension Published.Greatest {
  /// A timestamp of the manifest; nil if it is empty.
  package init?(_ text: [UInt8], _ format: HlcFormat) {
    guard !text.isEmpty,
      let parts = text.withUnsafeBufferPointer({ parseHlc($0, format: format) })
    else { return nil }
    self.init(
      key: HlcKey(
        physical: parts.physical, counter: parts.counter, node: Array(text[parts.nodeStart...])),
      text: String(decoding: text, as: UTF8.self))
  }
}

/// A sealed segment: what the manifest says of it, and its index once that has been needed.
package final class SealedSegment: Sendable {
  package let info: Manifest.Segment
  package let loadedIndex = Locked<SealedIndex?>(nil)
  /// How often the index has been built again.
  package let rebuilds = Locked<UInt16>(0)
  /// Keeps the segment's files.
  package let hold: FileHold
  /// Where its frames are.
  package let frames: FrameMap
  /// Whether it was made by compaction, once that has been looked at.
  let isPacked = Locked<Bool?>(nil)
  /// How many of its entries are deletions, once they have been counted.
  let deletionCount = Locked<UInt64?>(nil)
  /// What surveys have found in its index.
  let survey = SurveyFindings()

  /// `hold` and `frames` are those of the rows it was sealed from, if readers may still use those.
  package init(
    _ info: Manifest.Segment, hold: FileHold = FileHold(), frames: FrameMap = FrameMap()
  ) {
    self.info = info
    self.hold = hold
    self.frames = frames
  }

  /// Has `work` done when no reader uses the segment's files any more.
  package func whenReleased(_ work: @escaping @Sendable () -> Void) { hold.whenReleased(work) }
}

/// Why a read could not go on.
package enum ReadFailure: Error {
  /// The index of a segment has to be built again; then the read can start over.
  case damagedIndex(SealedSegment, FormatError)
  case failed(LogStoreError)
}

extension ReadFailure {
  init(_ error: IndexError, _ segment: SealedSegment) {
    switch error {
    case .damaged(let reason): self = .damagedIndex(segment, reason)
    case .system(let error): self = .failed(LogStoreError(error, "read an index"))
    }
  }
}

extension Published {
  /// Marks entries of sealed segments as superseded.
  package mutating func insert(_ marks: [RowLog.Mark]) {
    for mark in marks {
      guard let place = sealed.firstIndex(where: { $0.segment.info.fileId == mark.segment }) else {
        continue
      }
      sealed[place].dead.insert(mark.rank)
    }
  }
}
