import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// Where a store lives in a test, and what happens to it between two steps of the test: it must
/// answer the same in all of them.
enum StoreHome: CaseIterable, Sendable, CustomTestStringConvertible {
  case disk
  case memory
  /// Closed and opened again between steps.
  case reopened
  /// Dropped without a close and opened again between steps.
  case abandoned
  /// The same with segments of a few records.
  case memoryInTinySegments, reopenedInTinySegments, abandonedInTinySegments

  var testDescription: String { "\(self)" }

  private var isInMemory: Bool { self == .memory || self == .memoryInTinySegments }
  private var isReopened: Bool { self == .reopened || self == .reopenedInTinySegments }
  private var isAbandoned: Bool { self == .abandoned || self == .abandonedInTinySegments }

  fileprivate var configuration: Configuration {
    switch self {
    case .memoryInTinySegments, .reopenedInTinySegments, .abandonedInTinySegments: .tiny
    default: Configuration()
    }
  }

  /// Runs `body` with a new store.
  func withStore(
    _ configure: (inout Configuration) -> Void = { _ in },
    _ body: (StoreInTest) async throws -> Void
  ) async throws {
    var configuration = configuration
    // What is tested with these is not durability, and a sync for each step takes its time.
    configuration.durability = .processCrash
    configure(&configuration)
    let settled = configuration
    if isInMemory {
      let store = try ChangeStore.inMemory(configuration: settled)
      try await body(StoreInTest(store) { _ in })
      try store.close()
      return
    }
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      let open = {
        // A queue's job could hold a dropped store open for long; these jobs cannot. The thread that
        // led the last commit may hold it for a moment.
        try ChangeStore(
          path: path, settled, platform: SystemPlatform(),
          scheduler: isAbandoned ? ManualScheduler() : nil)
      }
      let subject = StoreInTest(try open()) { store in
        if isReopened { try store?.close() }
        guard isReopened || isAbandoned else { return }
        // Gone before the next one comes: there can be only one.
        store = nil
        store = try isAbandoned ? openWhenFree(open) : open()
      }
      try await body(subject)
      try subject.store.close()
    }
  }
}

/// The store of a test.
final class StoreInTest {
  private var current: ChangeStore?
  private let move: (inout ChangeStore?) throws -> Void

  var store: ChangeStore { current! }

  fileprivate init(_ store: ChangeStore, move: @escaping (inout ChangeStore?) throws -> Void) {
    current = store
    self.move = move
  }

  /// Ends a step of the test.
  func step() throws { try move(&current) }

  /// Applies a batch as a step of its own.
  @discardableResult
  func apply(_ batch: ChangeRecord...) async throws -> ApplyResult {
    let result = try await store.apply(batch)
    try step()
    return result
  }
}

extension Configuration {
  /// Segments of a few records, so that a small test has many of them, and they stay.
  static var tiny: Configuration {
    var configuration = Configuration()
    configuration.segmentRecords = 7
    configuration.segmentBytes = 4_096
    configuration.blockBytes = 256
    configuration.cacheBytes = 64 << 10
    configuration.maximumOpenFiles = 4
    configuration.replayBytes = 1_024
    configuration.cleaning = .off
    return configuration
  }
}

/// A record of a test, with what matters to it.
func change(
  _ id: String, _ time: String, in collection: String = "c", _ type: MutationType = .insert,
  payload: String = "", author: Data? = nil, signature: Data? = nil
) -> ChangeRecord {
  ChangeRecord(
    id: id, collection: collection, type: type, payload: Data(payload.utf8), hlcTimestamp: time,
    authorPublicKey: author, signature: signature)
}

/// A timestamp in the middle of the grammar.
func time(_ physical: Int, _ counter: Int = 0, _ node: String? = "n") -> String {
  "\(1_700_000_000_000 + physical)-\(counter)" + (node.map { "-" + $0 } ?? "")
}

/// The error of the library that `body` throws.
func storeError(
  _ sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
) async -> LogStoreError? {
  do {
    try await body()
    Issue.record("nothing was thrown", sourceLocation: sourceLocation)
  } catch let error as LogStoreError {
    return error
  } catch {
    Issue.record("another error: \(error)", sourceLocation: sourceLocation)
  }
  return nil
}

extension ChangeStore {
  /// All pages of the adapter.
  func sweep(pageSize: Int) async throws -> [ChangeRecord] {
    var all: [ChangeRecord] = []
    var cursor: String?
    while true {
      let page = try await getChangesSince(sinceHlcTimestamp: cursor, limit: pageSize)
      guard let last = page.last else { return all }
      cursor = last.hlcTimestamp
      all += page
    }
  }

  /// All native pages.
  func nativeSweep(pageSize: Int, byteLimit: Int = .max) throws -> [ChangeRecord] {
    var all: [ChangeRecord] = []
    var cursor: ChangeCursor?
    while true {
      let page = try changes(after: cursor, limit: pageSize, byteLimit: byteLimit)
      all += page.records
      cursor = page.next
      if page.isLast { return all }
      try #require(!page.records.isEmpty, "a page that is not the last must not be empty")
    }
  }
}

/// Expects a store to answer exactly as a model does, by every way of reading, and to be sound.
func expectEqual(
  _ store: ChangeStore, _ model: ReferenceModel, pageSize: Int = 50, absent: [RecordKey] = [],
  isRepaired: Bool = true, _ comment: Comment? = nil,
  sourceLocation: SourceLocation = #_sourceLocation
) async throws {
  let feed = model.feed
  let adapter = try await store.sweep(pageSize: pageSize)
  #expect(adapter == feed.records, comment, sourceLocation: sourceLocation)
  let native = try store.nativeSweep(pageSize: pageSize)
  #expect(native == feed.records, comment, sourceLocation: sourceLocation)
  #expect(
    try await store.getLatestHlc() == model.latest?.text, comment, sourceLocation: sourceLocation)
  #expect(
    try store.statistics().liveRecords == UInt64(model.entries.count), comment,
    sourceLocation: sourceLocation)
  let problems = try store.verify().problems
  // A reader may not write what it has built again.
  #expect(
    problems.allSatisfy { $0.isDerived && !isRepaired }, comment, sourceLocation: sourceLocation)
  for entry in feed.entries {
    let key = RecordKey(collection: entry.record.collection, id: entry.record.id)
    let found = try store.record(forKey: key)
    #expect(found == entry.record, comment, sourceLocation: sourceLocation)
  }
  for key in absent {
    #expect(try store.record(forKey: key) == nil, comment, sourceLocation: sourceLocation)
  }
  var collections: [[UInt8]: String] = [:]
  for entry in feed.entries {
    collections[Array(entry.record.collection.utf8)] = entry.record.collection
  }
  for collection in collections.values {
    #expect(
      try store.records(in: collection) == model.records(in: collection), comment,
      sourceLocation: sourceLocation)
  }
}
