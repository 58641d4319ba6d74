import AirDbLogStore
import TestSupport
import Testing

/// Caches keep to their bounds.
@Suite struct IndexCacheTests {
  private final class Item: Sendable {
    let number: Int
    init(_ number: Int) { self.number = number }
  }

  #if os(Linux)
    @Test(arguments: ["ids", "authors", "collections", "nodes", "small", "payloads"])
    func `The cache takes no more heap than it says`(kind: String) throws {
      try withTemporaryDirectory { root in
        let helper = try HelperProcess(["cache", root + "/store", kind])
        let figures = helper.readLines().map { line in
          line.split(separator: " ").compactMap { Int($0) }
        }
        #expect(helper.wait() == 0)
        try #require(figures.map(\.count) == [3, 3])
        let (heap, cache) = (figures[1][1] - figures[0][1], figures[1][2])
        #expect(figures[0][2] == 0)
        #expect(cache > 1 << 20 && cache <= 2 << 20, "it has been filled")
        // Other things than the cache differ a little, too.
        let most = cache + figures[0][1] / 100 + (16 << 10)
        #expect(heap <= most, "\(heap) bytes of heap for \(cache) of cache")
        #expect(heap > cache / 2, "nor is it far from the truth")
      }
    }
  #endif

  @Test func `The block cache stays below its capacity, and keeps what is used`() {
    for capacity in [0, 100, 1_000, 50_000] {
      let cache = BlockCache(capacity: capacity)
      var random = SeededGenerator(seed: UInt64(capacity))
      for number in 0..<3_000 {
        let key = BlockCache.Key.block(1, UInt64(number))
        cache.insert(Item(number), for: key, cost: Int(random.next() % 900))
        #expect(cache.cost <= capacity)
        if number % 50 == 1, let found = cache.object(key) as? Item {
          #expect(found.number == number)
        }
        // One that is asked for all the time is not the one to go.
        if number == 0 { cache.insert(Item(-1), for: .page(1, 0), cost: 1) }
        if capacity >= 50_000 { #expect((cache.object(.page(1, 0)) as? Item)?.number == -1) }
      }
      cache.removeAll()
      #expect(cache.cost == 0 && cache.object(.page(1, 0)) == nil)
    }
  }

  @Test func `What is larger than a quarter of the cache is not kept`() {
    let cache = BlockCache(capacity: 10_000)
    cache.insert(Item(1), for: .block(1, 1), cost: 2_000)
    cache.insert(Item(2), for: .block(1, 2), cost: 2_500)
    #expect(cache.object(.block(1, 1)) != nil && cache.object(.block(1, 2)) == nil)
  }

  @Test func `Keys of blocks, pages and builds do not meet`() {
    var keys: Set<BlockCache.Key> = []
    for file in [1, 2, UInt64.max] {
      for number in [0, 1, 2, UInt32.max] {
        keys.insert(.block(file, UInt64(number)))
        for build in [0, 1, UInt16.max] { keys.insert(.page(file, number, build: build)) }
      }
    }
    #expect(keys.count == 3 * 4 * 4)
  }

  @Test func `The file table holds no more files than it may, and finds them all`() throws {
    let platform = CountingPlatform()
    try platform.createDirectory("/store")
    let directory = StoreDirectory(path: "/store", platform: platform)
    for id in 1...30 as ClosedRange<UInt64> {
      try withBytes(of: [UInt8(id)]) { try directory.writeSynced($0, to: directory.segment(id)) }
    }
    #expect(platform.open == 0)
    let table = FileTable(directory: directory, capacity: 5)
    var random = SeededGenerator(seed: 81)
    var held: [OpenFile] = []
    for step in 0..<500 {
      let id = 1 + random.next() % 30
      let file = try table.file(.segment(id))
      var byte: UInt8 = 0
      _ = try withUnsafeMutableBytes(of: &byte) { try file.readExactly(into: $0, at: 0) }
      #expect(UInt64(byte) == id)
      #expect(platform.open <= 5 + held.count)
      // A reader that is slow keeps its file, though the table has long let go of it.
      if step % 100 == 0 { held.append(file) }
    }
    for file in held { _ = try file.size() }
    held = []
    #expect(platform.open <= 5)
    #expect(throws: SystemError.self) { try table.file(.segment(31)) }
    table.remove(.segment(1))
    table.removeAll()
    #expect(platform.open == 0)
  }
}

/// Memory, with a count of the files that are open.
final class CountingPlatform: WrappedPlatform {
  let wrapped = MemoryPlatform()
  private let count = Locked(0)

  var open: Int { count.withLock { $0 } }

  func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> FileDescriptor {
    let file = try wrapped.open(path, mode)
    count.withLock { $0 += 1 }
    return file
  }

  func close(_ file: FileDescriptor) throws(SystemError) {
    count.withLock { $0 -= 1 }
    try wrapped.close(file)
  }
}
