// What is kept for consumers. All in whole segments, since compactions replace whole segments.
extension ConsumerRegistry.Reading {
  /// The greatest sequence such that every version of the commits behind it is to be kept; `.max` if
  /// no consumer asks for that. `now` is milliseconds since 1970.
  package func leastPinned(in state: Published, now: Int64) -> UInt64 {
    consumers.compactMap { $0.pinnedAfter(in: state, now: now) }.min() ?? .max
  }

  /// The greatest sequence that every consumer has reached, whatever it asks to be kept; `.max` if
  /// there is no consumer.
  package var leastAcknowledged: UInt64 {
    consumers.map(\.place.sequence).min() ?? .max
  }
}

extension ConsumerTable.Entry {
  /// The sequence behind which every version is kept for this consumer: that of its place, or a later
  /// one where its age or its bytes are beyond a cap. Nil if it does not ask for that.
  package func pinnedAfter(in state: Published, now: Int64) -> UInt64? {
    guard case .history(let maximumAge, let maximumBytes) = retention else { return nil }
    var sequence = place.sequence
    if let maximumAge {
      let oldest = now.subtractingReportingOverflow(maximumAge)
      sequence = max(
        sequence, state.lastSegment(olderThan: oldest.overflow ? .min : oldest.partialValue))
    }
    if let maximumBytes { sequence = max(sequence, state.lastSegment(behind: maximumBytes)) }
    return sequence
  }

  /// When the first of what is kept for it now will not be any more, though it stays where it is, in
  /// milliseconds since 1970; nil if age does not matter to it, or nothing is kept.
  package func pinnedUntil(in state: Published, now: Int64) -> Int64? {
    guard case .history(let maximumAge?, _) = retention,
      let after = pinnedAfter(in: state, now: now), after < state.end.sequence
    else { return nil }
    let first = state.sealed.first { $0.segment.info.lastSequence > after }
    let date = first?.segment.info.lastCommitDate ?? state.commitDate
    let until = date.addingReportingOverflow(maximumAge)
    return until.overflow ? .max : until.partialValue
  }
}

extension Published {
  /// The last sequence of the last sealed segment whose commits are all older than a date; 0 if there
  /// is none. Commit dates never decrease.
  fileprivate func lastSegment(olderThan date: Int64) -> UInt64 {
    sealed.last { $0.segment.info.lastCommitDate < date }?.segment.info.lastSequence ?? 0
  }

  /// The last sequence of the last sealed segment that does not fit into so many bytes at the end of
  /// the log; 0 if all fit.
  fileprivate func lastSegment(behind limit: UInt64) -> UInt64 {
    var bytes = tailBytes
    for sealed in sealed.reversed() {
      bytes += sealed.segment.info.length
      if bytes > limit { return sealed.segment.info.lastSequence }
    }
    return 0
  }

  /// Bytes of the log that are not sealed, but for those that are being sealed.
  package var tailBytes: UInt64 { tail.isEmpty ? 0 : end.length }

  /// Bytes of the segments that have a commit behind a sequence.
  package func bytes(behind sequence: UInt64) -> UInt64 {
    guard sequence < end.sequence else { return 0 }
    return sealed.reduce(tailBytes) {
      $1.segment.info.lastSequence > sequence ? $0 + $1.segment.info.length : $0
    }
  }
}
