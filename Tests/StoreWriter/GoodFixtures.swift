import AirDbLogStore
import Foundation
import TestSupport

extension Fixture {
  static func good() throws -> [Fixture] {
    try [
      empty(), minimal(), fields(), sealed(), unclosed(), isoClock(), opaqueClock(), deletions(),
      foreignFiles(), compacted(), recompacted(), purged(),
    ]
  }

  private init(_ name: String, _ what: String, _ store: FixtureStore) throws {
    self.init(name: name, what: what, records: store.records, image: try store.image())
  }

  private static func empty() throws -> Fixture {
    let store = try FixtureStore(seed: 1)
    try store.close()
    return try Fixture("empty", "created and closed", store)
  }

  private static func minimal() throws -> Fixture {
    let store = try FixtureStore(seed: 2)
    try store.apply([note(1, "Hello")], author: "app")
    try store.close()
    return try Fixture("minimal", "one record", store)
  }

  /// Every form that a record's fields take in a frame.
  private static func fields() throws -> Fixture {
    let uuid = "550e8400-e29b-41d4-a716-446655440000"
    let noise = Data(SeededRandom.bytes(3000, seed: 3))
    let store = try FixtureStore(seed: 3)
    let records: [(id: String, collection: String, type: Int, payload: Data, hlc: String)] = [
      ("plain", "notes", 0, Data("text".utf8), "1700000000001-0-a"),
      (uuid, "notes", 1, Data("a UUID in lower case".utf8), "1700000000002-0-a"),
      (uuid.uppercased(), "notes", 1, Data("in upper case".utf8), "1700000000002-0-b"),
      ("77777777-7777-7777-7777-777777777777", "notes", 2, Data(), "1700000000003-000f-b"),
      ("", "", 0, Data(), "1700000000004-000F-b"),
      ("\u{0}\n\"", "é", -1, Data([0xFF, 0xFE]), "0001700000000005:0"),
      ("e\u{301}", "é", 1 << 40, Data("decomposed".utf8), "1700000000006_zZ_mixed"),
      ("\u{E9}", "é", 3, Data("composed".utf8), "1700000000007-00000001-c-d-e"),
      ("shrinks", "blocks", 0, Data(String(repeating: "ab", count: 2000).utf8), "1700000000008-1"),
      ("does not shrink", "blocks", 0, noise, "1700000000008-2"),
    ]
    try store.apply(
      records.enumerated().map { index, record in
        ChangeRecord(
          id: record.id, collection: record.collection, type: MutationType(rawValue: record.type)!,
          payload: record.payload, hlcTimestamp: record.hlc,
          authorPublicKey: [nil, Data(), Data("key".utf8)][index % 3],
          signature: [nil, Data("signature".utf8), Data(), nil][index % 4])
      }, author: "åuthor")
    try store.close()
    return try Fixture("fields", "every form of a record's fields", store)
  }

  /// A segment of every 20 records or so, a tail behind them, updates and deletions over all of them.
  static func history(seed: UInt64, batches: Int) throws -> FixtureStore {
    let store = try FixtureStore(seed: seed)
    for batch in 1...batches {
      try store.apply((0..<7).map { note($0 * batch % 17, "batch \(batch)", at: batch) })
      if batch == 3 { try store.reopen() }
    }
    try store.apply([note(3, "", at: 10, .delete), note(5, "", at: 10, .delete)])
    return store
  }

  private static func sealed() throws -> Fixture {
    let store = try history(seed: 4, batches: 9)
    try store.close()
    return try Fixture("sealed", "several segments, superseded records, two sessions", store)
  }

  private static func unclosed() throws -> Fixture {
    try Fixture(
      "unclosed", "the writer was killed: a tail, with reserved space behind it",
      history(seed: 5, batches: 9))
  }

  /// A store whose sealed segments are one packed segment, with commits behind it.
  static func compactedHistory(seed: UInt64) throws -> FixtureStore {
    let store = try history(seed: seed, batches: 9)
    try store.compact()
    try store.apply([note(4, "after", at: 20), note(40, "after", at: 20)], author: "app")
    return store
  }

  private static func compacted() throws -> Fixture {
    let store = try compactedHistory(seed: 12)
    try store.close()
    return try Fixture("compacted", "a packed segment, and a tail", store)
  }

