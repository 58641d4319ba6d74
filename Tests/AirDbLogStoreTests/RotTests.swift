import AirDbLogStore
import TestSupport
import Testing

/// Fault model F3: bytes that were durable change, go, or are replaced. The answer is right, or the
/// damage is named; never silently wrong or less.
@Suite("Rot")
struct RotTests {
  /// The stores, each built once.
  private static let stores = Result {
    try [RotStore(.tinyClosed), RotStore(.tinyUnclosed), RotStore(.tinyFresh)]
  }

  private func examine(_ what: String, _ damages: (RotStore) -> [Damage]) throws -> [Damage] {
    var unnoticed: [Damage] = []
    for store in try Self.stores.get() {
      let damages = damages(store)
      let outcomes = Locked<[RotOutcome: Int]>([:])
      let silent = Locked<[Damage]>([])
      record(
        forEachInThreads(damages) { damage in
          let outcome = try store.examine(damage)
          outcomes.withLock { $0[outcome, default: 0] += 1 }
          if outcome == .unnoticed { silent.withLock { $0.append(damage) } }
        })
      unnoticed += silent.withLock { $0 }
      let counts = outcomes.withLock { $0 }
      let text = RotOutcome.allCases.compactMap { outcome in
        counts[outcome].map { "\($0) \(outcome)" }
      }
      print("Rot, \(what), \(store.name): \(damages.count): \(text.joined(separator: ", "))")
    }
    return unnoticed
  }

  @Test("Every flipped bit of a segment, the manifest or the liveness comes to light")
  func bits() throws {
    let unnoticed = try examine("flipped bits") { store in
      store.names.filter { store.isWorthFlipping($0) }.flatMap { name in
        (0..<store.meaningfulSize(name)).flatMap { byte in
          (0..<8).map { Damage(name, .flipBit(byte: byte, bit: $0)) }
        }
      }
    }
    #expect(unnoticed.map(\.description) == [])
  }

  @Test("Every flipped bit of an index page fails its checksum, and the index is built again")
  func indexBits() throws {
    let store = try Self.stores.get()[0]
    let name = try #require(store.names.first { $0.hasSuffix(".index") })
    let bytes = store.content(name).bytes
    let fileId = try #require(UInt64(name.prefix(16), radix: 16))
    let pages = UInt32(bytes.count / Limits.pageSize)
    let silent = Locked(0)
    record(
      forEachInThreads(Array(0..<pages)) { page in
        let start = Int(page) * Limits.pageSize
        var flipped = bytes
        for bit in 0..<Limits.pageSize * 8 {
          flipped[start + bit / 8] ^= 1 << UInt8(bit % 8)
          let source = PageSource(fileId: fileId, .memory(flipped), cache: BlockCache(capacity: 0))
          if (try? source.page(page)) != nil { silent.withLock { $0 += 1 } }
          flipped[start + bit / 8] ^= 1 << UInt8(bit % 8)
        }
      })
    #expect(silent.withLock { $0 } == 0)
    print("Rot, flipped bits of index pages: \(bytes.count * 8)")

    let unnoticed = try examine("flipped bits of an index") { store in
      guard store.name == "closed" else { return [] }
      // Of the header each bit of what it uses, of the rest one bit now and then.
      let header = (0..<UInt64(184)).flatMap { byte in (0..<8).map { (byte, $0) } }
      let rest = stride(from: 184, to: UInt64(bytes.count), by: isLongRun ? 1 : 61)
      return (header + rest.map { ($0, Int($0 % 8)) }).map {
        Damage(name, .flipBit(byte: $0.0, bit: $0.1))
      }
    }
    #expect(unnoticed.map(\.description) == [])
  }

  @Test("A file cut to any length is the right answer, or comes to light")
  func truncation() throws {
    let unnoticed = try examine("lengths") { store in
      store.names.flatMap { name -> [Damage] in
        let size = store.meaningfulSize(name)
        let step = isLongRun || !name.hasSuffix(".index") ? 1 : 97
        let lengths = Array(stride(from: UInt64(0), to: size, by: step)) + [size]
        return lengths.map { Damage(name, .truncate(to: $0)) }
      }
    }
    // Only what was reserved and not used may go without a word.
    for damage in unnoticed {
      let isWhole = try Self.stores.get().contains { store in
        guard case .rot(let rots) = damage.kind, case .truncate(let length) = rots[0] else {
          return false
        }
        return store.names.contains(damage.name) && length >= store.meaningfulSize(damage.name)
      }
      #expect(isWhole, "\(damage)")
    }
  }

  @Test("Sectors that are zeroed, swapped, doubled, or as they were before, come to light")
  func sectors() throws {
    let unnoticed = try examine("sectors") { store in
      store.names.flatMap { name -> [Damage] in
        let size = store.meaningfulSize(name)
        let count = Rot.sectorCount(ofSize: size)
        // All sectors of what is short; of an index every few.
        let step = isLongRun || count < 8 ? 1 : 7
        let sectors = Array(stride(from: UInt64(0), to: count, by: step))
        var rots = sectors.map { Rot.zeroSector($0) }
        for first in sectors {
          for second in sectors where first != second {
            if first < second { rots.append(.swapSectors(first, second)) }
            rots.append(.duplicateSector(first, onto: second))
          }
        }
        for version in store.versions[name] ?? [] {
          for sector in sectors {
            let old = version.bytes(sector * 512..<(sector + 1) * 512)
            if !old.isEmpty { rots.append(.replaceSector(sector, with: old)) }
          }
        }
        return rots.map { Damage(name, $0) }
      }
    }
    #expect(unnoticed.map(\.description) == [])
  }

  @Test("Files that are missing, exchanged, or as they were before, come to light")
  func wholeFiles() throws {
    let unnoticed = try examine("whole files") { store in
      var damages: [Damage] = []
      for name in store.names {
        damages.append(Damage(name, .remove, "missing"))
        damages.append(Damage(name, .replace(FileBytes()), "empty"))
        for (number, version) in (store.versions[name] ?? []).enumerated() {
          damages.append(Damage(name, .replace(version), "as it was in version \(number)"))
        }
        for other in store.names where other != name {
          damages.append(Damage(name, .replace(store.content(other)), "replaced by \(other)"))
          damages.append(
            Damage(other, .replace(store.content(name)), "a second \(name)"))
        }
      }
      return damages
    }
    // Only an older version that gives the right answer may go without a word: a manifest from
    // before the last seal, a segment with space behind its end.
    #expect(unnoticed.filter { !$0.description.contains("as it was") }.map(\.description) == [])
  }
}

extension RotStore {
  /// Whether a file's bits are to be flipped one by one. An index has tests of its own; and sealed
  /// segments are the same in the two stores that have some.
  fileprivate func isWorthFlipping(_ name: String) -> Bool {
    if name.hasSuffix(".index") { return false }
    let isOfTail = frames[listed...].contains { $0.path.hasSuffix(name) }
    return self.name == "closed" || isOfTail || name == "MANIFEST"
  }
}
