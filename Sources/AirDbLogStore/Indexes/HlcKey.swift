/// The order key of a timestamp: physical, counter, then node by bytes (`Spec/HLC.md`).
package struct HlcKey: Sendable {
  package var physical: UInt64
  package var counter: UInt64
  /// Empty when there is no node.
  package var node: [UInt8]

  package init(physical: UInt64, counter: UInt64, node: [UInt8]) {
    self.physical = physical
    self.counter = counter
    self.node = node
  }

  package init(physical: UInt64, counter: UInt64, node: UnsafeRawBufferPointer) {
    self.init(physical: physical, counter: counter, node: node.isEmpty ? [] : Array(node))
  }
}

extension HlcKey: Comparable {
  package static func < (a: HlcKey, b: HlcKey) -> Bool { a.compare(b) < 0 }

  package static func == (a: HlcKey, b: HlcKey) -> Bool { a.compare(b) == 0 }

  /// Negative, zero or positive as this is before, equal to or after the other.
  package func compare(_ other: HlcKey) -> Int {
    let numbers = compareNumbers(physical, counter, other.physical, other.counter)
    if numbers != 0 { return numbers }
    return withBytes(of: node) { a in withBytes(of: other.node) { b in a.compare(b) } }
  }
}

/// The order of the first two parts of two keys.
@inline(__always)
package func compareNumbers(_ p1: UInt64, _ c1: UInt64, _ p2: UInt64, _ c2: UInt64) -> Int {
  if p1 != p2 { return p1 < p2 ? -1 : 1 }
  if c1 != c2 { return c1 < c2 ? -1 : 1 }
  return 0
}