  /// Packed and other segments, of which some have been packed twice, and nothing behind them.
  private static func recompacted() throws -> Fixture {
    let store = try FixtureStore(seed: 13) { $0.replayBytes = 0 }
    for round in 0..<3 {
      for batch in 1...8 {
        let number = round * 8 + batch
        let author = number % 3 == 0 ? "device \(number % 2)" : nil
        let notes = (0..<7).map { note($0 * number % 61, "batch \(number)", at: number) }
        try store.apply(notes, author: author)
      }
      try store.reopen()
      if round < 2 { try store.compact() }
    }
    try store.close()
    return try Fixture("recompacted", "several packed segments, others, and no tail", store)
  }

  /// Two purges, the second of which took the greatest timestamp, and a commit behind them.
  private static func purged() throws -> Fixture {
    let store = try FixtureStore(seed: 14) {
      $0.replayBytes = 0
      $0.tombstoneRetention = .zero
    }
    for round in 1...2 {
      try store.apply((0..<12).map { note($0, "round \(round)", at: 2 * round) })
      try store.apply((0..<3).map { note(3 * $0 + round, "", at: 2 * round + 1, .delete) })
      try store.reopen()
      try store.compact(purging: 3)
    }
    try store.apply([note(1, "again", at: 20), note(40, "after", at: 20)])
    try store.close()
    return try Fixture(
      "purged", "tombstones were purged twice, the greatest timestamp with them", store)
  }

  private static func isoClock() throws -> Fixture {
    let store = try FixtureStore(seed: 6)
    let clocks = ["00Z-0-n", "00.5Z-0-n", "00.500000000Z:0001:n", "01.000Z-0000-n", "00.50Z-0-m"]
    try store.apply(
      clocks.enumerated().map { index, clock in
        ChangeRecord(
          id: "\(index)", collection: "c", type: .insert, payload: Data(clock.utf8),
          hlcTimestamp: "2023-11-14T22:13:\(clock)")
      })
    try store.close()
    return try Fixture("iso-clock", "timestamps with ISO 8601 clocks", store)
  }

  private static func opaqueClock() throws -> Fixture {
    let store = try FixtureStore(seed: 7) { $0.timestampFormat = .utf8Order }
    let clocks = ["b", "a", "a\u{0}", "\u{0}", "é", "0123456789abcdef", "0123456789abcdef0"]
    try store.apply(
      clocks.enumerated().map { index, clock in
        ChangeRecord(
          id: "\(index)", collection: "c", type: .insert, payload: Data(clock.utf8),
          hlcTimestamp: clock)
      })
    try store.close()
    var fixture = try Fixture("opaque-clock", "timestamps ordered by their bytes", store)
    fixture.timestampFormat = "utf8Order"
    return fixture
  }

  private static func deletions() throws -> Fixture {
    let store = try FixtureStore(seed: 8) { $0.deletionValues = [-1, 7] }
    try store.apply([-1, 2, 7].map { note($0 + 1, "", at: $0 + 1, MutationType(rawValue: $0)!) })
    try store.close()
    var fixture = try Fixture("deletions", "other values are deletions than usual", store)
    fixture.deletionValues = [-1, 7]
    return fixture
  }

  private static func foreignFiles() throws -> Fixture {
    let store = try FixtureStore(seed: 9)
    try store.apply([note(1, "Hello")])
    try store.close()
    for name in ["._MANIFEST", "MANIFEST~", "00000000000000ff.segment", "1.segment", "x.index"] {
      try store.system.install(FileBytes(Array("foreign".utf8)), at: "\(path)/\(name)")
    }
    return try Fixture("foreign-files", "files of others, one of a number not given out", store)
  }

  /// A record whose payload compresses.
  static func note(
    _ number: Int, _ text: String, at batch: Int = 0, _ type: MutationType = .insert
  ) -> ChangeRecord {
    let content = text.isEmpty ? "" : String(repeating: "\(text), note \(number). ", count: 6)
    return ChangeRecord(
      id: "note-\(number)", collection: number % 2 == 0 ? "even" : "odd", type: type,
      payload: Data(content.utf8),
      hlcTimestamp:
        "\(1_700_000_000_000 + batch * 1000 + number)-0000-\(batch % 2 == 0 ? "a" : "b")")
  }
}

private enum SeededRandom {
  static func bytes(_ count: Int, seed: UInt64) -> [UInt8] {
    var random = SeededGenerator(seed: seed)
    return random.bytes(count)
  }
}
