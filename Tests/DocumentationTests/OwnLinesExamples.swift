import AirDbAdapterTesting
import AirDbLogStore
import Foundation
import Testing

// The example of "Write an adapter" about lines of an app's own; see Examples.swift. It stands at the top level.

// example: Own lines
/// A bookmark as it stands in the file.
private struct Line: Codable {
  var uuid: String
  var folder: String
  var title: String?
  var url: String?
  var isRemoved: Bool?
  var hlc: String
  /// What is no bookmark of this app: another type, another content, a key, a signature.
  var type: Int?
  var content64: Data?
  var key64: Data?
  var signature64: Data?

  init(_ change: ChangeRecord) throws {
    (uuid, folder, hlc) = (change.id, change.collection, change.hlcTimestamp)
    (key64, signature64) = (change.authorPublicKey, change.signature)
    switch change.type {
    case .insert: break
    case .delete: isRemoved = true
    default: type = change.type.rawValue
    }
    // Another form of the same bookmark, from a peer, has to come back as it came.
    let bookmark = try? JSONDecoder().decode(Bookmark.self, from: change.payload)
    if let bookmark, try bookmark.encoded() == change.payload {
      (title, url) = (bookmark.title, bookmark.url)
    } else {
      content64 = change.payload
    }
  }

  var change: ChangeRecord {
    get throws {
      let known: MutationType = isRemoved == true ? .delete : .insert
      guard let type = MutationType(rawValue: type ?? known.rawValue) else {
        throw CocoaError(.coderInvalidValue)
      }
      return ChangeRecord(
        id: uuid, collection: folder, type: type,
        payload: try content64 ?? Bookmark(title: title ?? "", url: url ?? "").encoded(),
        hlcTimestamp: hlc, authorPublicKey: key64, signature: signature64)
    }
  }
}

/// What the payload of a record is.
struct Bookmark: Codable {
  var title: String
  var url: String

  /// Always the same bytes for the same bookmark.
  func encoded() throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return try encoder.encode(self)
  }
}
// end

struct OwnLinesExamples {
  /// Keeps what comes back from the lines.
  private actor LinesAdapter: AirDbAdapter {
    private let kept = ReferenceAdapter()

    func getChangesSince(sinceHlcTimestamp: String?, limit: Int) async -> [ChangeRecord] {
      await kept.getChangesSince(sinceHlcTimestamp: sinceHlcTimestamp, limit: limit)
    }

    func applyChanges(_ changes: [ChangeRecord]) async throws {
      await kept.applyChanges(
        try changes.map { change in
          let line = try JSONEncoder().encode(Line(change))
          return try JSONDecoder().decode(Line.self, from: line).change
        })
    }

    func getLatestHlc() async -> String? { await kept.getLatestHlc() }
  }

  @Test func theLinesKeepWhatTheyAreGiven() async {
    var options = AdapterConformance.Options()
    options.randomScripts = 10
    options.payloads = [
      #"{"title":"A","url":"https://example.org/?q=1"}"#, #"{"url":"","title":"A"}"#,
      #"{ "title": "\u00e9", "url": "https:\/\/example.org" }"#,
      #"{"title":"A","url":"","more":1}"#,
    ].map { Data($0.utf8) }
    let conformance = AdapterConformance(options: options) { LinesAdapter() }
    let report = await conformance.run([.fields, .unknownTypes, .keyBytes, .randomScripts])
    #expect(report.isConforming, "\(report)")
  }

  @Test func aBookmarkIsALineOfTheApp() throws {
    let change = ChangeRecord(
      id: "1", collection: "reading", type: .insert,
      payload: try Bookmark(title: "A", url: "https://example.org").encoded(),
      hlcTimestamp: "1700000000000-0000-a")
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let fields = [
      #""folder":"reading""#, #""hlc":"1700000000000-0000-a""#, #""title":"A""#,
      #""url":"https://example.org""#, #""uuid":"1""#,
    ]
    let line = String(decoding: try encoder.encode(Line(change)), as: UTF8.self)
    #expect(line == "{\(fields.joined(separator: ","))}")
  }

  @Test func linesWithoutTimestampsGetThem() async throws {
    let old = [
      (uuid: "1", folder: "reading", title: "A", url: "https://example.org/a"),
      (uuid: "2", folder: "later", title: "B", url: "https://example.org/b"),
    ]
    let adapter: any AirDbAdapter = ReferenceAdapter()
    // example: Stamp lines
    var clock = try HybridLogicalClock(node: "phone")
    let changes = try old.map { line in
      ChangeRecord(
        id: line.uuid, collection: line.folder, type: .insert,
        payload: try Bookmark(title: line.title, url: line.url).encoded(),
        hlcTimestamp: try clock.tick(at: Date()), authorPublicKey: nil, signature: nil)
    }
    try await adapter.applyChanges(changes)
    // end
    let found = try await adapter.getChangesSince(sinceHlcTimestamp: nil, limit: 10)
    #expect(found.map(\.id) == ["1", "2"])
    #expect(found[0].hlcTimestamp != found[1].hlcTimestamp)
  }
}
