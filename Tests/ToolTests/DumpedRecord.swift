#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation
  import Testing

  /// A line of `dump` or `get`, read back by a JSON reader that is not the tool's.
  struct DumpedRecord: Decodable {
    var collection: String
    var id: String
    var type: Int
    var hlc: String
    var payload: String?
    var payload64: Data?
    var authorPublicKey64: Data?
    var signature64: Data?

    static func read(_ lines: [Substring]) throws -> [ChangeRecord] {
      try lines.map { line in
        let read = try JSONDecoder().decode(DumpedRecord.self, from: Data(line.utf8))
        #expect(
          (read.payload == nil) != (read.payload64 == nil), "One of the two payloads: \(line)")
        return ChangeRecord(
          id: read.id, collection: read.collection,
          type: try #require(MutationType(rawValue: read.type)),
          payload: read.payload.map { Data($0.utf8) } ?? read.payload64 ?? Data(),
          hlcTimestamp: read.hlc, authorPublicKey: read.authorPublicKey64,
          signature: read.signature64
        )
      }
    }
  }
#endif
