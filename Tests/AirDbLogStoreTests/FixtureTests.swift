import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// The engine against the stores in Spec/fixtures, each opened on a copy.
struct FixtureTests {
  struct Fixture: Decodable, Sendable, CustomTestStringConvertible {
    var name: String
    var what: String
    var timestampFormat: String
    var deletionValues: [Int]
    var outcome: String
    var code: String?
    var file: String?
    var discardedBytes: UInt64?
    var records: [Record]?
    var consumers: [ConsumerLine]?

    var testDescription: String { name }

    func configuration(_ events: Locked<[StoreEvent]>) -> Configuration {
      var configuration = Configuration()
      configuration.timestampFormat = timestampFormat == "hybrid" ? .hybrid : .utf8Order
      configuration.deletionValues = Set(deletionValues)
      configuration.createsIfMissing = false
      configuration.eventHandler = { event in events.withLock { $0.append(event) } }
      return configuration
    }
  }

  struct Record: Decodable, Equatable, Sendable {
    var collection: String
    var id: String
    var type: Int
    var hlc: String
    var payload64: Data
    var author64: Data?
    var signature64: Data?

    init(_ record: ChangeRecord) {
      collection = record.collection
      id = record.id
      type = record.type.rawValue
      hlc = record.hlcTimestamp
      payload64 = record.payload
      author64 = record.authorPublicKey
      signature64 = record.signature
    }

    /// By bytes, as `String` would call two spellings of "é" equal.
    static func == (a: Record, b: Record) -> Bool {
      a.collection.utf8.elementsEqual(b.collection.utf8) && a.id.utf8.elementsEqual(b.id.utf8)
        && a.type == b.type && a.hlc.utf8.elementsEqual(b.hlc.utf8) && a.payload64 == b.payload64
        && a.author64 == b.author64 && a.signature64 == b.signature64
    }
  }

  struct ConsumerLine: Decodable, Equatable, Sendable {
    var name: String
    var sequence: UInt64
    var retention: String
    var maximumAge: Int64?
    var maximumBytes: UInt64?

    init(_ status: Consumer.Status) {
      name = status.name
      sequence = status.position?.sequence ?? 0
      retention = "latest versions"
      guard case .history(let age, let bytes) = status.retention else { return }
      retention = "history"
      maximumAge = age.map { $0.components.seconds * 1_000 }
      maximumBytes = bytes
    }
  }

  private static let stores = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Spec/fixtures/stores")

  static let all: Result<[Fixture], any Error> = Result {
    try JSONDecoder().decode(
      [Fixture].self, from: Data(contentsOf: stores.appendingPathComponent("fixtures.json")))
  }

  static func named(_ outcomes: String...) -> [Fixture] {
    ((try? all.get()) ?? []).filter { outcomes.contains($0.outcome) }
  }

  @Test func everyStoreIsListed() throws {
    let fixtures = try Self.all.get()
    let stored = try SystemPlatform().list(Self.stores.path).filter { $0 != "fixtures.json" }
    #expect(fixtures.map(\.name).sorted() == stored.sorted())
    let outcomes = Set(fixtures.map(\.outcome))
    #expect(outcomes == ["clean", "recovered", "derived", "damaged", "consumers", "refused"])
  }

  private func withCopy(_ fixture: Fixture, _ body: (_ path: String) throws -> Void) throws {
    try withTemporaryDirectory { directory in
      let path = directory + "/store"
      try copyDirectory(
        Self.stores.appendingPathComponent(fixture.name).path, on: SystemPlatform(), to: path,
        on: SystemPlatform())
      try body(path)
    }
  }

  @Test(arguments: named("consumers"))
  func damageOfConsumersIsNamedAndLeavesTheRecordsAlone(_ fixture: Fixture) throws {
    try withCopy(fixture) { path in
      let store = try ChangeStore(at: path, configuration: fixture.configuration(Locked([])))
      #expect(try records(store) == fixture.records)
      let file = "\(path)/\(fixture.file ?? "")"
      #expect(try store.verify().problems.map(\.file) == [file])
      let error = #expect(throws: LogStoreError.self) { try consumers(store) }
      #expect(error?.code.rawValue == fixture.code)
      #expect(error?.file == file)
      try store.close()
    }
  }

