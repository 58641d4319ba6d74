#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Collections and author keys of the records that were built last: records that repeat them share
/// one copy.
package struct SharedFields {
  private var texts: [String] = []
  private var keys: [Data] = []

  private static let slotCount = 64
  /// What is longer is not worth being kept.
  private static let longest = 256
  /// What a `String` or `Data` holds in itself.
  private static let inlineText = 15
  private static let inlineData = 14

  /// Bytes of heap, at most.
  package static let mostCost = 2 * slotCount * (16 + HeapCost.allocation(longest + 96))

  package init() {}

  mutating func text(_ bytes: UnsafeRawBufferPointer) throws(FormatError) -> String {
    guard bytes.count > Self.inlineText, bytes.count <= Self.longest else {
      return try validText(bytes)
    }
    if texts.isEmpty { texts = [String](repeating: "", count: Self.slotCount) }
    let slot = Self.slot(bytes)
    if withUTF8(texts[slot], { $0.equals(bytes) }) { return texts[slot] }
    let fresh = try validText(bytes)
    texts[slot] = fresh
    return fresh
  }

  mutating func data(_ bytes: UnsafeRawBufferPointer) -> Data {
    guard bytes.count > Self.inlineData, bytes.count <= Self.longest else { return Data(bytes) }
    if keys.isEmpty { keys = [Data](repeating: Data(), count: Self.slotCount) }
    let slot = Self.slot(bytes)
    if keys[slot].withUnsafeBytes({ $0.equals(bytes) }) { return keys[slot] }
    let fresh = Data(bytes)
    keys[slot] = fresh
    return fresh
  }

  /// By the first and the last eight bytes, of at least as many.
  private static func slot(_ bytes: UnsafeRawBufferPointer) -> Int {
    let mixed =
      bytes.load(UInt64.self, at: 0) &+ 3 &* bytes.load(UInt64.self, at: bytes.count - 8)
    return Int((mixed &* 0x9E37_79B9_7F4A_7C15) >> 58)
  }
}
