// Characters that act instead of being seen: C0 and C1 controls, line and paragraph separators, and
// those that change the direction of the text around them. A terminal obeys them, so that a record's
// id could rewrite the screen or look like another one.

/// The control character at the front of UTF-8 bytes, and its length; nil if there is none.
func controlCharacter(
  _ bytes: UnsafeBufferPointer<UInt8>.SubSequence
) -> (code: UInt32, length: Int)? {
  let first = bytes[bytes.startIndex]
  if first < 0x20 || first == 0x7F { return (UInt32(first), 1) }
  // The others are in U+0080...U+009F, U+061C and U+2000...U+2069.
  guard first == 0xC2 || first == 0xD8 || first == 0xE2, bytes.count >= 2 else { return nil }
  let second = bytes[bytes.startIndex + 1]
  if first == 0xC2 { return second < 0xA0 ? (UInt32(second), 2) : nil }
  if first == 0xD8 { return second == 0x9C ? (0x061C, 2) : nil }
  guard second == 0x80 || second == 0x81, bytes.count >= 3 else { return nil }
  let code = 0x2000 + UInt32(second & 0x3F) << 6 + UInt32(bytes[bytes.startIndex + 2] & 0x3F)
  switch code {
  case 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: return (code, 3)
  default: return nil
  }
}

/// Copies UTF-8 bytes in runs, and hands each character that `isSpecial` finds to `escape` instead.
func copy(
  _ bytes: UnsafeBufferPointer<UInt8>, to output: inout [UInt8],
  escaping special: (UnsafeBufferPointer<UInt8>.SubSequence) -> (code: UInt32, length: Int)?,
  as escape: (UInt32, inout [UInt8]) -> Void
) {
  var copied = 0
  var position = 0
  while position < bytes.count {
    guard let (code, length) = special(bytes[position...]) else {
      position += 1
      continue
    }
    output.append(contentsOf: bytes[copied..<position])
    escape(code, &output)
    position += length
    copied = position
  }
  output.append(contentsOf: bytes[copied...])
}

/// A text for people, with control characters as `\u{1B}`.
func escapingControls(_ text: String) -> String {
  var text = text
  return text.withUTF8 { bytes in
    var result: [UInt8] = []
    copy(bytes, to: &result, escaping: controlCharacter) { code, output in
      output.append(contentsOf: "\\u{\(String(code, radix: 16, uppercase: true))}".utf8)
    }
    return String(decoding: result, as: UTF8.self)
  }
}
