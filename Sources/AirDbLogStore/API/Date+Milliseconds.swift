#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

// The log counts milliseconds since 1970; a caller has dates.
extension Date {
  /// A number of milliseconds since 1970.
  init(milliseconds: Int64) {
    self.init(timeIntervalSince1970: Double(milliseconds) / 1_000)
  }

  /// Whole milliseconds since 1970, within the bounds of the type; the least of all for a date that is not
  /// a number. A date that was made of milliseconds gives those, for a hundred thousand years.
  func milliseconds(_ rule: FloatingPointRoundingRule) -> Int64 {
    let exact = timeIntervalSince1970 * 1_000
    let nearest = exact.rounded()
    // A date is a sum of fractions, which misses a whole millisecond by a little.
    let whole = (exact - nearest).magnitude < 0.001 ? nearest : exact.rounded(rule)
    if let milliseconds = Int64(exactly: whole) { return milliseconds }
    return whole > 0 ? .max : .min
  }
}
