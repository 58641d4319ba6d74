import AirDbLogStore
import Foundation

/// Writes records as JSON Lines: one object a line, everything in it byte for byte.
///
/// A payload that is UTF-8 is the text `payload`, any other is `payload64`; keys and signatures are
/// there only if the record has them. Control characters are always escaped, so that a line is safe
/// to show.
enum JsonLine {
  static func append(_ record: ChangeRecord, to output: inout [UInt8]) {
    output.append(contentsOf: "{\"collection\":".utf8)
    append(record.collection, to: &output)
    output.append(contentsOf: ",\"id\":".utf8)
    append(record.id, to: &output)
    output.append(contentsOf: ",\"type\":\(record.type.rawValue),\"hlc\":".utf8)
    append(record.hlcTimestamp, to: &output)
    append(payload: record.payload, to: &output)
    append(base64: record.authorPublicKey, as: "authorPublicKey64", to: &output)
    append(base64: record.signature, as: "signature64", to: &output)
    output.append(contentsOf: "}\n".utf8)
  }

  private static func append(payload: Data, to output: inout [UInt8]) {
    let isText = payload.withUnsafeBytes { raw in
      raw.withMemoryRebound(to: UInt8.self) { bytes in
        guard isUtf8(bytes) else { return false }
        output.append(contentsOf: ",\"payload\":".utf8)
        append(utf8: bytes, to: &output)
        return true
      }
    }
    if !isText { append(base64: payload, as: "payload64", to: &output) }
  }

  private static func append(base64 data: Data?, as name: String, to output: inout [UInt8]) {
    guard let data else { return }
    output.append(contentsOf: ",\"\(name)\":\"".utf8)
    output.append(contentsOf: data.base64EncodedData())
    output.append(UInt8(ascii: "\""))
  }

  static func append(_ text: String, to output: inout [UInt8]) {
    var text = text
    text.withUTF8 { append(utf8: $0, to: &output) }
  }

  private static func append(utf8 bytes: UnsafeBufferPointer<UInt8>, to output: inout [UInt8]) {
    output.append(UInt8(ascii: "\""))
    copy(bytes, to: &output, escaping: special, as: escape)
    output.append(UInt8(ascii: "\""))
  }

  private static func special(
    _ bytes: UnsafeBufferPointer<UInt8>.SubSequence
  ) -> (code: UInt32, length: Int)? {
    let first = bytes[bytes.startIndex]
    if first == UInt8(ascii: "\"") || first == UInt8(ascii: "\\") { return (UInt32(first), 1) }
    return controlCharacter(bytes)
  }

  private static func escape(_ code: UInt32, _ output: inout [UInt8]) {
    switch code {
    case 0x0A: output.append(contentsOf: "\\n".utf8)
    case 0x0D: output.append(contentsOf: "\\r".utf8)
    case 0x09: output.append(contentsOf: "\\t".utf8)
    case 0x22: output.append(contentsOf: "\\\"".utf8)
    case 0x5C: output.append(contentsOf: "\\\\".utf8)
    default:
      output.append(contentsOf: "\\u".utf8)
      for shift in [12, 8, 4, 0] {
        output.append(Array("0123456789abcdef".utf8)[Int(code >> UInt32(shift)) & 15])
      }
    }
  }

  /// `String` repairs what is not UTF-8, so that only UTF-8 comes back unchanged.
  private static func isUtf8(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    var text = String(decoding: bytes, as: UTF8.self)
    return text.withUTF8 { $0.count == bytes.count && $0.elementsEqual(bytes) }
  }
}
