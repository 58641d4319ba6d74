/// A verified block, of the cache or passing by.
enum FoundBlock {
  case kept(StoredBlock)
  /// Valid until the next one is asked for.
  case passing(UnsafeRawBufferPointer)

  /// Bytes of it and of what it decompresses to.
  var size: Int {
    get throws(FormatError) {
      let header: BlockHeader
      switch self {
      case .kept(let block): header = block.header
      case .passing(let bytes): header = try BlockHeader.decode(bytes)
      }
      return Int(header.length) + Int(header.rawLength)
    }
  }

  func kept() throws(FormatError) -> StoredBlock {
    switch self {
    case .kept(let block): block
    case .passing(let bytes): try StoredBlock(bytes)
    }
  }
}

/// Finds blocks: in the cache, or in a stretch of a segment that is read at once where one block
/// after the other is asked for.
///
/// Those that follow others do not enter the cache: a sweep would drive out what it holds, and finds
/// them as fast this way.
final class ReadAhead {
  /// Of the stretch that has been read, and of the block that was asked for last.
  @exclusivity(unchecked) private var file: UInt64 = 0
  @exclusivity(unchecked) private var start: UInt64 = 0
  @exclusivity(unchecked) private var count = 0
  /// Behind the block that was asked for last.
  @exclusivity(unchecked) private var next: UInt64 = 0
  private let buffer = UnsafeMutableRawBufferPointer.allocate(
    byteCount: manyBlocks, alignment: 16)

  deinit { buffer.deallocate() }

  /// Most blocks are smaller than this.
  private static let oneBlock = 8 << 10
  private static let manyBlocks = 32 << 10
  /// What lies between the blocks of two frames, in nearly all cases, at most.
  private static let gap: UInt64 = 256

  static let cost = HeapCost.object + HeapCost.allocation(manyBlocks)

  /// Forgets what has been read.
  func removeAll() { count = 0 }

  func block(
    _ file: UInt64, _ offset: UInt64, of engine: Engine
  ) throws(LogStoreError) -> FoundBlock {
    let follows = file == self.file && offset >= next && offset - next <= Self.gap
    if file != self.file { count = 0 }
    self.file = file
    let key = BlockCache.Key.block(file, offset)
    if let known = engine.cache.object(key) as? StoredBlock {
      next = offset + known.header.length
      return .kept(known)
    }
    guard let bytes = try bytes(at: offset, ahead: follows, of: engine) else {
      let block = try readLarge(offset, of: engine)
      next = offset + block.header.length
      engine.cache.insert(block, for: key, cost: block.cost)
      return .kept(block)
    }
    next = offset + UInt64(bytes.count)
    if follows { return .passing(bytes) }
    let block = try stored(bytes, offset, of: engine)
    engine.cache.insert(block, for: key, cost: block.cost)
    return .kept(block)
  }

  /// The verified bytes of a block; nil if it is larger than the stretch.
  private func bytes(
    at offset: UInt64, ahead: Bool, of engine: Engine
  ) throws(LogStoreError) -> UnsafeRawBufferPointer? {
    if offset >= start, offset < start + UInt64(count), let block = try find(offset, engine) {
      return block
    }
    count = 0
    start = offset
    let stretch = buffer[..<(ahead ? Self.manyBlocks : Self.oneBlock)]
    count = try engine.read(
      try engine.segmentFile(file), into: UnsafeMutableRawBufferPointer(rebasing: stretch),
      at: offset)
    return try find(offset, engine)
  }

  /// The block at an offset, nil if not all of it has been read.
  private func find(
    _ offset: UInt64, _ engine: Engine
  ) throws(LogStoreError) -> UnsafeRawBufferPointer? {
    let rest = UnsafeRawBufferPointer(rebasing: buffer[Int(offset - start)..<count])
    if offset > start, rest.count < BlockHeader.size { return nil }
    let length: UInt64
    do throws(FormatError) {
      length = try BlockHeader.decode(rest).length
    } catch {
      throw .corrupt(error, file: engine.directory.segment(file), base: offset)
    }
    guard length <= UInt64(rest.count) else { return nil }
    let bytes = UnsafeRawBufferPointer(rebasing: rest[..<Int(length)])
    try verify(bytes, offset, of: engine)
    return bytes
  }

  /// A block that is longer than what was read, from its start on. The length has not been verified
  /// yet: it is believed only as far as the file goes.
  private func readLarge(
    _ offset: UInt64, of engine: Engine
  ) throws(LogStoreError) -> StoredBlock {
    let open = try engine.segmentFile(file)
    let size: UInt64
    let length: Int
    do throws(SystemError) {
      size = try open.size()
    } catch {
      throw LogStoreError(error, "read a segment", file: open.path)
    }
    do throws(FormatError) {
      let header = try BlockHeader.decode(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      length = Int(header.length)
    } catch {
      throw .corrupt(error, file: open.path, base: offset)
    }
    guard offset < size, UInt64(length) <= size - offset else {
      throw .corrupt("a block past the end of its segment", file: open.path, offset: offset)
    }
    let whole = UnsafeMutableRawBufferPointer.allocate(byteCount: length, alignment: 16)
    defer { whole.deallocate() }
    guard try engine.read(open, into: whole, at: offset) == length else {
      throw .corrupt("a block is cut short", file: open.path, offset: offset)
    }
    try verify(UnsafeRawBufferPointer(whole), offset, of: engine)
    return try stored(UnsafeRawBufferPointer(whole), offset, of: engine)
  }

  private func verify(
    _ bytes: UnsafeRawBufferPointer, _ offset: UInt64, of engine: Engine
  ) throws(LogStoreError) {
    guard BlockHeader.verify(bytes, file: file, offset: offset) else {
      throw .corrupt(
        "the checksum of a block does not match", file: engine.directory.segment(file),
        offset: offset)
    }
  }

  private func stored(
    _ bytes: UnsafeRawBufferPointer, _ offset: UInt64, of engine: Engine
  ) throws(LogStoreError) -> StoredBlock {
    do throws(FormatError) {
      return try StoredBlock(bytes)
    } catch {
      throw .corrupt(error, file: engine.directory.segment(file), base: offset)
    }
  }
}