  private func consumers(_ store: ChangeStore) throws -> [ConsumerLine] {
    try store.consumers().map { ConsumerLine($0) }
  }

  private func records(_ store: ChangeStore) throws -> [Record] {
    try store.changes(limit: .max).records.map { Record($0) }
  }

  @Test(arguments: named("clean", "recovered", "derived"))
  func aReaderFindsTheRecordsAndChangesNothing(_ fixture: Fixture) throws {
    try withCopy(fixture) { path in
      let before = try DirectoryContents(path)
      let events = Locked<[StoreEvent]>([])
      var configuration = fixture.configuration(events)
      configuration.isReadOnly = true
      let store = try ChangeStore(at: path, configuration: configuration)
      #expect(try records(store) == fixture.records)
      #expect(try consumers(store) == fixture.consumers ?? [])
      // What is derived has been built again, in memory.
      #expect(try store.verify().problems.filter { !$0.isDerived }.map(\.reason) == [])
      let file = fixture.file.map { "\(path)/\($0)" }
      let isRepaired = events.withLock { $0 }.contains { $0.isRepair(of: file) }
      #expect(isRepaired == (fixture.outcome == "derived"))
      try store.close()
      #expect(try DirectoryContents(path).changes(since: before) == [])
    }
  }

  @Test(arguments: named("clean", "recovered", "derived"))
  func aWriterFindsTheRecordsAndLeavesACleanStore(_ fixture: Fixture) throws {
    try withCopy(fixture) { path in
      let events = Locked<[StoreEvent]>([])
      let store = try ChangeStore(at: path, configuration: fixture.configuration(events))
      #expect(try records(store) == fixture.records)
      #expect(try consumers(store) == fixture.consumers ?? [])
      #expect(try !SystemPlatform().list(path).contains("CONSUMERS.new"))
      try store.close()

      let again = try ChangeStore(at: path, configuration: fixture.configuration(Locked([])))
      #expect(try records(again) == fixture.records)
      #expect(try again.verify().problems.map(\.reason) == [])
      try again.close()

      let seen = events.withLock { $0 }
      if let discarded = fixture.discardedBytes {
        #expect(
          seen.contains {
            if case .recovered(discarded, _, _) = $0 { true } else { false }
          })
      }
      let file = fixture.file.map { "\(path)/\($0)" }
      let isRepaired = seen.contains { $0.isRepair(of: file) }
      #expect(isRepaired == (fixture.outcome == "derived"))
    }
  }

  @Test(arguments: named("damaged"))
  func damageThatAnOpenDoesNotSeeIsNamedByACheck(_ fixture: Fixture) throws {
    try withCopy(fixture) { path in
      let store = try ChangeStore(at: path, configuration: fixture.configuration(Locked([])))
      let problems = try store.verify().problems
      #expect(problems.contains { !$0.isDerived && $0.file == "\(path)/\(fixture.file ?? "")" })
      let error = #expect(throws: LogStoreError.self) { try records(store) }
      #expect(error?.code.rawValue == fixture.code)
      #expect(error?.file == "\(path)/\(fixture.file ?? "")")
      try store.close()
    }
  }

  @Test(arguments: named("refused"), [false, true])
  func aRefusedStoreIsNotChanged(_ fixture: Fixture, isReadOnly: Bool) throws {
    try withCopy(fixture) { path in
      let before = try DirectoryContents(path)
      var configuration = fixture.configuration(Locked([]))
      configuration.isReadOnly = isReadOnly
      let error = #expect(throws: LogStoreError.self) {
        _ = try ChangeStore(at: path, configuration: configuration)
      }
      #expect(error?.code.rawValue == fixture.code)
      #expect(error?.file == "\(path)/\(fixture.file ?? "")")
      #expect(try DirectoryContents(path).changes(since: before) == [])
    }
  }
}

extension StoreEvent {
  fileprivate func isRepair(of path: String?) -> Bool {
    if case .repaired(let file, _) = self { file == path } else { false }
  }
}
