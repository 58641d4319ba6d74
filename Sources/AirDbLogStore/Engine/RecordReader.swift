/// Reads records by their places. Keeps the blocks that it read last open, and reads ahead where
/// places follow each other.
///
/// One is left in the cache for the next call that reads, see ``Engine/withRecordReader(_:)``.
///
/// `@unchecked Sendable`: whoever has it is the only one. No call reaches another one of the same
/// object, so that checks for exclusive access would find nothing either.
package final class RecordReader: @unchecked Sendable {
  @exclusivity(unchecked) private var blocks: [OpenBlock] = []
  @exclusivity(unchecked) private var clock: UInt64 = 0
  @exclusivity(unchecked) private var shared = SharedFields()
  private let ahead = ReadAhead()
  /// Of the blocks.
  @exclusivity(unchecked) private var blocksCost = 0
  private let capacity: Int

  private struct OpenBlock {
    var file: UInt64
    var offset: UInt64
    var lastUse: UInt64
    var cost: Int
    var reader: BlockReader
  }

  /// The most bytes of a block that is kept open, and with it of its buffers.
  private static let mostKept = 64 << 10

  /// `capacity` is how many blocks are kept open.
  init(capacity: Int) { self.capacity = capacity }

  /// How much of the cache this takes, in bytes.
  var cost: Int { HeapCost.object + SharedFields.mostCost + ReadAhead.cost + blocksCost }

  /// To be called when it changes hands: what was read ahead may have been written since.
  func finish() { ahead.removeAll() }

  /// The record at a place.
  func record(
    at place: Engine.Place, of engine: Engine
  ) throws(LogStoreError) -> ChangeRecord {
    let block = try block(at: place, of: engine)
    do throws(FormatError) {
      return try block.record(place.slot, sharing: &shared)
    } catch {
      throw .corrupt(error, file: engine.directory.segment(place.file), base: place.block)
    }
  }

  /// Appends the record at a place to an array, and answers the bytes of its payload, id and timestamp.
  func append(
    _ place: Engine.Place, of engine: Engine, to records: inout [ChangeRecord]
  ) throws(LogStoreError) -> Int {
    let block = try block(at: place, of: engine)
    do throws(FormatError) {
      return try block.append(place.slot, sharing: &shared, to: &records)
    } catch {
      throw .corrupt(error, file: engine.directory.segment(place.file), base: place.block)
    }
  }

  /// The block that holds a place, and its row, which is there.
  func row(
    at place: Engine.Place, of engine: Engine
  ) throws(LogStoreError) -> (BlockReader, BlockRow) {
    let block = try block(at: place, of: engine)
    do throws(FormatError) {
      return (block, try block.row(place.slot))
    } catch {
      throw .corrupt(error, file: engine.directory.segment(place.file), base: place.block)
    }
  }

  /// The id of the record at a place.
  func id(at place: Engine.Place, of engine: Engine) throws(LogStoreError) -> [UInt8] {
    let block = try block(at: place, of: engine)
    do throws(FormatError) {
      return try block.id(place.slot)
    } catch {
      throw .corrupt(error, file: engine.directory.segment(place.file), base: place.block)
    }
  }

  // MARK: Blocks

  /// The block that holds a place. Valid until another one is asked for.
  func block(
    at place: Engine.Place, of engine: Engine
  ) throws(LogStoreError) -> BlockReader {
    clock += 1
    var oldest = 0
    for index in blocks.indices {
      if blocks[index].offset == place.block, blocks[index].file == place.file {
        blocks[index].lastUse = clock
        return blocks[index].reader
      }
      if blocks[index].lastUse < blocks[oldest].lastUse { oldest = index }
    }
    let found = try ahead.block(place.file, place.block, of: engine)
    do throws(FormatError) {
      if try found.size > Self.mostKept { return try BlockReader(found.kept()) }
      // The memory of the one used longest ago serves again.
      let reader: BlockReader
      if blocks.count < capacity {
        reader = BlockReader()
      } else {
        reader = blocks[oldest].reader
        blocksCost -= blocks[oldest].cost
        blocks.remove(at: oldest)
      }
      switch found {
      case .kept(let block): try reader.open(block)
      case .passing(let bytes): try reader.open(copying: bytes)
      }
      add(reader, place)
      return reader
    } catch {
      throw .corrupt(error, file: engine.directory.segment(place.file), base: place.block)
    }
  }

  private func add(_ reader: BlockReader, _ place: Engine.Place) {
    let cost = reader.cost + MemoryLayout<OpenBlock>.stride
    blocks.append(
      OpenBlock(
        file: place.file, offset: place.block, lastUse: clock, cost: cost, reader: reader))
    blocksCost += cost
  }
}

extension Engine {
  /// Calls `body` with a reader that nobody else uses meanwhile.
  func withRecordReader<Result, Failure: Error>(
    _ body: (RecordReader) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let reader = takeRecordReader()
    defer { giveBack(reader) }
    return try body(reader)
  }

  /// A reader that nobody else uses until it is given back.
  func takeRecordReader() -> RecordReader {
    // Few enough that one of a small cache finds room in it.
    cache.take(.reader) as? RecordReader
      ?? RecordReader(capacity: min(max(options.cacheBytes >> 19, 2), 32))
  }

  func giveBack(_ reader: RecordReader) {
    reader.finish()
    cache.insert(reader, for: .reader, cost: reader.cost)
  }
}
