import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// Everything comes back byte for byte, and what may come in is limited by declared limits only.
@Suite struct StoreFieldTests {
  @Test(arguments: StoreHome.allCases)
  func `Every field comes back byte for byte`(home: StoreHome) async throws {
    let texts = [
      "", "\u{0}", "a\u{0}b", ":", "a:b", "\u{E9}", "e\u{301}", "\u{1F1E9}\u{1F1EA}", " \n",
    ]
    let keys: [Data?] = [nil, Data(), Data([0]), Data((0...255).map { UInt8($0) })]
    let stamps = [
      "1700000000000-0", "1700000000000-0-\u{0}", "01700000000000:00aF_x:y:z",
      "1700000000001-0-\u{E9}", "1700000000001-0-e\u{301}", "1700000000002_0_ ",
      "0000000000-0", "9999999999999999999-zzzzzzzzzzzz-n",
    ]
    var records: [ChangeRecord] = []
    for (row, id) in texts.enumerated() {
      for (column, collection) in texts.enumerated() {
        let number = row * texts.count + column
        records.append(
          ChangeRecord(
            id: id, collection: collection, type: MutationType(rawValue: number % 3)!,
            payload: Data(repeating: UInt8(number), count: number % 4),
            hlcTimestamp: stamps[number % stamps.count], authorPublicKey: keys[number % 4],
            signature: keys[number / 4 % 4]))
      }
    }
    try await home.withStore { test in
      for start in stride(from: 0, to: records.count, by: 5) {
        try await test.store.apply(Array(records[start..<min(start + 5, records.count)]))
        try test.step()
      }
      for record in records {
        let key = RecordKey(collection: record.collection, id: record.id)
        #expect(try test.store.record(forKey: key) == record)
      }
      // `==` of records is by bytes and tells nil from empty: compared with what went in, in order
      // of arrival within each timestamp.
      var model = ReferenceModel()
      for record in records { try model.apply([record]) }
      #expect(try await test.store.sweep(pageSize: 7) == model.feed.records)
    }
  }

