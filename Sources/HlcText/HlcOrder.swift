/// The order of two timestamps of one format: negative, zero or positive as `lhs` is before,
/// equal to or after `rhs`.
///
/// Each of the parts must come from ``parseHlc(_:format:)`` for the text before it. Separators,
/// leading zeros and the case of the counter play no part.
package func compareHlc(
  _ lhs: UnsafeBufferPointer<UInt8>, _ lhsParts: HlcParts,
  _ rhs: UnsafeBufferPointer<UInt8>, _ rhsParts: HlcParts
) -> Int {
  if lhsParts.kind != rhsParts.kind {
    return (lhsParts.kind?.rawValue ?? 0) < (rhsParts.kind?.rawValue ?? 0) ? -1 : 1
  }
  if lhsParts.physical != rhsParts.physical {
    return lhsParts.physical < rhsParts.physical ? -1 : 1
  }
  if lhsParts.counter != rhsParts.counter {
    return lhsParts.counter < rhsParts.counter ? -1 : 1
  }
  return compareBytes(
    UnsafeBufferPointer(rebasing: lhs[lhsParts.nodeStart...]),
    UnsafeBufferPointer(rebasing: rhs[rhsParts.nodeStart...]))
}

/// The lexicographic order of two byte strings: negative, zero or positive as `lhs` is before,
/// equal to or after `rhs`. A proper prefix is before what it begins.
package func compareBytes(
  _ lhs: UnsafeBufferPointer<UInt8>, _ rhs: UnsafeBufferPointer<UInt8>
) -> Int {
  let left = UnsafeRawBufferPointer(lhs)
  let right = UnsafeRawBufferPointer(rhs)
  let shared = min(left.count, right.count)
  var offset = 0
  while shared - offset >= 8 {
    let leftWord = left.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    let rightWord = right.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    if leftWord != rightWord { return leftWord.bigEndian < rightWord.bigEndian ? -1 : 1 }
    offset += 8
  }
  while offset < shared {
    if left[offset] != right[offset] { return left[offset] < right[offset] ? -1 : 1 }
    offset += 1
  }
  return left.count == right.count ? 0 : left.count < right.count ? -1 : 1
}
