// Where space goes, and what a compaction would give back.
extension Engine {
  func spaceReport() throws(LogStoreError) -> SpaceReport {
    let survey = try CompactionSurvey(self, keeping: try expectedRetention())
    let candidates = try survey.candidates()
    var report = SpaceReport()
    for (sealed, candidate) in zip(survey.state.sealed, candidates) {
      let info = sealed.segment.info
      let live = info.entryCount - sealed.dead.count
      let tombstones = try liveDeletionCount(of: sealed)
      func share(_ records: UInt64) -> UInt64 {
        UInt64(Double(info.length) * Double(records) / Double(info.recordCount))
      }
      var segment = SpaceReport.Segment()
      segment.number = info.fileId
      segment.isCompacted = try isPacked(sealed.segment)
      segment.records = info.recordCount
      segment.tombstoneBytes = share(tombstones)
      segment.supersededBytes = share(info.recordCount - live)
      segment.liveBytes = info.length - segment.tombstoneBytes - segment.supersededBytes
      segment.removableBytes = share(info.recordCount - candidate.live)
      segment.indexBytes = info.indexLength
      report.segments.append(segment)
    }
    report.unsealedBytes = survey.state.tailBytes
    return report
  }

  private func liveDeletionCount(of sealed: Published.Sealed) throws(LogStoreError) -> UInt64 {
    if try deletionCount(of: sealed.segment) == 0 { return 0 }
    return try reading { () throws(ReadFailure) in
      var count: UInt64 = 0
      try forEachEntry(of: sealed.segment) { rank, entry in
        if entry.isDeletion, !sealed.dead[rank] { count += 1 }
      }
      return count
    }
  }

  func compactionEstimate() throws(LogStoreError) -> CompactionEstimate {
    let retention = try expectedRetention()
    let survey = try CompactionSurvey(self, keeping: retention)
    var candidates = try survey.candidates()
    var result = CompactionEstimate()
    var fresh = Set<UInt64>()
    var replaced = Set<UInt64>()
    while let plan = CompactionPlan.choose(candidates, .everything, compactionRules) {
      guard fresh.isDisjoint(with: plan.segments), let id = plan.segments.first,
        let place = candidates.firstIndex(where: { $0.id == id })
      else { break }
      let range = place..<(place + plan.segments.count)
      for candidate in candidates[range] where candidate.live < candidate.records {
        replaced.insert(candidate.id)
      }
      let live = candidates[range].reduce(0) { $0 + $1.live }
      let output = CompactionPlan.Candidate(
        id: id, bytes: plan.outputBytes, records: live, live: live)
      candidates.replaceSubrange(range, with: live == 0 ? [] : [output])
      fresh.insert(id)
      result.segments += plan.segments.count
      result.bytesToRead += plan.bytes
      result.bytesFreed += plan.garbageBytes
      result.scratchBytes = max(result.scratchBytes, plan.outputBytes)
    }
    let last = survey.state.sealed.last { replaced.contains($0.segment.info.fileId) }
    if let last, let consumers = retention.consumers {
      result.affectedConsumers = consumers.names(
        before: last.segment.info.lastSequence, in: survey.state,
        now: platform.wallClockMilliseconds())
    }
    return result
  }
}

extension ConsumerRegistry.Reading {
  /// The consumers that have not seen all commits up to a sequence and for which they are not kept.
  fileprivate func names(before sequence: UInt64, in state: Published, now: Int64) -> [String] {
    consumers.compactMap { consumer in
      guard consumer.place.sequence < sequence,
        consumer.pinnedAfter(in: state, now: now) ?? .max > consumer.place.sequence
      else { return nil }
      return String(decoding: consumer.name, as: UTF8.self)
    }
  }
}
