import HlcText

/// The order of timestamps of hybrid logical clocks.
///
/// A timestamp is a physical time, a counter and an optional node, separated by `-`, `:` or `_`:
///
///     1700000000000-00000-node            decimal digits
///     2023-11-14T22:13:20.544Z-0000-node  ISO 8601, in UTC
///
/// They are ordered by time, then counter, then the bytes of the node, and not as texts: `.1` and
/// `.100` are the same fraction of a second, `0f` and `F` the same counter.
public enum HlcComparator {
  /// Compares two timestamps.
  ///
  /// This is a total order of all texts. Timestamps in decimal digits are before those in
  /// ISO 8601, which are before all texts that are neither; those are ordered by their UTF-8
  /// bytes.
  ///
  /// - Returns: -1, 0 or 1, as `lhs` is before, equal to, or after `rhs`. Texts that spell the
  ///   same time, counter and node in different ways are equal in this order.
  /// - Complexity: O(*n*) in the length of the nodes; does not allocate.
  public static func compare(_ lhs: String, _ rhs: String) -> Int {
    var (lhs, rhs) = (lhs, rhs)
    return lhs.withUTF8 { left in
      rhs.withUTF8 { right in
        switch (parseHlc(left, format: .hybrid), parseHlc(right, format: .hybrid)) {
        case (let leftParts?, let rightParts?): compareHlc(left, leftParts, right, rightParts)
        case (_?, nil): -1
        case (nil, _?): 1
        case (nil, nil): compareBytes(left, right)
        }
      }
    }
  }
}
