/// Reads the index of one sealed segment (Format 8).
///
/// What every lookup needs — page 0, fences, filter, collections — is held in memory from the
/// first use on, about 2.2 bytes an entry; pages of entries come through the cache. Immutable and
/// usable from any thread.
///
/// `@unchecked Sendable`: the filter's memory is written in the initializer only.
package final class SealedIndex: @unchecked Sendable {
  package let header: IndexHeader
  private let source: PageSource
  private let hlcFences: [UInt64]
  private let keyFences: [UInt64]
  private let filter: UnsafeMutableRawBufferPointer
  package let collections: [Collection]

  package struct Collection: Sendable {
    package var name: [UInt8]
    package var firstKey: UInt64
    package var keyCount: UInt64
  }

  /// An entry of the HLC order.
  package struct HlcEntry: Sendable {
    package var physical: UInt64
    package var counter: UInt64
    package var node: UInt32
    package var collection: UInt32
    package var block: UInt64
    package var slot: Int
    package var isDeletion: Bool

    /// Block and slot as one number, which grows along the segment.
    var place: UInt64 { Self.place(block, slot) }

    /// Segments end at 2^40, blocks have at most 256 records.
    static func place(_ block: UInt64, _ slot: Int) -> UInt64 { block << 8 | UInt64(slot) }
  }

  /// An entry of the key order.
  package struct KeyEntry: Sendable {
    package var hash: KeyHash
    package var physical: UInt64
    package var counter: UInt64
    package var node: UInt32
    package var rank: UInt64
    package var contentChecksum: UInt32
  }

  /// Loads what stays in memory. Throws `damaged` if the file is not a sound index of the segment.
  package init(
    _ source: PageSource, matches: (IndexHeader) -> Bool
  ) throws(IndexError) {
    let first = try source.page(0)
    do throws(FormatError) {
      header = try IndexHeader.decode(first.bytes)
    } catch {
      throw .damaged(error)
    }
    // With its size, everything that memory is allocated by is bounded by the file.
    guard header.fileId == source.fileId, matches(header),
      UInt64(header.pageCount) * UInt64(Limits.pageSize) == (try source.size())
    else {
      throw .damaged(FormatError("the index of something else"))
    }
    self.source = source
    hlcFences = try source.numbers(
      header[.hlcFences], header.pages(of: header.entryCount, size: header.widths.hlcEntry))
    keyFences = try source.numbers(
      header[.keyFences], header.pages(of: header.entryCount, size: header.widths.keyEntry))
    let size = Int(header.filterBlockCount) * IndexHeader.filterBlockSize
    let filter = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 64)
    do throws(IndexError) {
      try source.array(
        header[.filter], count: UInt64(header.filterBlockCount),
        size: IndexHeader.filterBlockSize, into: filter)
      collections = try Self.collections(source, header)
    } catch {
      filter.deallocate()
      throw error
    }
    self.filter = filter
  }

  deinit { filter.deallocate() }

  /// Bytes of heap beside the cache.
  package var residentBytes: Int {
    let names = collections.reduce(0) { $0 + $1.name.count + MemoryLayout<Collection>.stride }
    return filter.count + (hlcFences.count + keyFences.count) * 8 + names
  }

  private static func collections(
    _ source: PageSource, _ header: IndexHeader
  ) throws(IndexError) -> [Collection] {
    let stream = PageStream(source, header[.collections])
    var result: [Collection] = []
    let namesStart = UInt64(header.collectionCount) * 24
    var nextKey: UInt64 = 0
    for index in 0..<UInt64(header.collectionCount) {
      let item = try stream.bytes(at: index * 24, count: 24)
      let (first, count, offset, length) = withBytes(of: item) {
        (
          $0.load(UInt64.self, at: 0), $0.load(UInt64.self, at: 8), $0.load(UInt32.self, at: 16),
          $0.load(UInt32.self, at: 20)
        )
      }
      guard first == nextKey, count > 0, count <= header.entryCount - first,
        length <= Limits.collection
      else { throw .damaged(FormatError("impossible collections")) }
      nextKey += count
      let name = try stream.bytes(at: namesStart + UInt64(offset), count: Int(length))
      result.append(Collection(name: name, firstKey: first, keyCount: count))
    }
    guard nextKey == header.entryCount else {
      throw .damaged(FormatError("collections that do not cover the keys"))
    }
    return result
  }
}

/// Why an index cannot be read.
package enum IndexError: Error {
  /// The file is absent or its content is not sound: it can be built again.
  case damaged(FormatError)
  /// The system failed to read it: building it again would not help.
  case system(SystemError)
}

