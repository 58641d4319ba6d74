#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

// The store's clock: stamps changes that come without a timestamp.
//
// Invariants, for stamps that were committed by whatever writer of the store:
// - A commit is not dated before the stamps that the clock gave it, and dates never decrease. So no
//   stamp of the clock is ahead of the date of the last commit, though the time may have been set back, and
//   what is ahead of it is of others.
// - A new writer's clock begins behind all of the former, so that stamps increase strictly from writer to
//   writer; what others sent it follows within the drift from the time only.
extension Writer {
  /// The clock, which begins where those of the writers before have ended.
  private func currentClock() throws(LogStoreError) -> HybridLogicalClock {
    let style: HybridLogicalClock.Style = physicalKind == .iso8601 ? .iso8601 : .decimal
    if let clock, clock.style == style { return clock }
    var fresh = try HybridLogicalClock(node: try clockNode(), style: style)
    if let greatest {
      let (physical, counter) = (greatest.physical, greatest.counter)
      let date = UInt64(clamping: commitDate)
      if !fresh.move(to: physical, counter, notBehind: date) {
        fresh.skip(date)
        _ = fresh.follow(physical, counter, at: now)
      }
    }
    return fresh
  }

  private func clockNode() throws(LogStoreError) -> String {
    if let node = engine.options.clockNode { return node }
    do throws(SystemError) {
      return try engine.platform.randomHexadecimal(bytes: 8)
    } catch {
      throw LogStoreError(error, "make a node for the clock")
    }
  }

  /// Takes note of the stamps of others, as far as they are not too far ahead of the time. A clock that
  /// has not begun finds them in the log.
  func follow(_ batch: PreparedBatch) {
    guard var clock, batch.physicalKind == physicalKind else { return }
    var now: UInt64?
    for item in batch.items where clock.isBehind(item.parts.physical, item.parts.counter) {
      let time = now ?? self.now
      now = time
      _ = clock.follow(item.parts.physical, item.parts.counter, at: time)
    }
    if now != nil { self.clock = clock }
  }

  private var now: UInt64 { UInt64(clamping: engine.platform.wallClockMilliseconds()) }

  /// The earliest date that a commit with the clock's last stamp may have.
  var earliestStampedDate: Int64 { clock.map { Int64(clamping: $0.time) } ?? .min }

  /// Changes as records with stamps of the clock; nil if the condition does not hold. A deletion of what
  /// is not there is left out.
  func stamp(_ local: LocalBatch) throws(LogStoreError) -> PreparedBatch? {
    var clock = try currentClock()
    let now = now
    var records: [ChangeRecord] = []
    records.reserveCapacity(local.items.count)
    for (index, item) in local.items.enumerated() {
      let existing = try withUTF8(item.collection) { (collection) throws(LogStoreError) in
        try lookup.find(
          local.hashes[index], in: engine, collection: collection, active: log,
          sealing: sealing?.log)
      }
      guard try holds(local.condition, existing) else { return nil }
      let type: MutationType
      let payload: Data
      let isThere = if let existing { try !lookup.isDeletion(existing, in: engine) } else { false }
      switch item.action {
      case .put(let data):
        type = isThere ? .update : .insert
        payload = data
      case .delete:
        guard isThere, let deletion = engine.options.deletionType else { continue }
        type = deletion
        payload = Data()
      }
      try passVersion(existing, &clock, at: now, index)
      records.append(
        ChangeRecord(
          id: item.id, collection: item.collection, type: type, payload: payload,
          hlcTimestamp: try clock.tick(at: now), authorPublicKey: nil, signature: nil))
    }
    self.clock = clock
    return try PreparedBatch(
      records, label: local.label, format: engine.options.format,
      secret: engine.manifest.value.hashSecret)
  }

  private func holds(
    _ condition: LocalBatch.Condition, _ existing: Lookup.Existing?
  ) throws(LogStoreError) -> Bool {
    switch condition {
    case .none: return true
    case .absent: return existing == nil
    case .newest(let version):
      guard let existing else { return false }
      return try lookup.compare(version, 0, with: existing, in: engine) == .same
    }
  }

  /// Moves the clock behind the version that is there, or the purged deletion that may have been, so that
  /// the next stamp is the winner.
  private func passVersion(
    _ existing: Lookup.Existing?, _ clock: inout HybridLogicalClock, at now: UInt64, _ index: Int
  ) throws(LogStoreError) {
    let version: (physical: UInt64, counter: UInt64)
    if let existing {
      version = existing.clock
    } else if let purgeHorizon, !engine.options.acceptsResurrections {
      version = (purgeHorizon.physical, purgeHorizon.counter)
    } else {
      return
    }
    guard clock.follow(version.physical, version.counter, at: now) else {
      throw LogStoreError(
        .clockDrift,
        "Change \(index) of the batch would be older than what is stored of its record, "
          + "whose timestamp is more than \(clock.driftMilliseconds) ms ahead of the time.",
        recordIndex: index)
    }
  }
}

extension EngineOptions {
  func isDeletion(_ type: MutationType) -> Bool { deletionValues.contains(Int64(type.rawValue)) }

  /// Whether the store can make a change of such a type.
  func hasType(for action: LocalBatch.Action) -> Bool {
    switch action {
    case .put: !isDeletion(.insert) && !isDeletion(.update)
    case .delete: deletionType != nil
    }
  }

  /// The type of a deletion that the store makes itself; nil if it knows of none.
  var deletionType: MutationType? {
    let value = deletionValues.contains(2) ? 2 : deletionValues.first
    return value.flatMap { Int(exactly: $0) }.flatMap(MutationType.init(rawValue:))
  }
}
