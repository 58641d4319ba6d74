extension Engine {
  package func statistics(countingDeletions: Bool) throws(LogStoreError) -> Statistics {
    try loadLiveness()
    let state = snapshot
    let manifest = manifest.value
    var result = Statistics()
    for sealed in state.sealed {
      let info = sealed.segment.info
      result.records += info.recordCount
      result.liveRecords += info.entryCount - sealed.dead.count
      result.segmentBytes += info.length
      result.indexBytes += info.indexLength
      result.residentIndexBytes +=
        Int(sealed.dead.count > 0 ? info.entryCount / 8 : 0)
        + (sealed.segment.loadedIndex.withLock { $0 }?.residentBytes ?? 0)
        + sealed.segment.frames.residentBytes
    }
    result.sealedSegments = state.sealed.count
    for log in state.tail {
      let count = UInt64(log.count)
      result.unsealedRecords += min(count, state.visibleRows - min(log.base, state.visibleRows))
      result.liveRecords += UInt64(log.liveCount(below: state.visibleRows))
    }
    result.records += result.unsealedRecords
    for log in state.tail {
      result.unsealedBytes +=
        log.fileId == state.end.segment ? state.end.length : log.finalLength
    }
    result.cacheBytes = cache.cost
    result.storeId = manifest.identity.description
    result.formatVersion = Int(Limits.formatVersion)
    result.generation = manifest.generation
    result.sessions = manifest.epoch
    result.createdMilliseconds = manifest.createdDate
    result.lastCommitMilliseconds = state.commitDate
    result.timestampFormat = options.format == .hybrid ? .hybrid : .utf8Order
    result.deletionValues = Set(options.deletionValues.compactMap { Int(exactly: $0) })
    if countingDeletions { result.liveDeletions = try liveDeletions(state) }
    return result
  }

  private func liveDeletions(_ state: Published) throws(LogStoreError) -> UInt64 {
    try reading { () throws(ReadFailure) in
      var count: UInt64 = 0
      for sealed in state.sealed {
        let index = try index(of: sealed.segment)
        do throws(IndexError) {
          count += try index.liveDeletionCount(sealed.dead)
        } catch {
          throw ReadFailure(error, sealed.segment)
        }
      }
      for log in state.tail { count += UInt64(log.liveDeletionCount(below: state.visibleRows)) }
      return count
    }
  }
}
