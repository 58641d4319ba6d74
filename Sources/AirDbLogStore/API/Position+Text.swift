extension Position: LosslessStringConvertible {
  /// Store, sequence, checksum and horizon in hexadecimal, with dots between them: one word, that a shell
  /// passes on as it is.
  public var description: String {
    let numbers = [sequence, UInt64(checksum), horizon].map { String($0, radix: 16) }
    return ([storeId] + numbers).joined(separator: ".")
  }

  /// Reads what ``description`` gives; nil for any other text.
  public init?(_ description: String) {
    let parts = description.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 4, parts[0].utf8.count == 32, parts[0].utf8.allSatisfy(Self.isDigit),
      let sequence = Self.number(parts[1]), let checksum = Self.number(parts[2]),
      let checksum = UInt32(exactly: checksum), let horizon = Self.number(parts[3])
    else { return nil }
    self.init(
      storeId: String(parts[0]), sequence: sequence, checksum: checksum, horizon: horizon)
  }

  private static func number(_ text: Substring) -> UInt64? {
    // Signs and capitals would be other spellings of the same.
    text.utf8.allSatisfy(isDigit) ? UInt64(text, radix: 16) : nil
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
      || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
  }
}
