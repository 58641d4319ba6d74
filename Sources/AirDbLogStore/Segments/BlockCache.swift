/// A bounded cache of what was read and checked: blocks, as they are stored, and index pages.
///
/// Second-chance eviction (the CLOCK algorithm, Corbató 1968) under one short lock. An object
/// larger than a quarter of the capacity is not kept.
package final class BlockCache: Sendable {
  package struct Key: Hashable, Sendable {
    /// Of the segment.
    package var file: UInt64
    /// Block offset times two; page number times two plus one, and more.
    package var place: UInt64

    package static func block(_ file: UInt64, _ offset: UInt64) -> Key {
      Key(file: file, place: offset << 1)
    }

    /// What readers that have finished leave to the next one. No block is at offset 0.
    package static let reader = Key(file: 0, place: 0)

    /// `build` tells the pages of an index that was built again from those of the one before.
    package static func page(_ file: UInt64, _ page: UInt32, build: UInt16 = 0) -> Key {
      Key(file: file, place: UInt64(build) << 40 | UInt64(page) << 1 | 1)
    }
  }

  private let capacity: Int
  private let state = Locked(State())

  private struct State {
    var slots: [Slot] = []
    var places: [Key: Int] = [:]
    var free: [Int] = []
    var hand = 0
    var cost = 0

    /// Takes out the next object that was not used since the hand last passed.
    mutating func evict() -> (any AnyObject & Sendable)? {
      guard !places.isEmpty else { return nil }
      // Two rounds suffice: the first clears every mark.
      for _ in 0...(2 * slots.count) {
        hand = (hand + 1) % slots.count
        guard let object = slots[hand].object else { continue }
        if slots[hand].isRecent {
          slots[hand].isRecent = false
          continue
        }
        places[slots[hand].key] = nil
        cost -= slots[hand].cost
        slots[hand].object = nil
        free.append(hand)
        return object
      }
      return nil
    }
  }

  private struct Slot {
    var key: Key
    var object: (any AnyObject & Sendable)?
    var cost: Int
    var isRecent: Bool
  }

  /// What one entry takes beside the object itself: the slot and its place in the dictionary, both
  /// of which grow by doubling.
  private static let overhead = 192

  package init(capacity: Int) {
    self.capacity = capacity
  }

  package func object(_ key: Key) -> (any AnyObject & Sendable)? {
    state.withLock { state in
      guard let index = state.places[key] else { return nil }
      state.slots[index].isRecent = true
      return state.slots[index].object
    }
  }

  /// Takes an object out, so that nobody else has it from here.
  package func take(_ key: Key) -> (any AnyObject & Sendable)? {
    state.withLock { state in
      guard let index = state.places.removeValue(forKey: key) else { return nil }
      defer { state.slots[index].object = nil }
      state.cost -= state.slots[index].cost
      state.free.append(index)
      return state.slots[index].object
    }
  }

  package func insert(_ object: any AnyObject & Sendable, for key: Key, cost: Int) {
    let cost = cost + Self.overhead
    guard cost <= capacity / 4 else { return }
    // Evicted objects are freed outside the lock.
    var evicted: [any AnyObject & Sendable] = []
    state.withLock { state in
      guard state.places[key] == nil else { return }
      while state.cost + cost > capacity {
        guard let gone = state.evict() else { return }
        evicted.append(gone)
      }
      let slot = Slot(key: key, object: object, cost: cost, isRecent: false)
      let index: Int
      if let free = state.free.popLast() {
        index = free
        state.slots[free] = slot
      } else {
        index = state.slots.count
        state.slots.append(slot)
      }
      state.places[key] = index
      state.cost += cost
    }
    _ = consume evicted
  }

  /// Bytes in use.
  package var cost: Int { state.withLock { $0.cost } }

  package func removeAll() {
    _ = state.withLock { state -> State in
      defer { state = State() }
      return state
    }
  }
}
