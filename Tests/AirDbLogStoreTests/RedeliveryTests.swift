import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// Batches of what the store has already, in HLC order, as a peer sends them: the engine recognises
/// them by their neighbourhood, and must find everything that is not what it seems.
@Suite struct RedeliveryTests {
  private static func configuration(segmentRecords: Int) -> Configuration {
    var configuration = Configuration()
    configuration.segmentRecords = segmentRecords
    configuration.blockBytes = 512
    configuration.replayBytes = 256
    configuration.durability = .processCrash
    configuration.cleaning = .off
    return configuration
  }

  /// Records of which three each have equal numbers in their timestamps, and one in seven is signed.
  private static func records(_ count: Int) -> [ChangeRecord] {
    (0..<count).map { index in
      change(
        index % 2 == 0 ? UUID(number: index).uuidString : "id \(index)",
        time(index / 3, index / 3 % 2, ["n", "m", nil][index % 3]), in: "c\(index % 4)",
        payload: "payload \(index)", author: index % 7 == 0 ? Data([1]) : nil,
        signature: index % 7 == 0 ? Data() : nil)
    }
  }

  @Test func `A page that comes again is superseded, and nothing is written`() throws {
    try withTemporaryDirectory { root in
      let path = root + "/store"
      let configuration = Self.configuration(segmentRecords: 100)
      var store = try ChangeStore(at: path, configuration: configuration)
      try store.applyAndWait(Self.records(450))
      try store.close()
      store = try ChangeStore(at: path, configuration: configuration)
      defer { try? store.close() }
      let feed = try store.changes(limit: 450).records
      #expect(feed.count == 450)
      let end = try store.position
      for start in stride(from: 0, to: 450, by: 45) {
        let result = try store.applyAndWait(Array(feed[start..<(start + 45)]))
        #expect(result.accepted == 0)
        #expect(result.superseded == 45)
        #expect(result.conflictingTies == 0)
        #expect(result.position == nil)
      }
      #expect(try store.position == end)
    }
  }

  /// What is like a record that is there, but for one thing.
  enum Difference: CaseIterable {
    case payload, type, author, signature, id, collection, laterNode, earlierNode, laterCounter
    case earlierCounter, spelling

    func applied(to record: ChangeRecord) -> ChangeRecord {
      var record = record
      let parts = record.hlcTimestamp.split(separator: "-", maxSplits: 2).map(String.init)
      let node = parts.count > 2 ? "-" + parts[2] : ""
      switch self {
      case .payload: record.payload += [0]
      case .type: record.type = record.type == .update ? .delete : .update
      case .author: record.authorPublicKey = record.authorPublicKey == nil ? Data() : nil
      case .signature: record.signature = record.signature == nil ? Data() : nil
      case .id: record.id += "x"
      case .collection: record.collection += "x"
      case .laterNode: record.hlcTimestamp = "\(parts[0])-\(parts[1])\(node.isEmpty ? "-a" : node)z"
      case .earlierNode: record.hlcTimestamp = "\(parts[0])-\(parts[1])"
      case .laterCounter: record.hlcTimestamp = "\(parts[0])-\(parts[1])1\(node)"
      case .earlierCounter: record.hlcTimestamp = "\(parts[0])-0\(node)"
      case .spelling: record.hlcTimestamp = "0\(parts[0])_0\(parts[1])\(node)"
      }
      return record
    }
  }

