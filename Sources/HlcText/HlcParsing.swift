/// The parts of `text`, or nil when it is malformed in `format`.
///
/// Only the physical part, the counter and the separators are looked at. A node may hold any
/// bytes, and the length of the text is not limited here. Takes constant time and does not
/// allocate.
package func parseHlc(_ text: UnsafeBufferPointer<UInt8>, format: HlcFormat) -> HlcParts? {
  switch format {
  case .hybrid: parseHybrid(text)
  case .utf8Order: parseUtf8Order(text)
  }
}

// MARK: - hybrid

private func parseHybrid(_ text: UnsafeBufferPointer<UInt8>) -> HlcParts? {
  let kind: HlcPhysicalKind
  let physical: UInt64
  let physicalLength: Int
  // A decimal physical part has ten digits or more, so the fifth byte tells the two kinds apart.
  if text.count > 4, text[4] == Ascii.hyphen {
    guard let (nanoseconds, length) = parseIso8601(text) else { return nil }
    (kind, physical, physicalLength) = (.iso8601, nanoseconds, length)
  } else {
    guard let (number, length) = parseDecimal(text) else { return nil }
    (kind, physical, physicalLength) = (.decimal, number, length)
  }

  guard physicalLength < text.count, isHlcSeparator(text[physicalLength]) else { return nil }
  let counterStart = physicalLength + 1
  guard let (counter, counterLength) = parseCounter(text, from: counterStart) else { return nil }

  var nodeStart = counterStart + counterLength
  if nodeStart < text.count {
    guard isHlcSeparator(text[nodeStart]) else { return nil }
    nodeStart += 1
    guard nodeStart < text.count else { return nil }
  }
  return HlcParts(
    kind: kind, physical: physical, counter: counter, nodeStart: nodeStart,
    physicalLength: physicalLength, counterLength: counterLength)
}

/// The run of 10 to 19 digits at the start of `text`. Nineteen digits fit in 64 bits.
private func parseDecimal(
  _ text: UnsafeBufferPointer<UInt8>
) -> (number: UInt64, length: Int)? {
  var number: UInt64 = 0
  var length = 0
  while length < text.count {
    let digit = text[length] &- Ascii.zero
    guard digit <= 9 else { break }
    guard length < HlcLimits.decimalDigits.upperBound else { return nil }
    number = number &* 10 &+ UInt64(digit)
    length += 1
  }
  return length >= HlcLimits.decimalDigits.lowerBound ? (number, length) : nil
}

/// The instant `YYYY-MM-DDTHH:MM:SS[.f]Z` at the start of `text`, with one to nine `f`.
private func parseIso8601(
  _ text: UnsafeBufferPointer<UInt8>
) -> (nanoseconds: UInt64, length: Int)? {
  guard text.count >= Iso8601.wholeSecondsLength,
    text[4] == Ascii.hyphen, text[7] == Ascii.hyphen, text[10] == Ascii.upperT,
    text[13] == Ascii.colon, text[16] == Ascii.colon,
    let century = parseTwoDigits(text, at: 0), let yearOfCentury = parseTwoDigits(text, at: 2),
    let month = parseTwoDigits(text, at: 5), let day = parseTwoDigits(text, at: 8),
    let hour = parseTwoDigits(text, at: 11), let minute = parseTwoDigits(text, at: 14),
    let second = parseTwoDigits(text, at: 17)
  else { return nil }

  let year = century * 100 + yearOfCentury
  guard Iso8601.years.contains(year), 1...12 ~= month,
    day >= 1, day <= Iso8601.dayCount(year: year, month: month),
    hour <= 23, minute <= 59, second <= 59
  else { return nil }

  var length = Iso8601.dateTimeLength
  var fraction: UInt64 = 0
  if text[length] == Ascii.period {
    length += 1
    var scale: UInt64 = 100_000_000
    let start = length
    while length < text.count {
      let digit = text[length] &- Ascii.zero
      guard digit <= 9 else { break }
      guard length - start < HlcLimits.fractionDigits.upperBound else { return nil }
      fraction += UInt64(digit) * scale
      scale /= 10
      length += 1
    }
    guard length > start else { return nil }
  }
  guard length < text.count, text[length] == Ascii.upperZ else { return nil }

  let days = UInt64(Iso8601.days(year: year, month: month, day: day))
  let seconds = days * 86_400 + UInt64(hour * 3_600 + minute * 60 + second)
  // Cannot overflow: the last nanosecond of the year 2553 is 18_429_292_799_999_999_999.
  return (seconds * 1_000_000_000 + fraction, length + 1)
}

