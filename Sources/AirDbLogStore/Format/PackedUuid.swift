/// Ids that are canonical UUIDs take 16 bytes instead of 36 (Format 6.1).
package enum PackedUuid {
  package static let textSize = 36

  /// How an id is stored; the raw values are those of the row flags.
  package enum Form: UInt8 {
    case text = 0
    case lowercase = 1
    case uppercase = 2
  }

  /// The form of an id, with the 16 bytes in `packed` if it is a canonical UUID.
  package static func pack(
    _ id: UnsafeRawBufferPointer, into packed: inout (UInt64, UInt64)
  ) -> Form {
    guard id.count == textSize, id[8] == dash, id[13] == dash, id[18] == dash, id[23] == dash
    else { return .text }
    var words: (UInt64, UInt64) = (0, 0)
    var digits = 0
    // Without branches on the digits, which nothing could foresee.
    var letters: UInt8 = 0
    var others: UInt8 = 0
    for index in 0..<textSize {
      if index == 8 || index == 13 || index == 18 || index == 23 { continue }
      let byte = id[index]
      let isDigit: UInt8 = byte &- 0x30 < 10 ? 1 : 0
      let isLetter: UInt8 = (byte | 0x20) &- 0x61 < 6 ? 1 : 0
      others |= 1 &- (isDigit | isLetter)
      letters |= isLetter << (byte >> 5 & 1)
      let value = UInt64(byte & 0x0F &+ isLetter &* 9)
      if digits < 16 {
        words.0 = words.0 << 4 | value
      } else {
        words.1 = words.1 << 4 | value
      }
      digits += 1
    }
    // Bit 0 says that an upper-case letter was among the digits, bit 1 a lower-case one.
    guard others == 0, letters != 3 else { return .text }
    let form: Form = letters == 1 ? .uppercase : .lowercase
    packed = words
    return form
  }

  /// Writes the 36 characters of a UUID given as 16 bytes.
  package static func unpack(
    _ packed: UnsafeRawBufferPointer, _ form: Form, into text: UnsafeMutableRawBufferPointer
  ) {
    let letter: UInt8 = form == .uppercase ? 0x41 - 10 : 0x61 - 10
    var position = 0
    for index in 0..<16 {
      if index == 4 || index == 6 || index == 8 || index == 10 {
        text[position] = dash
        position += 1
      }
      let byte = packed[index]
      let high = byte >> 4
      let low = byte & 0x0F
      text[position] = high < 10 ? 0x30 + high : letter + high
      text[position + 1] = low < 10 ? 0x30 + low : letter + low
      position += 2
    }
  }

  private static let dash: UInt8 = 0x2D
}
