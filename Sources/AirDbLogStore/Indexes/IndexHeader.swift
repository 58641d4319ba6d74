/// Page 0 of an index file (Format 8).
package struct IndexHeader: Sendable, Equatable {
  package var storeId: StoreId
  package var fileId: UInt64
  package var segmentLength: UInt64
  package var firstSequence: UInt64
  package var lastSequence: UInt64
  package var recordCount: UInt64
  package var entryCount: UInt64
  package var lastChecksum: UInt32
  package var pageCount: UInt32 = 0
  package var physicalBase: UInt64 = 0
  package var widths = Widths()
  package var nodeCount: UInt32 = 0
  package var collectionCount: UInt32 = 0
  package var sections = [Section](repeating: Section(), count: Section.Kind.count)
  package var filterBlockCount: UInt32 = 0

  /// How many bytes each field of the entries takes.
  package struct Widths: Sendable, Equatable {
    package var physical = 0
    package var counter = 0
    package var node = 0
    package var collection = 0
    package var block = 1
    package var slot = 0
    package var rank = 0

    package var hlcEntry: Int { physical + counter + node + collection + block + slot + 1 }
    package var keyEntry: Int { 16 + physical + counter + node + rank + 4 }
  }

  /// A run of pages.
  package struct Section: Sendable, Equatable {
    package var firstPage: UInt32 = 0
    package var pageCount: UInt32 = 0

    package enum Kind: Int, CaseIterable {
      case hlcEntries, keyEntries, hlcFences, keyFences, filter, collections, nodes, reserved
      static let count = allCases.count
    }
  }

  package subscript(_ kind: Section.Kind) -> Section {
    get { sections[kind.rawValue] }
    set { sections[kind.rawValue] = newValue }
  }

  package static let pageContent = Limits.pageSize - 4
  package static let fenceSize = 16
  package static let filterBlockSize = 64
  package static let entriesPerFilterBlock: UInt64 = 32
}

extension IndexHeader {
  /// Page 0, with its checksum.
  package func encode(into out: inout ByteBuffer) {
    let start = out.count
    out.append(UInt32(0))
    out.append(Limits.formatVersion)
    out.append("AIRDBIDX")
    out.append(storeId.first)
    out.append(storeId.second)
    out.append(fileId)
    out.append(segmentLength)
    out.append(firstSequence)
    out.append(lastSequence)
    out.append(recordCount)
    out.append(entryCount)
    out.append(lastChecksum)
    out.append(pageCount)
    out.append(physicalBase)
    let w = widths
    for width in [w.physical, w.counter, w.node, w.collection, w.block, w.slot, w.rank, 0] {
      out.append(UInt8(width))
    }
    out.append(nodeCount)
    out.append(collectionCount)
    for section in sections {
      out.append(section.firstPage)
      out.append(section.pageCount)
    }
    out.append(filterBlockCount)
    out.appendZeros(Limits.pageSize - (out.count - start))
    let covered = UnsafeRawBufferPointer(rebasing: out.bytes[(start + 4)...])
    out.store(Checksum.bound(.page, file: fileId, offset: 0, covered), at: start)
  }

  /// Decodes page 0, whose checksum has been verified, and checks that its parts fit together.
  package static func decode(_ page: UnsafeRawBufferPointer) throws(FormatError) -> IndexHeader {
    var reader = ByteReader(page, at: 4)
    guard try reader.read(UInt32.self) == Limits.formatVersion,
      try reader.read(count: 8).elementsEqual("AIRDBIDX".utf8)
    else { throw FormatError("not an index", at: 4) }
    var header = IndexHeader(
      storeId: StoreId(first: try reader.read(), second: try reader.read()),
      fileId: try reader.read(), segmentLength: try reader.read(),
      firstSequence: try reader.read(), lastSequence: try reader.read(),
      recordCount: try reader.read(), entryCount: try reader.read(),
      lastChecksum: try reader.read(), pageCount: try reader.read(),
      physicalBase: try reader.read())
    let widths = try reader.read(count: 8).map { Int($0) }
    header.widths = Widths(
      physical: widths[0], counter: widths[1], node: widths[2], collection: widths[3],
      block: widths[4], slot: widths[5], rank: widths[6])
    guard widths[0] <= 8, widths[1] <= 8, widths[2] <= 4, widths[3] <= 4, (1...8) ~= widths[4],
      widths[5] <= 1, widths[6] <= 8, widths[7] == 0
    else { throw FormatError("impossible widths", at: 96) }
    header.nodeCount = try reader.read()
    header.collectionCount = try reader.read()
    for index in 0..<Section.Kind.count {
      header.sections[index] = Section(
        firstPage: try reader.read(), pageCount: try reader.read())
    }
    header.filterBlockCount = try reader.read()
    try reader.readZeros(reader.remaining)
    try header.check()
    return header
  }

  private func check() throws(FormatError) {
    var next: UInt32 = 1
    for kind in Section.Kind.allCases where kind != .reserved {
      guard self[kind].firstPage == next else { throw FormatError("sections apart", at: 112) }
      let (end, overflow) = next.addingReportingOverflow(self[kind].pageCount)
      guard !overflow else { throw FormatError("impossible sections", at: 112) }
      next = end
    }
    // First, since what follows computes with it.
    guard entryCount > 0, entryCount <= recordCount, recordCount <= 1 << 40 else {
      throw FormatError("impossible counts", at: 64)
    }
    let hlcPages = pages(of: entryCount, size: widths.hlcEntry)
    let keyPages = pages(of: entryCount, size: widths.keyEntry)
    let filterBlocks = max(1, (entryCount + 31) / Self.entriesPerFilterBlock)
    guard next == pageCount, self[.reserved] == Section(),
      UInt64(self[.hlcEntries].pageCount) == hlcPages,
      UInt64(self[.keyEntries].pageCount) == keyPages,
      UInt64(self[.hlcFences].pageCount) == pages(of: hlcPages, size: Self.fenceSize),
      UInt64(self[.keyFences].pageCount) == pages(of: keyPages, size: Self.fenceSize),
      UInt64(filterBlockCount) == filterBlocks,
      UInt64(self[.filter].pageCount) == pages(of: filterBlocks, size: Self.filterBlockSize),
      nodeCount > 0, collectionCount > 0, UInt64(collectionCount) <= entryCount,
      UInt64(nodeCount) <= entryCount + 1
    else { throw FormatError("sections that do not match the counts", at: 112) }
  }

  /// How many pages an array takes.
  package func pages(of count: UInt64, size: Int) -> UInt64 {
    let perPage = UInt64(Self.pageContent / size)
    return (count + perPage - 1) / perPage
  }
}
