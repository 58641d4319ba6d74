/// Gives each distinct byte string a number, in order of first use. Not thread-safe.
package struct InternTable: Sendable {
  package private(set) var items: [[UInt8]] = []
  private var slots: [UInt32] = []
  private var hashes: [UInt32] = []
  private var last: UInt32 = 0

  package init() {}

  /// The number of an item, which is added if it is new.
  package mutating func index(of item: UnsafeRawBufferPointer) -> UInt32 {
    if Int(last) < items.count, withBytes(of: items[Int(last)], { $0.equals(item) }) { return last }
    if 2 * (items.count + 1) > slots.count { grow() }
    let hash = Checksum.crc(item)
    var place = Int(hash) & (slots.count - 1)
    while slots[place] != 0 {
      let index = slots[place] - 1
      if hashes[Int(index)] == hash, withBytes(of: items[Int(index)], { $0.equals(item) }) {
        last = index
        return index
      }
      place = (place + 1) & (slots.count - 1)
    }
    slots[place] = UInt32(items.count + 1)
    items.append(Array(item))
    hashes.append(hash)
    last = UInt32(items.count - 1)
    return last
  }

  private mutating func grow() {
    slots = [UInt32](repeating: 0, count: max(16, slots.count * 2))
    for (index, hash) in hashes.enumerated() {
      var place = Int(hash) & (slots.count - 1)
      while slots[place] != 0 { place = (place + 1) & (slots.count - 1) }
      slots[place] = UInt32(index + 1)
    }
  }
}
