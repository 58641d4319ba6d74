/// What is wrong with a line of JSON, and at which byte of it, from 1 on.
struct JsonProblem: Error {
  var column: Int
  var reason: String
}

/// Reads a line that is one JSON object of texts and whole numbers, as `dump` writes them.
///
/// Not with Foundation's reader: that takes the last of two fields of one name and says nothing of
/// fields that nobody asked for; either would be a record that is not the one in the file.
struct JsonFields {
  enum Value {
    /// UTF-8.
    case text([UInt8])
    case number(Int)
    case null
  }

  private let bytes: ArraySlice<UInt8>
  private var position: Int

  /// The fields of a line, each at most once, with the columns at which they begin.
  static func read(
    _ line: ArraySlice<UInt8>
  ) throws(JsonProblem) -> [String: (value: Value, column: Int)] {
    var reader = JsonFields(bytes: line, position: line.startIndex)
    return try reader.object()
  }

  private mutating func object() throws(JsonProblem) -> [String: (value: Value, column: Int)] {
    var fields: [String: (value: Value, column: Int)] = [:]
    skipSpace()
    try expect("{")
    skipSpace()
    if next == UInt8(ascii: "}") {
      position += 1
    } else {
      while true {
        skipSpace()
        let start = column
        guard next == UInt8(ascii: "\"") else { throw problem("a field's name is expected") }
        let name = String(decoding: try text(), as: UTF8.self)
        guard fields[name] == nil else {
          throw JsonProblem(column: start, reason: "the field \"\(name)\" is there twice")
        }
        skipSpace()
        try expect(":")
        skipSpace()
        fields[name] = (try value(), start)
        skipSpace()
        if next == UInt8(ascii: "}") { break }
        try expect(",")
      }
      position += 1
    }
    skipSpace()
    guard position == bytes.endIndex else { throw problem("there is more behind the object") }
    return fields
  }

  private mutating func value() throws(JsonProblem) -> Value {
    switch next {
    case UInt8(ascii: "\"")?: return .text(try text())
    case UInt8(ascii: "-")?, (UInt8(ascii: "0")...UInt8(ascii: "9"))?: return .number(try number())
    case UInt8(ascii: "n")? where bytes[position...].starts(with: "null".utf8):
      position += 4
      return .null
    default: throw problem("a text or a whole number is expected")
    }
  }

  private mutating func number() throws(JsonProblem) -> Int {
    let start = position
    if next == UInt8(ascii: "-") { position += 1 }
    let digits = position
    while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
    let isJson = bytes[digits..<position].first != UInt8(ascii: "0") || position == digits + 1
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    if let byte = next, [".", "e", "E"].contains(Unicode.Scalar(byte)) {
      throw problem("a whole number is expected", at: start)
    }
    guard isJson, let number = Int(text) else {
      throw problem("\"\(text)\" is not a whole number of 64 bits", at: start)
    }
    return number
  }

  // MARK: Texts

  private mutating func text() throws(JsonProblem) -> [UInt8] {
    let start = position
    position += 1
    var result: [UInt8] = []
    while true {
      let plain = bytes[position...].prefix {
        $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
      }
      result.append(contentsOf: plain)
      position = plain.endIndex
      switch next {
      case nil: throw problem("the text that begins here does not end", at: start)
      case UInt8(ascii: "\"")?:
        position += 1
        guard Self.isUtf8(result) else { throw problem("the text is not UTF-8", at: start) }
        return result
      case UInt8(ascii: "\\")?: try escape(into: &result)
      default: throw problem("a control character in a text must be escaped")
      }
    }
  }

  private mutating func escape(into result: inout [UInt8]) throws(JsonProblem) {
    let start = position
    position += 1
    let byte = next
    position += 1
    switch byte.map({ Unicode.Scalar($0) }) {
    case "\"", "\\", "/": result.append(byte!)
    case "b": result.append(0x08)
    case "f": result.append(0x0C)
    case "n": result.append(0x0A)
    case "r": result.append(0x0D)
    case "t": result.append(0x09)
    case "u":
      var code = try hexadecimal(start)
      if (0xD800..<0xDC00).contains(code), bytes[position...].starts(with: "\\u".utf8) {
        position += 2
        let low = try hexadecimal(start)
        guard (0xDC00..<0xE000).contains(low) else {
          throw problem("half of a surrogate pair", at: start)
        }
        code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
      }
      guard let scalar = Unicode.Scalar(code) else {
        throw problem("half of a surrogate pair", at: start)
      }
      result.append(contentsOf: UTF8.encode(scalar)!)
    default: throw problem("an escape that JSON does not have", at: start)
    }
  }

  private mutating func hexadecimal(_ start: Int) throws(JsonProblem) -> UInt32 {
    let digits = bytes[position...].prefix(4)
    // A sign would be read as part of the number.
    guard digits.count == 4, digits.allSatisfy({ Unicode.Scalar($0).properties.isASCIIHexDigit }),
      let code = UInt32(String(decoding: digits, as: UTF8.self), radix: 16)
    else { throw problem("four hexadecimal digits are expected", at: start) }
    position += 4
    return code
  }

  /// `String` repairs what is not UTF-8, so that only UTF-8 comes back unchanged.
  private static func isUtf8(_ bytes: [UInt8]) -> Bool {
    var text = String(decoding: bytes, as: UTF8.self)
    return text.withUTF8 { $0.count == bytes.count && $0.elementsEqual(bytes) }
  }

  // MARK: Bytes

  private var next: UInt8? { position < bytes.endIndex ? bytes[position] : nil }
  private var column: Int { position - bytes.startIndex + 1 }

  private mutating func skipSpace() {
    while let byte = next, [0x20, 0x09, 0x0D].contains(byte) { position += 1 }
  }

  private mutating func expect(_ character: Unicode.Scalar) throws(JsonProblem) {
    guard next == UInt8(ascii: character) else { throw problem("\"\(character)\" is expected") }
    position += 1
  }

  private func problem(_ reason: String, at position: Int? = nil) -> JsonProblem {
    JsonProblem(
      column: (position ?? min(self.position, bytes.endIndex)) - bytes.startIndex + 1,
      reason: reason)
  }
}
