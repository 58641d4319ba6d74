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
    // What a letter is farther from 10 than a digit from 0.
    let letter: UInt64 = form == .uppercase ? 0x41 - 10 - 0x30 : 0x61 - 10 - 0x30
    let words = (
      digits(packed.load(UInt32.self, at: 0), letter),
      digits(packed.load(UInt32.self, at: 4), letter),
      digits(packed.load(UInt32.self, at: 8), letter),
      digits(packed.load(UInt32.self, at: 12), letter)
    )
    func store<T: FixedWidthInteger>(_ value: T, at offset: Int) {
      text.storeBytes(of: value.littleEndian, toByteOffset: offset, as: T.self)
    }
    store(words.0, at: 0)
    store(UInt32(truncatingIfNeeded: words.1), at: 9)
    store(UInt32(truncatingIfNeeded: words.1 >> 32), at: 14)
    store(UInt32(truncatingIfNeeded: words.2), at: 19)
    store(UInt32(truncatingIfNeeded: words.2 >> 32), at: 24)
    store(words.3, at: 28)
    store(dash, at: 8)
    store(dash, at: 13)
    store(dash, at: 18)
    store(dash, at: 23)
  }

  /// The eight digits of four bytes; the first in the lowest byte of either.
  @inline(__always)
  private static func digits(_ bytes: UInt32, _ letter: UInt64) -> UInt64 {
    // Each byte to 16 bits, then its high and low half to a byte each.
    var spread = UInt64(bytes)
    spread = (spread | spread << 16) & 0x0000_FFFF_0000_FFFF
    spread = (spread | spread << 8) & 0x00FF_00FF_00FF_00FF
    spread = (spread >> 4 | spread << 8) & 0x0F0F_0F0F_0F0F_0F0F
    let isLetter = (spread &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
    return spread &+ 0x3030_3030_3030_3030 &+ isLetter &* letter
  }

  private static let dash: UInt8 = 0x2D
}