  /// Each difference in the midst of a page that is otherwise as it was, then pages with any number of
  /// them, with gaps and repetitions: as the model has it.
  @Test(arguments: [0, 1, 2, 3])
  func `What differs from what is there is told from it`(seed: UInt64) throws {
    let platform = MemoryPlatform()
    let configuration = Self.configuration(segmentRecords: 90)
    let open = {
      try ChangeStore(
        path: "/store", configuration, platform: platform, scheduler: ManualScheduler())
    }
    var random = SeededGenerator(seed: seed)
    var model = ReferenceModel()
    var store = try open()
    func apply(_ batch: [ChangeRecord]) throws {
      let expected = try model.apply(batch)
      let result = try store.applyAndWait(batch)
      #expect(
        ReferenceModel.Outcome(
          accepted: result.accepted, superseded: result.superseded,
          conflictingTies: result.conflictingTies) == expected)
    }
    try apply(Self.records(400))
    for difference in Difference.allCases {
      try store.close()
      store = try open()
      let feed = try store.changes(limit: 1_000).records
      let start = Int.random(in: 0..<(feed.count - 40), using: &random)
      var page = Array(feed[start..<(start + 40)])
      page[20] = difference.applied(to: page[20])
      try apply(page)
    }
    for round in 0..<60 {
      if round % 10 == 0 {
        try store.close()
        store = try open()
      }
      let feed = try store.changes(limit: 1_000).records
      let start = Int.random(in: 0..<feed.count, using: &random)
      var page: [ChangeRecord] = []
      for record in feed[start...].prefix(60) {
        switch Int.random(in: 0..<30, using: &random) {
        case 0: page.append(Difference.allCases.randomElement(using: &random)!.applied(to: record))
        case 1: page += [record, record]
        case 2: break
        case 3: page += [record, page.randomElement(using: &random) ?? record]
        default: page.append(record)
        }
      }
      try apply(page)
    }
    let stored = try store.changes(limit: 1_000).records
    #expect(stored.count == model.entries.count)
    for record in stored {
      let expected = try #require(model.entries[ReferenceModel.Key(record)]).record
      #expect(record == expected)
    }
    try store.close()
  }

  /// Memory that counts the bytes that are read of indexes.
  private final class CountingPlatform: WrappedPlatform {
    let wrapped = MemoryPlatform()
    private let state = Locked((indexes: Set<FileDescriptor>(), bytes: 0))

    func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> FileDescriptor {
      let file = try wrapped.open(path, mode)
      state.withLock {
        if path.hasSuffix(".index") { $0.indexes.insert(file) } else { $0.indexes.remove(file) }
      }
      return file
    }

    func read(
      _ file: FileDescriptor, into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
    ) throws(SystemError) -> Int {
      let got = try wrapped.read(file, into: buffer, at: offset)
      state.withLock { if $0.indexes.contains(file) { $0.bytes += got } }
      return got
    }

    /// The bytes since the last call.
    func take() -> Int {
      state.withLock { state in
        defer { state.bytes = 0 }
        return state.bytes
      }
    }
  }

  @Test func `A feed that comes again does not have its keys looked up one by one`() throws {
    let platform = CountingPlatform()
    var configuration = Configuration()
    configuration.cleaning = .off
    configuration.replayBytes = 256
    let open = {
      try ChangeStore(
        path: "/store", configuration, platform: platform, scheduler: ManualScheduler())
    }
    var store = try open()
    let records = Self.records(20_000)
    try store.applyAndWait(records)
    let feed = try store.changes(limit: .max).records
    func bytesRead(_ batches: [[ChangeRecord]]) throws -> Int {
      try store.close()
      store = try open()
      // What every lookup needs.
      try store.applyAndWait([change("new", time(1_000_000))])
      _ = platform.take()
      for batch in batches { #expect(try store.applyAndWait(batch).accepted == 0) }
      return platform.take()
    }
    let pages = stride(from: 0, to: feed.count, by: 500).map { Array(feed[$0...].prefix(500)) }
    // Without the neighbourhood, all pages of the key order are read; with it, those of the HLC order.
    var random = SeededGenerator(seed: 1)
    let shuffled = try bytesRead(pages.map { $0.shuffled(using: &random) })
    let inOrder = try bytesRead(pages)
    #expect(inOrder < shuffled / 2)
    #expect(inOrder > 0)
    try store.close()
  }
}

extension UUID {
  /// A canonical UUID that ends with a number.
  fileprivate init(number: Int) {
    self.init(
      uuid: (
        1, 2, 3, 4, 5, 6, 0x40, 8, 0x80, 10, 11, 12, 13, 14, UInt8(number >> 8), UInt8(number & 255)
      ))
  }
}
