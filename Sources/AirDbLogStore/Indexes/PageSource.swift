/// A verified page of an index.
///
/// `@unchecked Sendable`: the memory is written before the object is shared, and then only read.
package final class IndexPage: @unchecked Sendable {
  private let memory: UnsafeMutableRawBufferPointer

  /// How much of the cache one takes, in bytes: its memory and the object.
  package static let cost = Limits.pageSize + 96

  package init() { memory = .allocate(byteCount: Limits.pageSize, alignment: 16) }

  deinit { memory.deallocate() }

  package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(memory) }

  fileprivate var target: UnsafeMutableRawBufferPointer { memory }
}

/// Gives the pages of an index file, verified, through the cache.
package struct PageSource: Sendable {
  package let fileId: UInt64
  private let origin: Origin
  private let build: UInt16
  private let cache: BlockCache

  /// Where the bytes are.
  package enum Origin: Sendable {
    case file(FileTable)
    /// An index that a read-only open had to build: it may not write it.
    case memory([UInt8])
  }

  /// `build` counts how often the index has been built again while its segment was open.
  package init(fileId: UInt64, _ origin: Origin, build: UInt16 = 0, cache: BlockCache) {
    self.fileId = fileId
    self.origin = origin
    self.build = build
    self.cache = cache
  }

  /// The size of the index in bytes.
  package func size() throws(IndexError) -> UInt64 {
    switch origin {
    case .memory(let bytes): return UInt64(bytes.count)
    case .file(let files):
      do throws(SystemError) {
        return try files.file(.index(fileId)).size()
      } catch {
        if error.isNotFound { throw .damaged(FormatError("the index is absent")) }
        throw .system(error)
      }
    }
  }

  package func page(_ number: UInt32) throws(IndexError) -> IndexPage {
    let key = BlockCache.Key.page(fileId, number, build: build)
    if let known = cache.object(key) as? IndexPage { return known }
    let page = try read(number)
    cache.insert(page, for: key, cost: IndexPage.cost)
    return page
  }

  private func read(_ number: UInt32) throws(IndexError) -> IndexPage {
    let page = IndexPage()
    try read(number, into: page.target)
    return page
  }

  /// Fills `target` with pages, of which it has room for a whole number, and verifies each.
  private func read(
    _ first: UInt32, into target: UnsafeMutableRawBufferPointer
  ) throws(IndexError) {
    let start = UInt64(first) * UInt64(Limits.pageSize)
    do throws(SystemError) {
      switch origin {
      case .file(let files):
        let count = try files.file(.index(fileId)).readExactly(into: target, at: start)
        guard count == target.count else { throw SystemError(errno: 0, call: "short") }
      case .memory(let bytes):
        guard Int(start) + target.count <= bytes.count else {
          throw SystemError(errno: 0, call: "short")
        }
        withBytes(of: bytes) {
          target.copyMemory(
            from: UnsafeRawBufferPointer(rebasing: $0[Int(start)..<(Int(start) + target.count)]))
        }
      }
    } catch {
      if error.errno == 0 || error.isNotFound {
        throw .damaged(FormatError("the index is absent or cut short", at: Int(start)))
      }
      throw .system(error)
    }
    for place in stride(from: 0, to: target.count, by: Limits.pageSize) {
      let page = UnsafeRawBufferPointer(rebasing: target[place..<(place + Limits.pageSize)])
      let offset = start + UInt64(place)
      guard
        page.load(UInt32.self, at: 0)
          == Checksum.bound(
            .page, file: fileId, offset: offset, UnsafeRawBufferPointer(rebasing: page[4...]))
      else {
        throw .damaged(
          FormatError("the checksum of an index page does not match", at: Int(offset)))
      }
    }
  }

  /// How many pages of an array are read at once.
  private static let pagesAtOnce = 16

  /// Reads an array of entries whole, past the cache.
  func array(
    _ section: IndexHeader.Section, count: UInt64, size: Int,
    into target: UnsafeMutableRawBufferPointer
  ) throws(IndexError) {
    let perPage = IndexHeader.pageContent / size
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: min(Int(section.pageCount), Self.pagesAtOnce) * Limits.pageSize, alignment: 16)
    defer { buffer.deallocate() }
    var done = 0
    for first in stride(from: 0, to: Int(section.pageCount), by: Self.pagesAtOnce) {
      let bytes = min(Int(section.pageCount) - first, Self.pagesAtOnce) * Limits.pageSize
      let pages = UnsafeMutableRawBufferPointer(rebasing: buffer[..<bytes])
      try read(section.firstPage + UInt32(first), into: pages)
      for place in stride(from: 4, to: bytes, by: Limits.pageSize) {
        let entries = min(perPage, Int(count) - done)
        UnsafeMutableRawBufferPointer(rebasing: target[(done * size)...]).copyMemory(
          from: UnsafeRawBufferPointer(rebasing: pages[place..<(place + entries * size)]))
        done += entries
      }
    }
  }

  /// Reads an array of pairs of numbers.
  func numbers(_ section: IndexHeader.Section, _ count: UInt64) throws(IndexError) -> [UInt64] {
    let size = Int(count) * IndexHeader.fenceSize
    var result = [UInt64](repeating: 0, count: size / 8)
    var failure: IndexError?
    result.withUnsafeMutableBytes { buffer in
      do throws(IndexError) {
        try array(section, count: count, size: IndexHeader.fenceSize, into: buffer)
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    for index in result.indices { result[index] = UInt64(littleEndian: result[index]) }
    return result
  }
}

/// A byte stream over the pages of a section.
struct PageStream {
  private let source: PageSource
  private let section: IndexHeader.Section

  init(_ source: PageSource, _ section: IndexHeader.Section) {
    self.source = source
    self.section = section
  }

  func bytes(at offset: UInt64, count: Int) throws(IndexError) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(count)
    var position = offset
    while result.count < count {
      let pageNumber = position / UInt64(IndexHeader.pageContent)
      guard pageNumber < UInt64(section.pageCount) else {
        throw .damaged(FormatError("an offset past its section"))
      }
      let page = try source.page(section.firstPage + UInt32(pageNumber))
      let start = 4 + Int(position % UInt64(IndexHeader.pageContent))
      let size = min(count - result.count, Limits.pageSize - start)
      result.append(contentsOf: page.bytes[start..<(start + size)])
      position += UInt64(size)
    }
    return result
  }
}
