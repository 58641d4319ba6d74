/// Finds the newest row of a key: open addressing with linear probing over row numbers.
///
/// The hashes stay with the rows; a slot holds a row number plus one. Not thread-safe.
package struct HashIndex: Sendable {
  private var slots: [UInt32] = []
  private var mask = 0
  private var count = 0

  package init(minimumCapacity: Int = 0) {
    if minimumCapacity > 0 { resize(to: minimumCapacity) }
  }

  /// The row of a key. `hash(row)` gives the hash of a row that is in the index.
  @inline(__always)
  package func find(_ key: KeyHash, hash: (UInt32) -> KeyHash) -> UInt32? {
    guard count > 0 else { return nil }
    var place = Int(truncatingIfNeeded: key.first) & mask
    while slots[place] != 0 {
      let row = slots[place] - 1
      if hash(row) == key { return row }
      place = (place + 1) & mask
    }
    return nil
  }

  /// Makes `row` the row of a key. Answers the one that had it.
  @inline(__always)
  @discardableResult
  package mutating func set(
    _ key: KeyHash, _ row: UInt32, hash: (UInt32) -> KeyHash
  ) -> UInt32? {
    if 2 * (count + 1) > slots.count { grow(hash: hash) }
    var place = Int(truncatingIfNeeded: key.first) & mask
    while slots[place] != 0 {
      let known = slots[place] - 1
      if hash(known) == key {
        slots[place] = row + 1
        return known
      }
      place = (place + 1) & mask
    }
    slots[place] = row + 1
    count += 1
    return nil
  }

  package mutating func removeAll() {
    guard count > 0 else { return }
    if slots.count > 4_096 {
      self = HashIndex()
    } else {
      for index in slots.indices { slots[index] = 0 }
      count = 0
    }
  }

  private mutating func resize(to capacity: Int) {
    var size = 16
    while size < capacity * 2 { size *= 2 }
    slots = [UInt32](repeating: 0, count: size)
    mask = size - 1
  }

  private mutating func grow(hash: (UInt32) -> KeyHash) {
    let old = slots
    resize(to: max(old.count, 16))
    for slot in old where slot != 0 {
      var place = Int(truncatingIfNeeded: hash(slot - 1).first) & mask
      while slots[place] != 0 { place = (place + 1) & mask }
      slots[place] = slot
    }
  }
}
