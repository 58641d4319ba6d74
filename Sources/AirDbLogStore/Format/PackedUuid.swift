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
    var cases: UInt8 = 0
    for index in 0..<textSize {
      if index == 8 || index == 13 || index == 18 || index == 23 { continue }
      let entry = nibbles[Int(id[index])]
      if entry == 0xFF { return .text }
      cases |= entry
      if digits < 16 {
        words.0 = words.0 << 4 | UInt64(entry & 0x0F)
      } else {
        words.1 = words.1 << 4 | UInt64(entry & 0x0F)
      }
      digits += 1
    }
    // Bits 4 and 5 say that a lower- or an upper-case letter was among the digits.
    let form: Form
    switch cases & 0x30 {
    case 0x30: return .text
    case 0x20: form = .uppercase
    default: form = .lowercase
    }
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

  /// The value of a hexadecimal digit, with bit 4 for a lower-case and bit 5 for an upper-case
  /// letter; 0xFF for any other byte.
  private static let nibbles: [UInt8] = (0...255).map { byte in
    switch UInt8(byte) {
    case 0x30...0x39: UInt8(byte) - 0x30
    case 0x61...0x66: (UInt8(byte) - 0x61 + 10) | 0x10
    case 0x41...0x46: (UInt8(byte) - 0x41 + 10) | 0x20
    default: 0xFF
    }
  }
}
