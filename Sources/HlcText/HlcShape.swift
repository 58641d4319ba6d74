/// How the parts of a hybrid timestamp are spelled: with a shape, the physical number, the
/// counter and the node, ``renderHlc(shape:physical:counter:node:into:)`` gives back its text.
///
/// Timestamps that one program writes share a shape. In the file format a shape is its six fields
/// in order, a byte each. Values may come from an untrusted file; ``isValid`` tells whether they
/// describe a text at all.
package struct HlcShape: Sendable, Hashable {
  /// The raw value of an ``HlcPhysicalKind``.
  package var kind: UInt8

  /// Decimal: the number of digits, 10 to 19. ISO 8601: the number of digits of the fraction,
  /// 1 to 9, or ``noFraction``.
  package var physicalDigits: UInt8

  /// The byte between the physical part and the counter.
  package var separator1: UInt8

  /// The number of characters of the counter, 1 to 16, with its leading zeros.
  package var counterDigits: UInt8

  /// 1 if the counter has upper-case letters, 0 if it has lower-case letters or none.
  package var counterIsUpper: UInt8

  /// The byte between the counter and the node; 0 when there is no node.
  package var separator2: UInt8

  /// The value of `physicalDigits` for an ISO 8601 instant without a fraction.
  package static let noFraction: UInt8 = 255

  package init(
    kind: UInt8, physicalDigits: UInt8, separator1: UInt8, counterDigits: UInt8,
    counterIsUpper: UInt8, separator2: UInt8
  ) {
    self.kind = kind
    self.physicalDigits = physicalDigits
    self.separator1 = separator1
    self.counterDigits = counterDigits
    self.counterIsUpper = counterIsUpper
    self.separator2 = separator2
  }

  /// Whether each field has a value that the grammar allows.
  package var isValid: Bool {
    physicalLength != nil && isHlcSeparator(separator1)
      && HlcLimits.counterDigits.contains(Int(counterDigits)) && counterIsUpper <= 1
      && (separator2 == 0 || isHlcSeparator(separator2))
  }

  /// The length in bytes of a text of this shape, or nil when the shape is not valid, or has a
  /// node where there is none, or the other way round.
  package func textLength(nodeLength: Int) -> Int? {
    guard isValid, let physicalLength, (separator2 == 0) == (nodeLength == 0), nodeLength >= 0
    else { return nil }
    let fixedLength = physicalLength + 1 + Int(counterDigits) + (separator2 == 0 ? 0 : 1)
    let (length, overflow) = fixedLength.addingReportingOverflow(nodeLength)
    return overflow ? nil : length
  }

  /// The length in bytes of the physical part, or nil when `kind` and `physicalDigits` do not
  /// describe one.
  private var physicalLength: Int? {
    let digits = Int(physicalDigits)
    switch HlcPhysicalKind(rawValue: kind) {
    case .decimal:
      return HlcLimits.decimalDigits.contains(digits) ? digits : nil
    case .iso8601:
      if physicalDigits == Self.noFraction { return Iso8601.wholeSecondsLength }
      return HlcLimits.fractionDigits.contains(digits)
        ? Iso8601.wholeSecondsLength + 1 + digits : nil
    case nil:
      return nil
    }
  }
}

/// The shape of `text`, or nil when its parts and a shape do not tell how it is spelled.
///
/// `parts` must come from ``parseHlc(_:format:)`` for this text. Texts of the format
/// ``HlcFormat/utf8Order``, and counters with letters of both cases, have no shape.
package func hlcShape(of text: UnsafeBufferPointer<UInt8>, parts: HlcParts) -> HlcShape? {
  guard let kind = parts.kind else { return nil }
  let physicalDigits: UInt8
  switch kind {
  case .decimal:
    physicalDigits = UInt8(parts.physicalLength)
  case .iso8601:
    let fractionLength = parts.physicalLength - Iso8601.wholeSecondsLength
    physicalDigits = fractionLength == 0 ? HlcShape.noFraction : UInt8(fractionLength - 1)
  }

  let counterStart = parts.physicalLength + 1
  let counterEnd = counterStart + parts.counterLength
  var hasUpper = false
  var hasLower = false
  for position in counterStart..<counterEnd {
    let byte = text[position]
    hasLower = hasLower || byte >= Ascii.lowerA
    hasUpper = hasUpper || (byte >= Ascii.upperA && byte < Ascii.lowerA)
  }
  guard !(hasUpper && hasLower) else { return nil }

  return HlcShape(
    kind: kind.rawValue, physicalDigits: physicalDigits,
    separator1: text[parts.physicalLength], counterDigits: UInt8(parts.counterLength),
    counterIsUpper: hasUpper ? 1 : 0, separator2: counterEnd < text.count ? text[counterEnd] : 0)
}
