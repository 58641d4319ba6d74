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
    var digits = Digits()
    let words = (
      digits.add(id.load(UInt64.self, at: 0)),
      digits.add(fours(id.load(UInt32.self, at: 9), id.load(UInt32.self, at: 14))),
      digits.add(fours(id.load(UInt32.self, at: 19), id.load(UInt32.self, at: 24))),
      digits.add(id.load(UInt64.self, at: 28))
    )
    guard digits.others == 0, digits.lower == 0 || digits.upper == 0 else { return .text }
    packed = (words.0 << 32 | words.1, words.2 << 32 | words.3)
    return digits.upper == 0 ? .lowercase : .uppercase
  }

  @inline(__always)
  private static func fours(_ first: UInt32, _ second: UInt32) -> UInt64 {
    UInt64(first) | UInt64(second) << 32
  }

  /// Hexadecimal digits, eight at a time: each in a byte of a word, the first in the lowest. What is
  /// said of a byte is said in its highest bit.
  private struct Digits {
    var lower: UInt64 = 0
    var upper: UInt64 = 0
    var others: UInt64 = 0

    private static let each: UInt64 = 0x0101_0101_0101_0101
    private static let flags: UInt64 = 0x80 &* each

    /// Notes what is among eight characters, and answers the number that they are.
    @inline(__always)
    mutating func add(_ text: UInt64) -> UInt64 {
      let folded = text | 0x20 &* Self.each
      let isDigit = isAtLeast(text, 0x30) & ~isAtLeast(text, 0x3A)
      let isLetter = isAtLeast(folded, 0x61) & ~isAtLeast(folded, 0x67)
      others |= text & Self.flags | ~(isDigit | isLetter) & Self.flags
      // The bit of the lower case, moved up to the flag of its byte.
      lower |= isLetter & text << 2
      upper |= isLetter & ~(text << 2)
      // To four bits each, then neighbours together: two digits, four, eight.
      var value = (text & (0x0F &* Self.each)) &+ (isLetter >> 7) &* 9
      value = (value << 4 | value >> 8) & 0x00FF_00FF_00FF_00FF
      value = (value | value >> 8) & 0x0000_FFFF_0000_FFFF
      return UInt64(UInt32(truncatingIfNeeded: value | value >> 16).byteSwapped)
    }

    /// Of bytes below 0x80; whatever is said of others, they are among the `others`.
    @inline(__always)
    private func isAtLeast(_ bytes: UInt64, _ least: UInt64) -> UInt64 {
      ((bytes | Self.flags) &- least &* Self.each) & Self.flags
    }
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
