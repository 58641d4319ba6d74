import AirDbLogStore
import Foundation

// Reads back what is written, byte for byte.
extension JsonLine {
  private static let names: Set<String> = [
    "collection", "id", "type", "hlc", "payload", "payload64", "authorPublicKey64", "signature64",
  ]

  /// The record of a line.
  ///
  /// Without a payload it has an empty one; a key and a signature that are absent or null are nil.
  static func record(_ line: ArraySlice<UInt8>) throws(JsonProblem) -> ChangeRecord {
    let fields = Fields(values: try JsonFields.read(line))
    if let stranger = fields.values.filter({ !names.contains($0.key) })
      .min(by: { $0.value.column < $1.value.column })
    {
      throw JsonProblem(
        column: stranger.value.column, reason: "there is no field \"\(stranger.key)\" in a record")
    }
    let type = try fields.number("type")
    guard let type = MutationType(rawValue: type) else {
      throw JsonProblem(column: 1, reason: "there is no type \(type)")
    }
    var payload = try fields.text("payload").map { Data($0) }
    if let encoded = try fields.base64("payload64") {
      guard payload == nil else {
        throw JsonProblem(column: 1, reason: "the fields payload and payload64 are both there")
      }
      payload = encoded
    }
    return ChangeRecord(
      id: try fields.required("id"), collection: try fields.required("collection"), type: type,
      payload: payload ?? Data(), hlcTimestamp: try fields.required("hlc"),
      authorPublicKey: try fields.base64("authorPublicKey64"),
      signature: try fields.base64("signature64"))
  }

  /// The fields of a line by their names.
  private struct Fields {
    var values: [String: (value: JsonFields.Value, column: Int)]

    func text(_ name: String) throws(JsonProblem) -> [UInt8]? {
      guard let (value, column) = values[name] else { return nil }
      switch value {
      case .text(let bytes): return bytes
      case .null: return nil
      case .number: throw JsonProblem(column: column, reason: "the field \(name) must be a text")
      }
    }

    func required(_ name: String) throws(JsonProblem) -> String {
      guard let bytes = try text(name) else {
        throw JsonProblem(column: 1, reason: "the field \(name) is missing")
      }
      return String(decoding: bytes, as: UTF8.self)
    }

    func number(_ name: String) throws(JsonProblem) -> Int {
      guard let (value, column) = values[name] else {
        throw JsonProblem(column: 1, reason: "the field \(name) is missing")
      }
      guard case .number(let number) = value else {
        throw JsonProblem(column: column, reason: "the field \(name) must be a whole number")
      }
      return number
    }

    func base64(_ name: String) throws(JsonProblem) -> Data? {
      guard let bytes = try text(name) else { return nil }
      guard let data = Data(base64Encoded: Data(bytes)) else {
        throw JsonProblem(
          column: values[name]?.column ?? 1, reason: "the field \(name) is not base64")
      }
      return data
    }
  }
}
