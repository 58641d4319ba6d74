import AirDbContract
import Foundation

/// An adapter in memory that is right but for its flaws.
actor FlawedAdapter: AirDbAdapter {
  struct Refusal: Error {}

  private let flaws: Set<Flaw>
  private var storage = Storage()
  private var lastStorage = Storage()
  private var isBroken = false

  /// What is kept.
  private struct Storage {
    var rows: [[UInt8]: Row] = [:]
    /// What is in the feed and should not be.
    var extra: [ChangeRecord] = []
    var latest: String?
    var arrivals = 0
  }

  private struct Row {
    var change: ChangeRecord
    var firstTimestamp: String
    var arrival: Int
  }

  init(_ flaws: Set<Flaw>) {
    self.flaws = flaws
  }

  private func has(_ flaw: Flaw) -> Bool { flaws.contains(flaw) }

  /// Does what an end of the process and a new start would.
  func reopen() {
    if has(.forgetsLastBatch) { storage = lastStorage }
    if has(.forgetsLatest) { storage.latest = nil }
    if has(.readsBackWithoutByteOrderMark) {
      storage.rows = storage.rows.mapValues { row in
        var row = row
        row.change.payload = Self.withoutByteOrderMark(row.change.payload)
        return row
      }
    }
  }

  // MARK: Writing

  func applyChanges(_ changes: [ChangeRecord]) async throws {
    if isBroken || has(.refusesEmptyBatches) && changes.isEmpty { throw Refusal() }
    if Task.isCancelled {
      if has(.claimsToApplyWhenCancelled) { return }
      if has(.breaksWhenCancelled) {
        isBroken = true
        throw CancellationError()
      }
    }
    let before = storage
    if has(.writesLate) {
      for _ in 0..<100 { await Task.yield() }
      storage = before
    }
    for (index, change) in changes.enumerated() {
      if index > 0 {
        if has(.stopsWhenCancelled), Task.isCancelled { throw CancellationError() }
        if has(.showsParts) { await Task.yield() }
      }
      if isRefused(change) {
        if has(.skipsTheRefused) { continue }
        if !has(.keepsWhatCameBeforeTheRefused) { storage = before }
        if has(.breaksWhenItRefuses) { isBroken = true }
        throw Refusal()
      }
      store(altered(change), before)
    }
    lastStorage = before
  }

  private func isRefused(_ change: ChangeRecord) -> Bool {
    change.hlcTimestamp == "nonsense" || change.id.utf8.count > 2_000 && !has(.acceptsTheLong)
  }

  private func store(_ change: ChangeRecord, _ before: Storage) {
    let key = key(of: change)
    let row = (has(.comparesWithStoredOnly) ? before : storage).rows[key]
    if let stored = row?.change {
      guard isNewer(change, than: stored) else {
        if has(.repeatsRedelivered), change == stored { storage.extra.append(change) }
        return
      }
      if has(.unsignedNeverReplacesSigned), stored.signature?.isEmpty == false,
        stored.type != .delete, change.signature == nil
      {
        return
      }
      if has(.keepsVersions) { storage.extra.append(stored) }
    }
    if change.type != .delete || !has(.latestSkipsDeletions) { noteLatest(change.hlcTimestamp) }
    storage.arrivals += 1
    storage.rows[key] = Row(
      change: change, firstTimestamp: row?.firstTimestamp ?? change.hlcTimestamp,
      arrival: storage.arrivals)
    if has(.forgetsDeletions), change.type == .delete { storage.rows[key] = nil }
  }

  private func isNewer(_ change: ChangeRecord, than stored: ChangeRecord) -> Bool {
    if has(.lastArrivalWins) { return true }
    if has(.firstArrivalWins) { return false }
    if has(.mergesByText) { return change.hlcTimestamp > stored.hlcTimestamp }
    let order = HlcComparator.compare(change.hlcTimestamp, stored.hlcTimestamp)
    return order > 0 || order == 0 && has(.equalReplaces)
  }

  private func noteLatest(_ timestamp: String) {
    guard let latest = storage.latest, !has(.latestIsLastWritten) else {
      storage.latest = timestamp
      return
    }
    let isGreater =
      has(.latestIsGreatestText)
      ? timestamp > latest : HlcComparator.compare(timestamp, latest) > 0
    if isGreater { storage.latest = timestamp }
  }

  private func key(of change: ChangeRecord) -> [UInt8] {
    if has(.joinsKeys) { return Array("\(change.collection):\(change.id)".utf8) }
    var parts = [change.collection, change.id]
    if has(.normalizesKeys) { parts = parts.map(\.precomposedStringWithCanonicalMapping) }
    if has(.foldsCase) { parts = parts.map { $0.lowercased() } }
    return Array("\(parts[0].utf8.count) \(parts[0])\(parts[1])".utf8)
  }

  private static func asText(_ bytes: Data) -> Data {
    Data(String(decoding: bytes, as: UTF8.self).utf8)
  }

  private static func withoutByteOrderMark(_ bytes: Data) -> Data {
    bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes
  }

  private func altered(_ original: ChangeRecord) -> ChangeRecord {
    var change = original
    if has(.endsIdsAtNul) { change.id = String(change.id.prefix { $0 != "\u{0}" }) }
    if has(.shortensIds) { change.id = String(change.id.prefix(255)) }
    if has(.shortensPayloads) { change.payload = change.payload.prefix(65_535) }
    if has(.emptiesDeletions), change.type == .delete { change.payload = Data() }
    if has(.emptyIsNil), change.signature?.isEmpty == true { change.signature = nil }
    if has(.emptyKeyIsNil), change.authorPublicKey?.isEmpty == true { change.authorPublicKey = nil }
    if has(.nilIsEmpty) { change.authorPublicKey = change.authorPublicKey ?? Data() }
    if has(.nilSignatureIsEmpty) { change.signature = change.signature ?? Data() }
    if has(.payloadIsText) { change.payload = Self.asText(change.payload) }
    if has(.keyIsText) { change.authorPublicKey = change.authorPublicKey.map(Self.asText) }
    if has(.signatureIsText) { change.signature = change.signature.map(Self.asText) }
    if has(.dropsByteOrderMark) { change.payload = Self.withoutByteOrderMark(change.payload) }
    if has(.endsPayloadsAtNul) { change.payload = change.payload.prefix { $0 != 0 } }
    if has(.sortsJsonKeys),
      let object = try? JSONDecoder().decode([String: String].self, from: change.payload)
    {
      let encoder = JSONEncoder()
      encoder.outputFormatting = .sortedKeys
      change.payload = (try? encoder.encode(object)) ?? change.payload
    }
    if has(.foldsLineEnds) {
      change.payload.replace(Data("\r\n".utf8), with: Data("\n".utf8))
    }
    if has(.normalizesPayloads), let text = String(validating: change.payload, as: UTF8.self) {
      change.payload = Data(text.precomposedStringWithCanonicalMapping.utf8)
    }
    if has(.respellsTimestamps) {
      change.hlcTimestamp = change.hlcTimestamp.replacingOccurrences(of: "_", with: "-")
    }
    let isKnown = 0...2 ~= change.type.rawValue
    if has(.takesUnknownForUpdate), !isKnown { change.type = .update }
    if has(.storesTypesIn16Bits) {
      let stored = Int16(truncatingIfNeeded: change.type.rawValue)
      change.type = MutationType(rawValue: Int(stored)) ?? change.type
    }
    return change
  }

  // MARK: Reading

  func getChangesSince(sinceHlcTimestamp: String?, limit: Int) async throws -> [ChangeRecord] {
    if isBroken { throw Refusal() }
    var cursor = sinceHlcTimestamp
    let feed = feed
    if has(.takesUnknownCursorsForNone), !feed.contains(where: { $0.hlcTimestamp == cursor }) {
      cursor = nil
    }
    let rest = feed.filter { change in
      guard let cursor else { return true }
      if has(.ordersByText) { return change.hlcTimestamp > cursor }
      let order = HlcComparator.compare(change.hlcTimestamp, cursor)
      return order > 0 || order == 0 && has(.givesTheCursorItself)
    }
    if limit <= 0 { return has(.takesNoLimitForAll) ? rest : [] }
    var end = min(rest.count, has(.endsPagesEarly) ? max(1, limit - 1) : limit)
    while end > 0, end < rest.count, !has(.splitsEqualTimestamps),
      HlcComparator.compare(rest[end - 1].hlcTimestamp, rest[end].hlcTimestamp) == 0
    {
      end += 1
    }
    return Array(rest[..<end])
  }

  private var feed: [ChangeRecord] {
    var rows = storage.rows.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
    rows += storage.extra.map { Row(change: $0, firstTimestamp: $0.hlcTimestamp, arrival: 0) }
    rows = rows.filter { row in
      if has(.hidesDeletions), row.change.type == .delete { return false }
      return !has(.dropsUnknownTypes) || 0...2 ~= row.change.type.rawValue
    }
    return rows.enumerated().sorted { lhs, rhs in
      let order = order(lhs.element, rhs.element)
      return order == 0 ? lhs.offset < rhs.offset : order < 0
    }.map(\.element.change)
  }

  private func order(_ lhs: Row, _ rhs: Row) -> Int {
    if has(.ordersByArrival) { return lhs.arrival - rhs.arrival }
    if has(.keepsPlace) { return HlcComparator.compare(lhs.firstTimestamp, rhs.firstTimestamp) }
    let (left, right) = (lhs.change.hlcTimestamp, rhs.change.hlcTimestamp)
    if has(.ordersByText) { return left < right ? -1 : left == right ? 0 : 1 }
    return HlcComparator.compare(left, right)
  }

  func getLatestHlc() async throws -> String? {
    if isBroken { throw Refusal() }
    return storage.latest ?? (has(.latestOfNothingIsEmpty) ? "" : nil)
  }
}
