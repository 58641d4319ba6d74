import AirDbAdapterTesting
import Foundation

/// An adapter over a file of one's own: a line for each batch, which is read when the file is opened.
///
/// It is an example of what an author brings to the kit: small enough to be read at once, and not
/// made for many records, since it keeps them all in memory.
actor JsonLinesAdapter: AirDbAdapter {
  nonisolated let path: String
  /// Whether a page ends at its limit, as the adapters of AirDB's guides do it: the mistake that the
  /// kit is to find.
  nonisolated let cutsPages: Bool

  private let file: FileHandle
  private var newest: [Key: ChangeRecord] = [:]
  private var latest: String?

  /// What identifies a record. Arrays of bytes, since a `String` is equal to another spelling.
  private struct Key: Hashable {
    var collection: [UInt8]
    var id: [UInt8]

    init(_ change: ChangeRecord) {
      (collection, id) = (Array(change.collection.utf8), Array(change.id.utf8))
    }
  }

  /// Opens a file, or makes it.
  init(path: String, cutsPages: Bool) throws {
    (self.path, self.cutsPages) = (path, cutsPages)
    if !FileManager.default.fileExists(atPath: path) {
      guard FileManager.default.createFile(atPath: path, contents: nil) else {
        throw CocoaError(.fileWriteUnknown)
      }
    }
    guard let file = FileHandle(forUpdatingAtPath: path) else {
      throw CocoaError(.fileReadNoSuchFile)
    }
    self.file = file
    let bytes = try file.readToEnd() ?? Data()
    // Behind the last line feed is a batch that the end of a process cut short.
    let end = bytes.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
    try file.truncate(atOffset: UInt64(end))
    for line in bytes[..<end].split(separator: UInt8(ascii: "\n")) {
      for stored in try JSONDecoder().decode([StoredChange].self, from: line) {
        Self.put(try stored.change, into: &newest, &latest)
      }
    }
  }

  func close() throws { try file.close() }

  // MARK: The contract

  func getChangesSince(sinceHlcTimestamp: String?, limit: Int) -> [ChangeRecord] {
    guard limit > 0 else { return [] }
    let later = newest.values.filter { change in
      sinceHlcTimestamp.map { HlcComparator.compare(change.hlcTimestamp, $0) > 0 } ?? true
    }.sorted { HlcComparator.compare($0.hlcTimestamp, $1.hlcTimestamp) < 0 }
    var end = min(limit, later.count)
    if !cutsPages {
      // The next page begins behind the last timestamp of this one: it must have all of that.
      while end < later.count,
        HlcComparator.compare(later[end].hlcTimestamp, later[end - 1].hlcTimestamp) == 0
      {
        end += 1
      }
    }
    return Array(later[..<end])
  }

  func applyChanges(_ changes: [ChangeRecord]) throws {
    var (newest, latest) = (newest, latest)
    let taken = changes.filter { Self.put($0, into: &newest, &latest) }
    guard !taken.isEmpty else { return }
    let line = try JSONEncoder().encode(taken.map(StoredChange.init)) + Data("\n".utf8)
    let end = try file.seekToEnd()
    do {
      try file.write(contentsOf: line)
      try file.synchronize()
    } catch {
      try file.truncate(atOffset: end)
      throw error
    }
    (self.newest, self.latest) = (newest, latest)
  }

  func getLatestHlc() -> String? { latest }

  /// Puts a change in the place of an older one; false if there is none that is older.
  @discardableResult
  private static func put(
    _ change: ChangeRecord, into newest: inout [Key: ChangeRecord], _ latest: inout String?
  ) -> Bool {
    let key = Key(change)
    if let known = newest[key],
      HlcComparator.compare(change.hlcTimestamp, known.hlcTimestamp) <= 0
    {
      return false
    }
    newest[key] = change
    if latest.map({ HlcComparator.compare(change.hlcTimestamp, $0) > 0 }) ?? true {
      latest = change.hlcTimestamp
    }
    return true
  }
}

/// A change in the file. Absent is not empty: nil is left out.
private struct StoredChange: Codable {
  var collection: String
  var id: String
  var type: Int
  var hlc: String
  var payload: Data
  var authorPublicKey: Data?
  var signature: Data?

  init(_ change: ChangeRecord) {
    (collection, id, type) = (change.collection, change.id, change.type.rawValue)
    (hlc, payload) = (change.hlcTimestamp, change.payload)
    (authorPublicKey, signature) = (change.authorPublicKey, change.signature)
  }

  var change: ChangeRecord {
    get throws {
      guard let type = MutationType(rawValue: type) else { throw CocoaError(.coderInvalidValue) }
      return ChangeRecord(
        id: id, collection: collection, type: type, payload: payload, hlcTimestamp: hlc,
        authorPublicKey: authorPublicKey, signature: signature)
    }
  }
}
