/// What a compaction keeps beside the newest versions.
///
/// Dates and sequences both grow along the log, so that what is kept is all behind one commit, and
/// what may go is all before it. An older version of a key never outlives a newer one that may go.
package struct RetentionBounds: Sendable {
  /// Every version of the commits behind this sequence: of those that a pinning consumer has yet to
  /// see.
  package var pinnedAfter: UInt64 = .max
  /// Every version of the commits since this date, in milliseconds since 1970.
  package var since: Int64 = .max
  /// Which tombstones may go; nil: none ever.
  package var purging: Purging?
  /// The consumers that this relies on.
  var consumers: ConsumerRegistry.Reading?

  /// Deletions that everybody has seen, and that are old enough to forget.
  package struct Purging: Sendable, Equatable {
    /// Those of the commits up to this sequence, which every consumer has acknowledged,
    package var acknowledged: UInt64
    /// and before this date.
    package var before: Int64

    package init(acknowledged: UInt64, before: Int64) {
      self.acknowledged = acknowledged
      self.before = before
    }
  }

  package init() {}

  /// Whether superseded versions of a commit are kept.
  package func keeps(sequence: UInt64, date: Int64) -> Bool {
    sequence > pinnedAfter || date >= since
  }

  /// Whether tombstones of a commit may go, as far as that depends on the commit.
  package func mayPurge(sequence: UInt64, date: Int64) -> Bool {
    guard let purging else { return false }
    return sequence <= purging.acknowledged && date < purging.before
      && !keeps(sequence: sequence, date: date)
  }
}

extension Engine {
  /// What is to be kept now, as far as one can see without making sure that it is durable: to find
  /// out whether there is anything to do.
  func expectedRetention() throws(LogStoreError) -> RetentionBounds {
    retention(for: try consumers.glimpse())
  }

  /// What is to be kept now, for a compaction to rely on.
  package func retention() throws(LogStoreError) -> RetentionBounds {
    retention(for: try consumers.settled())
  }

  private func retention(for consumers: ConsumerRegistry.Reading) -> RetentionBounds {
    var result = RetentionBounds()
    let now = platform.wallClockMilliseconds()
    result.consumers = consumers
    result.pinnedAfter = consumers.leastPinned(in: snapshot, now: now)
    if options.historyMilliseconds > 0 { result.since = now - options.historyMilliseconds }
    if let age = options.tombstoneMilliseconds {
      result.purging = RetentionBounds.Purging(
        acknowledged: consumers.leastAcknowledged, before: now - age)
    }
    return result
  }

  /// When something that is only kept for its age will have reached that, in milliseconds since 1970,
  /// though nothing else happens; nil if there is nothing like that.
  func nextAging() throws(LogStoreError) -> Int64? {
    let consumers = try consumers.glimpse().consumers
    let state = snapshot
    let now = platform.wallClockMilliseconds()
    var ages: [Int64] = options.historyMilliseconds > 0 ? [options.historyMilliseconds] : []
    for consumer in consumers where consumer.place.sequence < state.end.sequence {
      if case .history(let age?, _) = consumer.retention { ages.append(age) }
    }
    let tombstones = options.tombstoneMilliseconds.map { ages + [$0] }
    var next: Int64?
    func add(_ ages: [Int64], _ date: Int64) {
      for age in ages {
        // Behind the last moment at which it is kept.
        let (end, overflow) = date.addingReportingOverflow(age)
        if !overflow, end >= now, end < .max { next = min(next ?? .max, end + 1) }
      }
    }
    for sealed in state.sealed {
      if let tombstones {
        add(tombstones, sealed.segment.info.lastCommitDate)
      } else if sealed.supersededCount > 0 {
        add(ages, sealed.segment.info.lastCommitDate)
      }
    }
    if !state.tail.isEmpty { add(ages, state.commitDate) }
    return next
  }
}