  @Test(arguments: StoreHome.allCases)
  func `Keys that other engines confuse are different ones`(home: StoreHome) async throws {
    let keys = [
      ("a:b", "c"), ("a", "b:c"), ("", "a:b:c"), ("a:b:c", ""), ("\u{E9}", "x"), ("e\u{301}", "x"),
      ("x", "\u{E9}"), ("x", "e\u{301}"), ("A", "x"), ("a", "x"), ("a", "x\u{0}"), ("a\u{0}", "x"),
      ("u", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"), ("u", "AAAAAAAA-BBBB-CCCC-DDDD-EEEEEEEEEEEE"),
      ("u", "AAAAAAAA-bbbb-cccc-dddd-eeeeeeeeeeee"), ("u", "aaaaaaaabbbbccccddddeeeeeeeeeeee"),
    ]
    try await home.withStore { test in
      for (index, (collection, id)) in keys.enumerated() {
        let result = try await test.apply(
          change(id, time(index), in: collection, payload: "\(index)"))
        #expect(result.accepted == 1)
      }
      for (index, (collection, id)) in keys.enumerated() {
        let record = try test.store.record(forKey: RecordKey(collection: collection, id: id))
        #expect(record?.payload == Data("\(index)".utf8))
      }
      #expect(try test.store.records(in: "\u{E9}").count == 1)
      #expect(try test.store.records(in: "u").map(\.id) == keys.suffix(4).map(\.1).sorted())
    }
  }

  @Test(arguments: StoreHome.allCases)
  func `Unknown mutation types are stored as they are`(home: StoreHome) async throws {
    let values = [3, 4, -1, -3, 127, 128, 1 << 40, Int.max, Int.min, 2, 1, 0]
    try await home.withStore { test in
      for (index, value) in values.enumerated() {
        try await test.apply(change("\(index)", time(index), MutationType(rawValue: value)!))
      }
      #expect(try await test.store.sweep(pageSize: 5).map(\.type.rawValue) == values)
    }
  }

  @Test func `Large payloads come back, alone and among small ones`() async throws {
    var random = SeededGenerator(seed: 1)
    try await StoreHome.reopened.withStore { test in
      let noise = Data(random.bytes(1 << 20))
      let zeros = Data(count: 1 << 20)
      let sizes = [8_191, 8_192, 8_193, 16_384, 65_535, 65_536]
      var batch = [change("small", time(0), payload: "x")]
      batch.append(
        ChangeRecord(
          id: "noise", collection: "c", type: .insert, payload: noise, hlcTimestamp: time(1)))
      batch.append(
        ChangeRecord(
          id: "zeros", collection: "c", type: .insert, payload: zeros, hlcTimestamp: time(2)))
      for size in sizes {
        batch.append(
          ChangeRecord(
            id: "\(size)", collection: "c", type: .insert, payload: Data(random.bytes(size)),
            hlcTimestamp: time(size)))
      }
      batch.append(change("last", time(100_000), payload: "y"))
      try await test.store.apply(batch)
      try test.step()
      #expect(try await test.store.sweep(pageSize: 3) == batch)
      #expect(try test.store.nativeSweep(pageSize: 100, byteLimit: 1) == batch)
    }
  }

  @Test(arguments: StoreHome.allCases)
  func `A batch larger than a segment is one commit`(home: StoreHome) async throws {
    try await home.withStore { test in
      try await test.apply(change("before", time(0)))
      let batch = (0..<1_500).map { change("\($0)", time(1 + $0), payload: "payload \($0)") }
      let result = try await test.store.apply(batch)
      try test.step()
      #expect(result.accepted == 1_500)
      let after = try await test.apply(change("after", time(5_000)))
      let sequence = try #require(result.position?.sequence)
      // Dropped and opened again it has another epoch; else it is the next number.
      let next = try #require(after.position?.sequence)
      #expect(next == sequence + 1 || next >> 32 > sequence >> 32 && next & 0xFFFF_FFFF == 1)
      let all = try await test.store.sweep(pageSize: 400)
      #expect(all == [change("before", time(0))] + batch + [change("after", time(5_000))])
    }
  }

  /// A batch with one record that is at or above a limit.
  private func atLimit(_ field: String, excess: Int) -> ChangeRecord {
    var record = change("id", time(1))
    switch field {
    case "id": record.id = String(repeating: "i", count: 65_536 + excess)
    case "collection": record.collection = String(repeating: "c", count: 4_096 + excess)
    case "timestamp":
      let head = time(1, 0, "")
      record.hlcTimestamp = head + String(repeating: "n", count: 1_024 - head.utf8.count + excess)
    case "author key": record.authorPublicKey = Data(count: 65_536 + excess)
    default: record.signature = Data(count: 65_536 + excess)
    }
    return record
  }

  @Test(arguments: ["id", "collection", "timestamp", "author key", "signature"])
  func `A field may be as long as its limit, and no longer`(field: String) async throws {
    try await StoreHome.reopenedInTinySegments.withStore { test in
      let good = [change("before", time(0)), atLimit(field, excess: 0), change("after", time(2))]
      try await test.store.apply(good)
      try test.step()
      #expect(try await test.store.sweep(pageSize: 10) == good)

      let bad = [change("x", time(5)), change("y", time(6)), atLimit(field, excess: 1)]
      let error = await storeError { try await test.store.apply(bad) }
      #expect(error?.code == .limitExceeded)
      #expect(error?.recordIndex == 2)
      #expect(error?.message.contains(field) == true)
      #expect(try test.store.validate(bad).map(\.recordIndex) == [2])
      try test.step()
      #expect(try await test.store.sweep(pageSize: 10) == good)
    }
  }

  @Test func `A label may be as long as its limit, and no longer`() async throws {
    let label = String(repeating: "l", count: 1_024)
    try await StoreHome.reopened.withStore { test in
      try await test.store.apply([change("a", time(1))], author: label)
      let error = await storeError {
        try await test.store.apply([change("b", time(1))], author: label + "l")
      }
      #expect(error?.code == .limitExceeded)
      try test.step()
      #expect(try await test.store.sweep(pageSize: 10) == [change("a", time(1))])
    }
    var configuration = Configuration()
    configuration.authorLabel = label + "l"
    let error = await storeError { _ = try ChangeStore.inMemory(configuration: configuration) }
    #expect(error?.code == .limitExceeded)
    configuration.authorLabel = ""
    configuration.deletionValues = Set(0...64)
    let another = await storeError { _ = try ChangeStore.inMemory(configuration: configuration) }
    #expect(another?.code == .limitExceeded)
  }

  @Test(.enabled(if: ProcessInfo.processInfo.environment["AIRDB_LONG_TESTS"] != nil))
  func `A payload may be as large as its limit, and no larger`() async throws {
    try await StoreHome.reopened.withStore { test in
      let record = ChangeRecord(
        id: "a", collection: "c", type: .insert, payload: Data(count: 256 << 20),
        hlcTimestamp: time(1))
      try await test.store.apply([record])
      try test.step()
      let found = try test.store.record(forKey: RecordKey(collection: "c", id: "a"))
      #expect(found == record)
      var larger = record
      larger.payload.append(0)
      larger.id = "b"
      let error = await storeError { try await test.store.apply([larger]) }
      #expect(error?.code == .limitExceeded && error?.recordIndex == 0)
      // Six of them are more than a batch may hold.
      let batch = (0..<5).map { index in
        var copy = record
        copy.id = "\(index)"
        copy.hlcTimestamp = time(10 + index)
        return copy
      }
      let tooMuch = await storeError { try await test.store.apply(batch) }
      #expect(tooMuch?.code == .limitExceeded)
      #expect(try test.store.latestTimestamp == time(1))
    }
  }

  @Test(.enabled(if: ProcessInfo.processInfo.environment["AIRDB_LONG_TESTS"] != nil))
  func `A batch may be as large as its limit, and no larger`() async throws {
    try await StoreHome.reopened.withStore { test in
      // Nothing that shrinks.
      var random = SeededGenerator(seed: 7)
      var payload = Data(count: 256 << 20)
      payload.withUnsafeMutableBytes { bytes in
        for place in stride(from: 0, to: bytes.count, by: 8) {
          bytes.storeBytes(of: random.next(), toByteOffset: place, as: UInt64.self)
        }
      }
      var batch = (0..<4).map { index in
        ChangeRecord(
          id: "\(index)", collection: "c", type: .insert, payload: payload,
          hlcTimestamp: time(1 + index))
      }
      let small = batch.reduce(0) { $0 + $1.id.utf8.count + 1 + $1.hlcTimestamp.utf8.count }
      batch[3].payload.removeLast(small - 1)
      let refused = await storeError { try await test.store.apply(batch) }
      #expect(refused?.code == .limitExceeded)
      #expect(try test.store.statistics().liveRecords == 0)

      batch[3].payload.removeLast()
      try await test.store.apply(batch)
      try test.step()
      for record in batch {
        let key = RecordKey(collection: "c", id: record.id)
        #expect(try test.store.record(forKey: key) == record)
      }
      #expect(try test.store.verify().isClean)
    }
  }
}
