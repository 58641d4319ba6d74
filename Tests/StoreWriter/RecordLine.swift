import AirDbLogStore
import Foundation

/// A record as a line of JSON, in the field names of the tool and of the decoder.
struct RecordLine: Encodable {
  var collection: String
  var id: String
  var type: Int
  var hlc: String
  var payload64: String
  var author64: String?
  var signature64: String?

  init(_ record: ChangeRecord) {
    collection = record.collection
    id = record.id
    type = record.type.rawValue
    hlc = record.hlcTimestamp
    payload64 = record.payload.base64EncodedString()
    author64 = record.authorPublicKey?.base64EncodedString()
    signature64 = record.signature?.base64EncodedString()
  }

  static func lines(_ records: [ChangeRecord]) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return try Data(
      records.map { try encoder.encode(RecordLine($0)) + Data("\n".utf8) }.joined())
  }
}

/// A consumer, in the field names of the decoder.
struct ConsumerLine: Encodable {
  var name: String
  /// 0: at the beginning.
  var sequence: UInt64
  var retention: String
  /// Milliseconds.
  var maximumAge: Int64?
  var maximumBytes: UInt64?

  static func all(of store: ChangeStore) throws -> [ConsumerLine] {
    try store.consumers().map { status in
      var line = ConsumerLine(
        name: status.name, sequence: status.position?.sequence ?? 0, retention: "latest versions")
      if case .history(let age, let bytes) = status.retention {
        line.retention = "history"
        line.maximumAge = age.map { $0.components.seconds * 1_000 }
        line.maximumBytes = bytes
      }
      return line
    }
  }
}