@inline(__always)
private func parseTwoDigits(_ text: UnsafeBufferPointer<UInt8>, at offset: Int) -> Int? {
  let tens = text[offset] &- Ascii.zero
  let ones = text[offset + 1] &- Ascii.zero
  guard tens <= 9, ones <= 9 else { return nil }
  return Int(tens) * 10 + Int(ones)
}

/// The run of 1 to 16 letters and digits that starts at `start`, at most 12 of them after its
/// leading zeros, as a number in base 36.
///
/// That number orders counters as their length without leading zeros and then their bytes do,
/// ignoring case: a digit is less than a letter in both, and the longer of two numbers that do
/// not start with a zero is the greater. 36^12 is less than 2^63.
private func parseCounter(
  _ text: UnsafeBufferPointer<UInt8>, from start: Int
) -> (value: UInt64, length: Int)? {
  var value: UInt64 = 0
  var significant = 0
  var position = start
  while position < text.count, let digit = base36Digit(text[position]) {
    guard position - start < HlcLimits.counterDigits.upperBound else { return nil }
    if value != 0 || digit != 0 {
      guard significant < HlcLimits.significantCounterDigits else { return nil }
      significant += 1
      value = value &* 36 &+ UInt64(digit)
    }
    position += 1
  }
  return position > start ? (value, position - start) : nil
}

@inline(__always)
private func base36Digit(_ byte: UInt8) -> UInt8? {
  let digit = byte &- Ascii.zero
  if digit <= 9 { return digit }
  let letter = (byte | Ascii.caseBit) &- Ascii.lowerA
  return letter < 26 ? letter + 10 : nil
}

// MARK: - utf8Order

/// The first sixteen bytes as two big-endian numbers, and the bytes that these do not tell.
///
/// The order of (physical, counter, node) is the order of the bytes. Let P(s) be the first sixteen
/// bytes of s, padded at the end with zeros, and k(s) the offset behind the last byte of P(s) that
/// is not zero. The node is s from k(s) on, and k(s) <= count, as padding is zero.
/// - P(s) and P(t) first differ at i. If both texts reach i, their bytes first differ there too,
///   in the same way. Otherwise one text, say s, ends at or before i, and t does not: at i the
///   padding of s is zero, so t holds a byte that is not. The bytes before i agree, so t starts
///   with s (between the end of s and i, P(t) equals the padding), and s is less both ways.
/// - P(s) = P(t). Then k(s) = k(t), the texts agree up to there, and the order of the bytes is
///   that of the nodes. A node that is absent has no bytes, and so is the first.
private func parseUtf8Order(_ text: UnsafeBufferPointer<UInt8>) -> HlcParts? {
  guard !text.isEmpty else { return nil }
  let physical = bigEndianPrefix(text, from: 0)
  let counter = bigEndianPrefix(text, from: 8)
  let zeroBytes =
    counter != 0 ? counter.trailingZeroBitCount / 8 : 8 + physical.trailingZeroBitCount / 8
  return HlcParts(
    kind: nil, physical: physical, counter: counter, nodeStart: 16 - zeroBytes,
    physicalLength: 0, counterLength: 0)
}

/// The eight bytes from `offset` on as a big-endian number, with zeros for bytes past the end.
private func bigEndianPrefix(_ text: UnsafeBufferPointer<UInt8>, from offset: Int) -> UInt64 {
  if text.count >= offset + 8 {
    let bytes = UnsafeRawBufferPointer(text).loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    return UInt64(bigEndian: bytes)
  }
  var number: UInt64 = 0
  for position in offset..<(offset + 8) {
    number = number << 8 | (position < text.count ? UInt64(text[position]) : 0)
  }
  return number
}
