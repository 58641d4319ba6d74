// The adapter of the article "Write an adapter", which has what stands between "example" and "end" word for
// word; the documentation tests hold the two together. It stands at the top level, with its imports.

// example: JSON Lines adapter
import AirDbContract
import Foundation

/// Keeps the newest change of each record, one in a line, in a file that is replaced as a whole.
actor JsonLinesAdapter: AirDbAdapter {
  nonisolated let file: URL
  private var changes: [RecordKey: ChangeRecord] = [:]

  init(at file: URL) throws {
    self.file = file
    guard FileManager.default.fileExists(atPath: file.path) else { return }
    let decoder = JSONDecoder()
    for line in try Data(contentsOf: file).split(separator: UInt8(ascii: "\n")) {
      let change = try decoder.decode(Line.self, from: Data(line)).change
      changes[RecordKey(change)] = change
    }
  }

  func getChangesSince(sinceHlcTimestamp: String?, limit: Int) -> [ChangeRecord] {
    guard limit > 0 else { return [] }
    let found = changes.values
      .filter { change in
        sinceHlcTimestamp.map { HlcComparator.compare(change.hlcTimestamp, $0) > 0 } ?? true
      }
      .sorted { HlcComparator.compare($0.hlcTimestamp, $1.hlcTimestamp) < 0 }
    guard limit < found.count else { return found }
    // The next page begins behind the last timestamp of this one: so all changes that have it
    // belong here.
    let last = found[limit - 1].hlcTimestamp
    let end = found[limit...].firstIndex {
      HlcComparator.compare($0.hlcTimestamp, last) != 0
    }
    return Array(found[..<(end ?? found.endIndex)])
  }

  func applyChanges(_ batch: [ChangeRecord]) throws {
    var result = changes
    for change in batch {
      let key = RecordKey(change)
      if let stored = result[key],
        HlcComparator.compare(change.hlcTimestamp, stored.hlcTimestamp) <= 0
      {
        continue
      }
      result[key] = change
    }
    try save(result.values)
    changes = result
  }

  func getLatestHlc() -> String? {
    changes.values.map(\.hlcTimestamp).max { HlcComparator.compare($0, $1) < 0 }
  }

  /// All of the file or, after a crash, all of the one before.
  private func save(_ changes: some Collection<ChangeRecord>) throws {
    let encoder = JSONEncoder()
    var content = Data()
    for change in changes {
      content += try encoder.encode(Line(change))
      content.append(UInt8(ascii: "\n"))
    }
    try content.write(to: file, options: .atomic)
  }
}

/// A record is known by the bytes of its collection and its id. As a `String`, two spellings of "é"
/// would be one key.
private struct RecordKey: Hashable {
  let collection: [UInt8]
  let id: [UInt8]

  init(_ change: ChangeRecord) {
    collection = Array(change.collection.utf8)
    id = Array(change.id.utf8)
  }
}

/// A change as it stands in the file. `Data` becomes base 64.
private struct Line: Codable {
  var collection: String
  var id: String
  var type: Int
  var payload: Data
  var hlcTimestamp: String
  var authorPublicKey: Data?
  var signature: Data?

  init(_ change: ChangeRecord) {
    collection = change.collection
    id = change.id
    type = change.type.rawValue
    payload = change.payload
    hlcTimestamp = change.hlcTimestamp
    authorPublicKey = change.authorPublicKey
    signature = change.signature
  }

  var change: ChangeRecord {
    get throws {
      guard let type = MutationType(rawValue: type) else {
        throw CocoaError(.coderInvalidValue)
      }
      return ChangeRecord(
        id: id, collection: collection, type: type, payload: payload, hlcTimestamp: hlcTimestamp,
        authorPublicKey: authorPublicKey, signature: signature)
    }
  }
}
// end
