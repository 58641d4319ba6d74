import AirDbAdapterTesting
import AirDbLogStore
import Foundation

/// What migrations are tried with.
enum MigrationSamples {
  static func change(
    _ id: String, _ time: Int, _ content: String = "", type: MutationType = .insert,
    collection: String = "notes"
  ) -> ChangeRecord {
    ChangeRecord(
      id: id, collection: collection, type: type, payload: Data(content.utf8),
      hlcTimestamp: "\(1_700_000_000_000 + time)-0000-n")
  }

  /// Runs of equal timestamps, and all that an adapter might not keep as it came.
  static let changes: [ChangeRecord] = {
    var changes: [ChangeRecord] = []
    for (time, count) in [(1, 1), (2, 3), (3, 1), (4, 2), (5, 5), (7, 2)] {
      changes += (0..<count).map { change("id\(time)-\($0)", time, "content \($0)") }
    }
    changes += [
      change("gone", 6, type: .delete), change("", 8), change("a\u{0}b", 9, "\u{0}"),
      change("\u{E9}", 10), change("e\u{301}", 10), change("b:c", 11, collection: "a"),
      change("c", 11, collection: "a:b"), change("open", 12, type: MutationType(rawValue: 900)!),
    ]
    for (time, (key, signature)) in [
      (nil, nil), (Data(), nil), (nil, Data()), (Data([1]), Data([0, 255])),
    ].enumerated() as EnumeratedSequence<[(Data?, Data?)]> {
      var signed = change("signed \(time)", 20 + time)
      (signed.authorPublicKey, signed.signature) = (key, signature)
      changes.append(signed)
    }
    return changes
  }()

  /// All that an adapter gives, in no particular order.
  static func all(_ adapter: any AirDbAdapter) async throws -> Set<ChangeRecord> {
    Set(try await adapter.getChangesSince(sinceHlcTimestamp: nil, limit: 100_000))
  }
}

/// Counts the calls of an adapter, remembers what pages were asked for, and fails one call.
actor WatchedAdapter: AirDbAdapter {
  struct Failure: Error {}

  private let adapter: any AirDbAdapter & Sendable
  private var failing: Int?
  private(set) var calls = 0
  private(set) var pages: [(cursor: String?, limit: Int, count: Int)] = []

  init(_ adapter: any AirDbAdapter & Sendable, failing: Int? = nil) {
    self.adapter = adapter
    self.failing = failing
  }

  private func count() throws {
    calls += 1
    if calls == failing { throw Failure() }
  }

  func getChangesSince(sinceHlcTimestamp: String?, limit: Int) async throws -> [ChangeRecord] {
    try count()
    let page = try await adapter.getChangesSince(
      sinceHlcTimestamp: sinceHlcTimestamp, limit: limit)
    pages.append((sinceHlcTimestamp, limit, page.count))
    return page
  }

  func applyChanges(_ changes: [ChangeRecord]) async throws {
    try count()
    try await adapter.applyChanges(changes)
  }

  func getLatestHlc() async throws -> String? {
    try count()
    return try await adapter.getLatestHlc()
  }
}

/// The last checkpoint of a migration, as an app would keep it: as bytes.
actor CheckpointKeeper {
  private var bytes: Data?
  private(set) var count = 0

  var checkpoint: Migration.Checkpoint? {
    get throws {
      try bytes.map { try JSONDecoder().decode(Migration.Checkpoint.self, from: $0) }
    }
  }

  func keep(_ progress: Migration.Progress) throws {
    bytes = try JSONEncoder().encode(progress.checkpoint)
    count += 1
  }
}
