import Foundation

/// Numbers as people read them.
enum Figures {
  /// `12,345,678`.
  static func count(_ value: some BinaryInteger) -> String {
    var digits = String(value)
    let sign = digits.hasPrefix("-") ? String(digits.removeFirst()) : ""
    var groups: [Substring] = []
    while digits.count > 3 {
      groups.insert(digits.suffix(3), at: 0)
      digits = String(digits.dropLast(3))
    }
    return sign + ([Substring(digits)] + groups).joined(separator: ",")
  }

  /// `1 page`, `2 pages`.
  static func count(_ value: some BinaryInteger, _ singular: String, _ plural: String) -> String {
    "\(count(value)) \(value == 1 ? singular : plural)"
  }

  /// `12.3 MB`, in powers of 1,000.
  static func bytes(_ value: UInt64) -> String {
    if value < 1_000 { return count(value, "byte", "bytes") }
    if value < 1_000_000 { return decimal(Double(value) / 1_000, 1) + " kB" }
    return decimal(Double(value) / 1_000_000, 1) + " MB"
  }

  /// `1.23 s` or `4.5 ms`.
  static func duration(_ value: Duration) -> String {
    let seconds = self.seconds(value)
    return seconds < 1 ? decimal(seconds * 1_000, 1) + " ms" : decimal(seconds, 2) + " s"
  }

  static func seconds(_ value: Duration) -> Double {
    let (seconds, attoseconds) = value.components
    return Double(seconds) + Double(attoseconds) / 1e18
  }

  /// So many a second, as a whole number.
  static func rate(_ count: Int, in duration: Duration) -> String {
    self.count(Int(Double(count) / max(seconds(duration), 1e-9)))
  }

  /// `2026-03-01 12:00:00Z`.
  static func date(_ date: Date) -> String { ISO8601DateFormatter().string(from: date) }

  /// A date in the lines for programs.
  static func milliseconds(_ date: Date) -> Int64 {
    let milliseconds = (date.timeIntervalSince1970 * 1_000).rounded()
    return Int64(exactly: milliseconds) ?? (milliseconds > 0 ? .max : .min)
  }

  static func padded(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
  }

  private static func decimal(_ value: Double, _ digits: Int) -> String {
    String(format: "%.\(digits)f", value)
  }
}
