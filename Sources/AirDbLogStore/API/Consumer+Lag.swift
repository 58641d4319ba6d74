// How far a consumer is behind.
extension Engine {
  func lag(
    behind sequence: UInt64, _ state: Published
  ) throws(LogStoreError) -> Consumer.Lag {
    guard sequence < state.end.sequence else { return Consumer.Lag(commits: 0, bytes: 0) }
    defer { withExtendedLifetime(state) {} }
    return Consumer.Lag(
      commits: try commits(behind: sequence, state), bytes: try bytes(behind: sequence, state))
  }

  /// Numbers are dense within an epoch, so that only what is between epochs has to be counted.
  private func commits(
    behind sequence: UInt64, _ state: Published
  ) throws(LogStoreError) -> UInt64 {
    var count: UInt64 = 0
    var reached = sequence
    let ends = state.sealed.map(\.segment.info.lastSequence) + [state.end.sequence]
    for end in ends where end > reached {
      if end >> 32 == reached >> 32 {
        count += end - reached
      } else {
        var scan = CommitScan(self, state)
        _ = try scan.seek(behind: reached)
        reading: while let step = try scan.next() {
          for transaction in step.transactions {
            if transaction.sequence > end { break reading }
            count += 1
          }
        }
      }
      reached = end
    }
    return count
  }

  private func bytes(
    behind sequence: UInt64, _ state: Published
  ) throws(LogStoreError) -> UInt64 {
    var scan = CommitScan(self, state)
    _ = try scan.seek(behind: sequence)
    guard let place = scan.place else { return 0 }
    var bytes: UInt64 = 0
    var isBehind = false
    for (fileId, length) in lengths(state) {
      if fileId == place.fileId {
        isBehind = true
        bytes = length - min(place.offset, length)
      } else if isBehind {
        bytes += length
      }
    }
    return bytes
  }

  /// The segments of the log, each with its bytes.
  private func lengths(_ state: Published) -> [(fileId: UInt64, length: UInt64)] {
    let sealed = state.sealed.map { ($0.segment.info.fileId, $0.segment.info.length) }
    let tail = state.tail.map { log -> (UInt64, UInt64) in
      if log.fileId == state.end.segment { return (log.fileId, state.end.length) }
      // What is being sealed has its final size, or soon will.
      return (log.fileId, (try? files.file(.segment(log.fileId)).size()) ?? 0)
    }
    return sealed + tail
  }
}