// MARK: - Keys

extension SealedIndex {
  /// Whether the key may be here; false is certain and takes no I/O.
  @inline(__always)
  package func mayContain(_ hash: KeyHash) -> Bool {
    KeyFilter.mayContain(
      hash, in: UnsafeRawBufferPointer(filter), count: header.filterBlockCount)
  }

  /// The entry of a key in a collection.
  package func find(_ hash: KeyHash, in collection: UnsafeRawBufferPointer) throws(IndexError)
    -> KeyEntry?
  {
    guard mayContain(hash), let number = number(of: collection) else { return nil }
    let range = collections[number]
    let size = header.widths.keyEntry
    let perPage = UInt64(IndexHeader.pageContent / size)
    // The last page whose first entry is not behind the key.
    var low = range.firstKey / perPage
    var high = (range.firstKey + range.keyCount - 1) / perPage
    while low < high {
      let middle = (low + high + 1) / 2
      if fence(middle, isAfter: hash, UInt32(number)) { high = middle - 1 } else { low = middle }
    }
    // Equal fences in several pages would need equal first halves of hashes; look back over them.
    var pageNumber = low
    while true {
      let page = try source.page(header[.keyEntries].firstPage + UInt32(pageNumber))
      let start = max(range.firstKey, pageNumber * perPage)
      let end = min(range.firstKey + range.keyCount, (pageNumber + 1) * perPage)
      if let entry = search(page, hash, from: start % perPage, count: end - start) {
        return try checked(entry)
      }
      guard pageNumber > range.firstKey / perPage,
        keyFences[2 * Int(pageNumber) + 1] == hash.first,
        keyFences[2 * Int(pageNumber)] == UInt64(number)
      else { return nil }
      pageNumber -= 1
    }
  }

  private func search(
    _ page: IndexPage, _ hash: KeyHash, from first: UInt64, count: UInt64
  ) -> KeyEntry? {
    let size = header.widths.keyEntry
    var low = Int(first)
    var high = Int(first + count)
    while low < high {
      let middle = (low + high) / 2
      let place = 4 + middle * size
      let found = KeyHash(
        first: page.bytes.load(UInt64.self, at: place),
        second: page.bytes.load(UInt64.self, at: place + 8))
      if found == hash { return keyEntry(page, middle) }
      if found < hash { low = middle + 1 } else { high = middle }
    }
    return nil
  }

  private func fence(_ page: UInt64, isAfter hash: KeyHash, _ collection: UInt32) -> Bool {
    let fenceCollection = UInt32(truncatingIfNeeded: keyFences[2 * Int(page)])
    if fenceCollection != collection { return fenceCollection > collection }
    return keyFences[2 * Int(page) + 1].byteSwapped > hash.first.byteSwapped
  }

  private func keyEntry(_ page: IndexPage, _ index: Int) -> KeyEntry {
    let w = header.widths
    var place = 4 + index * w.keyEntry
    func field(_ width: Int) -> UInt64 {
      defer { place += width }
      return page.bytes.load(at: place, width: width)
    }
    return KeyEntry(
      hash: KeyHash(first: field(8), second: field(8)),
      physical: header.physicalBase &+ field(w.physical), counter: field(w.counter),
      node: UInt32(truncatingIfNeeded: field(w.node)), rank: field(w.rank),
      contentChecksum: UInt32(truncatingIfNeeded: field(4)))
  }

  /// The number of a collection by its name.
  package func number(of name: UnsafeRawBufferPointer) -> Int? {
    var low = 0
    var high = collections.count
    while low < high {
      let middle = (low + high) / 2
      let order = withBytes(of: collections[middle].name) { $0.compare(name) }
      if order == 0 { return middle }
      if order < 0 { low = middle + 1 } else { high = middle }
    }
    return nil
  }

  /// The key entry at a position of the key order.
  package func key(at position: UInt64) throws(IndexError) -> KeyEntry {
    let perPage = UInt64(IndexHeader.pageContent / header.widths.keyEntry)
    let page = try source.page(header[.keyEntries].firstPage + UInt32(position / perPage))
    return try checked(keyEntry(page, Int(position % perPage)))
  }

  private func checked(_ entry: KeyEntry) throws(IndexError) -> KeyEntry {
    guard entry.rank < header.entryCount, entry.node < header.nodeCount else {
      throw .damaged(FormatError("an impossible key entry"))
    }
    return entry
  }
}

// MARK: - HLC order

