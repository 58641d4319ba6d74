/// Some of the boundaries between the frames of one segment, so that a place in the log is found
/// without a scan from the segment's start. Filled by scans; bounded, whatever the segment holds.
///
/// Usable from any thread.
package final class FrameMap: Sendable {
  /// A place behind one frame, where the next one begins.
  package struct Boundary: Sendable, Equatable {
    package var offset: UInt64
    /// Of the frame before, which the next one must follow.
    package var sequence: UInt64
    /// Its header checksum.
    package var checksum: UInt32
    /// The checksum of the commit with `sequence`, if it is known: that of the frame, unless that is
    /// a packed one.
    package var commitChecksum: UInt32?
    /// The date of that commit; `Int64.min` where there is none in this segment.
    package var date: Int64

    package init(
      offset: UInt64, sequence: UInt64, checksum: UInt32, commitChecksum: UInt32? = nil,
      date: Int64 = .min
    ) {
      self.offset = offset
      self.sequence = sequence
      self.checksum = checksum
      self.commitChecksum = commitChecksum
      self.date = date
    }
  }

  private struct State {
    /// Ascending, at least `spacing` apart.
    var boundaries: [Boundary] = []
    var spacing: UInt64 = 64 << 10
    /// Where pages ended last, the newest first: there the next ones go on.
    var recent: [Boundary] = []

    /// Halves the number of boundaries and doubles what is between them. The first one stays.
    mutating func thinOut() {
      spacing *= 2
      var kept: [Boundary] = []
      for boundary in boundaries {
        if let last = kept.last, boundary.offset - last.offset < spacing { continue }
        kept.append(boundary)
      }
      boundaries = kept
    }
  }

  private static let capacity = 128
  private static let recentCapacity = 8

  private let state = Locked(State())

  /// `start` is the first frame's place, if that is known yet.
  package init(start: Boundary? = nil) {
    if let start { note(start) }
  }

  /// Takes up a boundary, unless there is one close to it.
  package func note(_ boundary: Boundary) {
    state.withLock { state in
      let place = state.boundaries.insertionPoint { $0.offset >= boundary.offset }
      if place > 0, boundary.offset - state.boundaries[place - 1].offset < state.spacing { return }
      if place < state.boundaries.count,
        state.boundaries[place].offset - boundary.offset < state.spacing
      {
        return
      }
      state.boundaries.insert(boundary, at: place)
      if state.boundaries.count > Self.capacity { state.thinOut() }
    }
  }

  /// Remembers where a page ended.
  package func remember(_ boundary: Boundary) {
    state.withLock { state in
      state.recent.removeAll { $0.offset == boundary.offset }
      state.recent.insert(boundary, at: 0)
      if state.recent.count > Self.recentCapacity { state.recent.removeLast() }
    }
  }

  /// The place of the first frame, if it has been noted.
  package var start: Boundary? {
    state.withLock { state in
      state.boundaries.first.flatMap { $0.offset == UInt64(SegmentHeader.size) ? $0 : nil }
    }
  }

  /// The last boundary known that is not behind the commit with `sequence`. One that is exactly
  /// there is of use only if it knows the commit's checksum.
  package func last(upTo sequence: UInt64) -> Boundary? {
    last { $0.sequence < sequence || $0.sequence == sequence && $0.commitChecksum != nil }
  }

  /// The last boundary known behind which all commits may be of `date` or later.
  package func last(before date: Int64) -> Boundary? { last { $0.date < date } }

  private func last(_ isBefore: (Boundary) -> Bool) -> Boundary? {
    state.withLock { state in
      let count = state.boundaries.insertionPoint { !isBefore($0) }
      var result = count > 0 ? state.boundaries[count - 1] : nil
      for boundary in state.recent
      where isBefore(boundary) && boundary.offset > result?.offset ?? 0 {
        result = boundary
      }
      return result
    }
  }

  /// Memory in use.
  package var residentBytes: Int {
    state.withLock {
      ($0.boundaries.capacity + $0.recent.capacity) * MemoryLayout<Boundary>.stride
    }
  }
}

extension Array {
  /// The index of the first element for which `isPast` holds, given that it holds for all behind it.
  fileprivate func insertionPoint(_ isPast: (Element) -> Bool) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = low + (high - low) / 2
      if isPast(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
