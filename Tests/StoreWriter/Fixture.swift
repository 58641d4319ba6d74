import AirDbLogStore
import Foundation
import TestSupport

/// A small store, good or damaged, with what a reader must make of it.
struct Fixture: Encodable {
  /// What a reader makes of a store.
  enum Outcome: String, Encodable {
    /// All is well.
    case clean
    /// Bytes behind the last durable commit are discarded.
    case recovered
    /// Damage in what is derived from the log: the records are all there.
    case derived
    /// The store opens; records in the damaged place are lost, and a full check names it.
    case damaged
    /// The store opens and its records are all there; its consumers are lost, and a full check says so.
    case consumers
    /// The store does not open, and is not changed.
    case refused
  }

  var name: String
  var what: String
  var timestampFormat = "hybrid"
  var deletionValues = [2]
  var outcome = Outcome.clean
  /// The code of the error that a refused open throws.
  var code: String?
  /// The file that is named: by the error, or as a problem.
  var file: String?
  /// The bytes that recovery discards.
  var discardedBytes: UInt64?
  /// The newest versions in the order of the feed; nil where they cannot all be read.
  var records: [RecordLine]?
  /// The consumers in the order of their names; absent if there are none, or they are lost.
  var consumers: [ConsumerLine]?

  private enum CodingKeys: String, CodingKey {
    case name, what, timestampFormat, deletionValues, outcome, code, file, discardedBytes, records,
      consumers
  }

  /// The store itself.
  var image: SimulatedFileSystem

  /// Where a store lies in its image.
  static let path = "/store"

  static func writeAll(to directory: String) throws {
    let fixtures = try good() + damaged() + followed()
    for fixture in fixtures {
      try copyDirectory(
        path, on: fixture.image, to: "\(directory)/\(fixture.name)", on: SystemPlatform())
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    let json = try encoder.encode(fixtures) + Data("\n".utf8)
    try json.write(to: URL(fileURLWithPath: "\(directory)/fixtures.json"))
  }
}

/// A store as it is written for fixtures: always the same, with a still clock, seeded randomness,
/// and background work done by its own thread.
final class FixtureStore {
  let system: SimulatedFileSystem
  private let scheduler = ManualScheduler()
  private let configuration: Configuration
  private var store: ChangeStore?
  private var model: ReferenceModel

  init(seed: UInt64, _ configure: (inout Configuration) -> Void = { _ in }) throws {
    var configuration = Configuration.small
    configuration.segmentRecords = 20
    configure(&configuration)
    self.configuration = configuration
    system = SimulatedFileSystem(seed: seed)
    model = ReferenceModel(
      format: configuration.timestampFormat == .utf8Order ? .utf8Order : .hybrid)
    try open()
  }

  private func open() throws {
    store = try ChangeStore(
      path: Fixture.path, configuration, platform: system, scheduler: scheduler)
  }

  func apply(_ records: [ChangeRecord], author: String? = nil) throws {
    try store?.applyAndWait(records, author: author)
    try model.apply(records)
    scheduler.run()
    system.clock.advance(by: 1000)
  }

  /// Compacts; the files of the replaced segments are removed, and so many tombstones are purged, which
  /// are all that there are.
  func compact(purging tombstones: UInt64 = 0) throws {
    scheduler.run()
    guard let result = try store?.compact(), result.segments > 0,
      result.tombstonesPurged == tombstones
    else {
      preconditionFailure("nothing to compact, or other tombstones to purge")
    }
    if tombstones > 0 {
      let deletions = model.entries.filter { $0.value.record.type == .delete }
      model = model.purged(deletions.mapValues(\.record.hlcTimestamp))
    }
    scheduler.run()
    system.clock.advance(by: 1000)
  }

  func close() throws {
    scheduler.run()
    try store?.close()
  }

  func reopen() throws {
    try close()
    try open()
  }

  /// Where the log ends in its last segment.
  var end: Int {
    get throws { try Int(store?.engine.published.withLock { $0.end.length } ?? 0) }
  }

  /// Does something with consumers.
  func follow(_ body: (ChangeStore) throws -> Void) throws {
    if let store { try body(store) }
  }

  var records: [RecordLine] { model.feed.records.map { RecordLine($0) } }

  /// The files as they are, without most of the space that is reserved behind the log.
  func image() throws -> SimulatedFileSystem {
    let image = system.copy()
    for name in image.names(in: Fixture.path) where name.hasSuffix(".segment") {
      let path = "\(Fixture.path)/\(name)"
      guard let bytes = image.content(of: path)?.bytes else { continue }
      let end = bytes.lastIndex { $0 != 0 }.map { $0 + 1 } ?? 0
      if bytes.count - end > 512 { image.damage(path, .truncate(to: UInt64(end + 512))) }
    }
    return image
  }
}
