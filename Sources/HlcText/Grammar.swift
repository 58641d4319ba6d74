/// The counts of the grammar; see `Spec/HLC.md`.
enum HlcLimits {
  static let decimalDigits = 10...19
  static let fractionDigits = 1...9
  static let counterDigits = 1...16
  static let significantCounterDigits = 12
}

/// The bytes that the grammar names.
enum Ascii {
  static let hyphen = UInt8(ascii: "-")
  static let period = UInt8(ascii: ".")
  static let zero = UInt8(ascii: "0")
  static let colon = UInt8(ascii: ":")
  static let upperA = UInt8(ascii: "A")
  static let upperT = UInt8(ascii: "T")
  static let upperZ = UInt8(ascii: "Z")
  static let underscore = UInt8(ascii: "_")
  static let lowerA = UInt8(ascii: "a")
  /// The bit by which a lower-case letter differs from its upper-case form.
  static let caseBit: UInt8 = 0x20
}

@inline(__always)
func isHlcSeparator(_ byte: UInt8) -> Bool {
  byte == Ascii.hyphen || byte == Ascii.colon || byte == Ascii.underscore
}

/// Layout and calendar of the ISO 8601 form.
enum Iso8601 {
  /// The years of which every nanosecond since 1970 fits in 64 bits.
  static let years = 1970...2553

  /// The length of `YYYY-MM-DDTHH:MM:SS`.
  static let dateTimeLength = 19

  /// The length of `YYYY-MM-DDTHH:MM:SSZ`.
  static let wholeSecondsLength = 20

  /// The number of days in a month of 1 to 12, in the Gregorian calendar.
  static func dayCount(year: Int, month: Int) -> Int {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// The number of days from 1970-01-01 to a valid date.
  ///
  /// Counts in years that begin in March, so that the leap day is the last of its year.
  static func days(year: Int, month: Int, day: Int) -> Int {
    let year = month > 2 ? year : year - 1
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return year * 365 + year / 4 - year / 100 + year / 400 + dayOfYear - daysToEpoch
  }

  /// The date that is a number of days after 1970-01-01; the inverse of ``days(year:month:day:)``.
  static func date(days: Int) -> (year: Int, month: Int, day: Int) {
    let shifted = days + daysToEpoch
    let era = shifted / daysPerEra
    let dayOfEra = shifted % daysPerEra
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    return (
      year: era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month: month,
      day: dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    )
  }

  /// The number of days from 0000-03-01 to 1970-01-01.
  private static let daysToEpoch = 719_468

  /// The number of days in the 400 years after which the calendar repeats.
  private static let daysPerEra = 146_097
}
