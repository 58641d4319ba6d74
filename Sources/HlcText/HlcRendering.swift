/// Writes the text that has this shape and these parts to the start of `buffer`.
///
/// The inverse of parsing: whatever it writes parses in the format ``HlcFormat/hybrid`` to the
/// same parts and has the same shape. All arguments may come from an untrusted file.
///
/// - Returns: The length of the text; or nil when the shape is not valid, a value does not fit in
///   the shape, or the text does not fit in the buffer. Some of the buffer may be overwritten then.
package func renderHlc(
  shape: HlcShape, physical: UInt64, counter: UInt64, node: UnsafeBufferPointer<UInt8>,
  into buffer: UnsafeMutableBufferPointer<UInt8>
) -> Int? {
  guard let length = shape.textLength(nodeLength: node.count), length <= buffer.count,
    let kind = HlcPhysicalKind(rawValue: shape.kind)
  else { return nil }

  var writer = TextWriter(buffer: buffer)
  switch kind {
  case .decimal:
    guard writer.appendDecimal(physical, digits: Int(shape.physicalDigits)) else { return nil }
  case .iso8601:
    let digits = shape.physicalDigits
    let fractionDigits = digits == HlcShape.noFraction ? 0 : Int(digits)
    guard writer.appendIso8601(physical, fractionDigits: fractionDigits) else { return nil }
  }
  writer.append(shape.separator1)
  guard
    writer.appendCounter(
      counter, digits: Int(shape.counterDigits), isUpper: shape.counterIsUpper == 1)
  else { return nil }
  if shape.separator2 != 0 {
    writer.append(shape.separator2)
    writer.append(node)
  }
  return length
}

/// Appends to a buffer whose size the caller has checked.
private struct TextWriter {
  let buffer: UnsafeMutableBufferPointer<UInt8>
  var position = 0

  mutating func append(_ byte: UInt8) {
    buffer[position] = byte
    position += 1
  }

  mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
    _ = UnsafeMutableBufferPointer(rebasing: buffer[position...]).update(fromContentsOf: bytes)
    position += bytes.count
  }

  /// False when the number needs more digits.
  mutating func appendDecimal(_ number: UInt64, digits: Int) -> Bool {
    var rest = number
    for offset in stride(from: digits - 1, through: 0, by: -1) {
      let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
      buffer[position + offset] = Ascii.zero + UInt8(digit)
      rest = quotient
    }
    position += digits
    return rest == 0
  }

  /// False when the instant is past the last year, or needs more digits of the fraction.
  mutating func appendIso8601(_ nanoseconds: UInt64, fractionDigits: Int) -> Bool {
    var (seconds, fraction) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    let (days, secondOfDay) = seconds.quotientAndRemainder(dividingBy: 86_400)
    seconds = secondOfDay
    // 2^64 nanoseconds are less than 213,504 days.
    let date = Iso8601.date(days: Int(truncatingIfNeeded: days))
    guard date.year <= Iso8601.years.upperBound else { return false }

    _ = appendDecimal(UInt64(date.year), digits: 4)
    append(Ascii.hyphen)
    _ = appendDecimal(UInt64(date.month), digits: 2)
    append(Ascii.hyphen)
    _ = appendDecimal(UInt64(date.day), digits: 2)
    append(Ascii.upperT)
    _ = appendDecimal(seconds / 3_600, digits: 2)
    append(Ascii.colon)
    _ = appendDecimal(seconds / 60 % 60, digits: 2)
    append(Ascii.colon)
    _ = appendDecimal(seconds % 60, digits: 2)
    if fractionDigits > 0 { append(Ascii.period) }
    for _ in fractionDigits..<HlcLimits.fractionDigits.upperBound {
      let (quotient, digit) = fraction.quotientAndRemainder(dividingBy: 10)
      guard digit == 0 else { return false }
      fraction = quotient
    }
    _ = appendDecimal(fraction, digits: fractionDigits)
    append(Ascii.upperZ)
    return true
  }

  /// False when the counter needs more digits than these, or than the grammar allows, or has no
  /// letter though `isUpper` tells of one.
  mutating func appendCounter(_ counter: UInt64, digits: Int, isUpper: Bool) -> Bool {
    let firstLetter = isUpper ? Ascii.upperA : Ascii.lowerA
    var rest = counter
    var hasLetter = false
    for index in 0..<digits {
      let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 36)
      guard digit == 0 || index < HlcLimits.significantCounterDigits else { return false }
      hasLetter = hasLetter || digit >= 10
      buffer[position + digits - 1 - index] =
        digit < 10 ? Ascii.zero + UInt8(digit) : firstLetter + UInt8(digit - 10)
      rest = quotient
    }
    position += digits
    return rest == 0 && (hasLetter || !isUpper)
  }
}