extension SealedIndex {
  /// A node by its number.
  package func node(_ number: UInt32) throws(IndexError) -> [UInt8] {
    if number == 0 { return [] }
    guard number < header.nodeCount else {
      throw .damaged(FormatError("a node past its table"))
    }
    let stream = PageStream(source, header[.nodes])
    let bounds = try stream.bytes(at: UInt64(number) * 4, count: 8)
    let (start, end) = withBytes(of: bounds) {
      ($0.load(UInt32.self, at: 0), $0.load(UInt32.self, at: 4))
    }
    guard start <= end, end - start <= Limits.hlc else {
      throw .damaged(FormatError("impossible node offsets"))
    }
    let base = (UInt64(header.nodeCount) + 1) * 4
    return try stream.bytes(at: base + UInt64(start), count: Int(end - start))
  }

  package var hlcEntriesPerPage: UInt64 {
    UInt64(IndexHeader.pageContent / header.widths.hlcEntry)
  }

  /// The page of HLC entries that holds a rank.
  package func hlcPage(holding rank: UInt64) throws(IndexError) -> IndexPage {
    try source.page(header[.hlcEntries].firstPage + UInt32(rank / hlcEntriesPerPage))
  }

  /// The entry of a rank, given the page that holds it.
  @inline(__always)
  package func hlcEntry(_ rank: UInt64, in page: IndexPage) throws(IndexError) -> HlcEntry {
    let w = header.widths
    var place = 4 + Int(rank % hlcEntriesPerPage) * w.hlcEntry
    @inline(__always)
    func field(_ width: Int) -> UInt64 {
      defer { place += width }
      return page.bytes.load(at: place, width: width)
    }
    let entry = HlcEntry(
      physical: header.physicalBase &+ field(w.physical), counter: field(w.counter),
      node: UInt32(truncatingIfNeeded: field(w.node)),
      collection: UInt32(truncatingIfNeeded: field(w.collection)), block: field(w.block),
      slot: Int(field(w.slot)), isDeletion: field(1) & 1 == 1)
    guard entry.node < header.nodeCount, entry.collection < header.collectionCount else {
      throw .damaged(FormatError("an impossible HLC entry"))
    }
    return entry
  }

  package func hlcEntry(_ rank: UInt64) throws(IndexError) -> HlcEntry {
    try hlcEntry(rank, in: try hlcPage(holding: rank))
  }

  /// How many entries are deletions that nothing superseded. Reads all pages of entries.
  package func liveDeletionCount(_ dead: DeadBits) throws(IndexError) -> UInt64 {
    var count: UInt64 = 0
    for first in stride(from: 0, to: header.entryCount, by: Int(hlcEntriesPerPage)) {
      let page = try hlcPage(holding: first)
      for rank in first..<min(first + hlcEntriesPerPage, header.entryCount)
      where try hlcEntry(rank, in: page).isDeletion && !dead[rank] {
        count += 1
      }
    }
    return count
  }

  /// A lower bound of the keys in this index, without I/O.
  package var leastNumbers: (UInt64, UInt64) { (hlcFences[0], hlcFences[1]) }

  /// The first rank whose key is greater than `cursor`, or equal to it if `orEqual`; the entry
  /// count if there is none.
  package func rank(
    after cursor: HlcKey, orEqual: Bool = false
  ) throws(IndexError) -> UInt64 {
    // The last page whose first entry's numbers are not behind the cursor's.
    var low = 0
    var high = hlcFences.count / 2 - 1
    while low < high {
      let middle = (low + high + 1) / 2
      if compareNumbers(
        hlcFences[2 * middle], hlcFences[2 * middle + 1], cursor.physical, cursor.counter) > 0
      {
        high = middle - 1
      } else {
        low = middle
      }
    }
    var end = min(header.entryCount, UInt64(low + 1) * hlcEntriesPerPage)
    // Entries of equal numbers, which only nodes tell apart, may begin several pages earlier.
    while low > 0,
      compareNumbers(
        hlcFences[2 * low], hlcFences[2 * low + 1], cursor.physical, cursor.counter) == 0
    { low -= 1 }
    var first = UInt64(low) * hlcEntriesPerPage
    while first < end {
      let middle = (first + end) / 2
      let entry = try hlcEntry(middle)
      var order = compareNumbers(
        entry.physical, entry.counter, cursor.physical, cursor.counter)
      if order == 0 {
        let node = try node(entry.node)
        order = withBytes(of: node) { a in withBytes(of: cursor.node) { b in a.compare(b) } }
      }
      if order < 0 || order == 0 && !orEqual { first = middle + 1 } else { end = middle }
    }
    return first
  }
}
