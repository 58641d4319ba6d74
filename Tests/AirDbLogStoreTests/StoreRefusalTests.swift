import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// What is refused is refused whole, with a typed error that says where, and changes nothing.
@Suite struct StoreRefusalTests {
  @Test(arguments: StoreHome.allCases)
  func `A batch with one malformed timestamp is refused whole, naming record and text`(
    home: StoreHome
  ) async throws {
    let malformed = [
      "", "x", "1700000000000", "1700000000000-", "170000000-0-n", "1700000000000-0-",
      "2023-02-29T00:00:00Z-0-n", " 1700000000000-0-n", "1700000000000-\u{661}-n",
    ]
    try await home.withStore { test in
      try await test.apply(change("a", time(1), payload: "stored"))
      let before = try test.store.position
      for (index, text) in malformed.enumerated() {
        var batch = (0..<malformed.count).map { change("\($0)", time(10 + $0)) }
        batch.append(change("a", time(50), payload: "newer"))
        batch[index].hlcTimestamp = text
        let error = await storeError { try await test.store.applyChanges(batch) }
        #expect(error?.code == .invalidTimestamp)
        #expect(error?.recordIndex == index)
        #expect(error?.message.contains("\"\(text)\"") == true)
        try test.step()
        #expect(
          try await test.store.sweep(pageSize: 10) == [change("a", time(1), payload: "stored")])
        #expect(try test.store.position == before)
      }
    }
  }

  @Test(arguments: StoreHome.allCases)
  func `Decimal and ISO 8601 clocks do not mix, in a batch or in a store`(
    home: StoreHome
  ) async throws {
    let iso = "2023-11-14T22:13:20.000Z-0000-n"
    try await home.withStore { test in
      let mixed = [change("a", time(1)), change("b", time(2)), change("c", iso)]
      let error = await storeError { try await test.store.apply(mixed) }
      #expect(error?.code == .mixedTimestamps)
      #expect(error?.recordIndex == 2)
      try test.step()
      // Nothing was stored, so that the store is not bound to a kind yet.
      #expect(try test.store.latestTimestamp == nil)
      try await test.apply(change("a", iso))
      let late = await storeError { try await test.store.apply([change("b", time(1))]) }
      #expect(late?.code == .mixedTimestamps && late?.recordIndex == 0)
      let cursor = await storeError {
        _ = try await test.store.getChangesSince(sinceHlcTimestamp: time(1), limit: 1)
      }
      #expect(cursor?.code == .mixedTimestamps)
      try test.step()
      #expect(try await test.store.sweep(pageSize: 10) == [change("a", iso)])
    }
  }

  @Test(arguments: StoreHome.allCases)
  func `A cursor that does not parse is a typed error`(home: StoreHome) async throws {
    try await home.withStore { test in
      try await test.apply(change("a", time(1)))
      for text in ["", "now", "1700000000000", time(1) + String(repeating: "n", count: 1_024)] {
        let error = await storeError {
          _ = try await test.store.getChangesSince(sinceHlcTimestamp: text, limit: 10)
        }
        #expect(error?.code == .invalidTimestamp, "\(text)")
      }
    }
  }

  @Test(arguments: StoreHome.allCases)
  func `Validating finds what would be refused, and changes nothing`(home: StoreHome) async throws {
    let iso = "2023-11-14T22:13:20.000Z-0000-n"
    try await home.withStore { test in
      #expect(try test.store.validate([]).isEmpty)
      let batch = [
        change("a", time(1)), change("b", "bad"), change("c", iso), change("d", time(2)),
        change(String(repeating: "e", count: 70_000), time(3)), change("f", ""),
      ]
      let problems = try test.store.validate(batch)
      #expect(problems.map(\.recordIndex) == [1, 2, 4, 5])
      #expect(
        problems.map(\.code) == [
          .invalidTimestamp, .mixedTimestamps, .limitExceeded, .invalidTimestamp,
        ])
      #expect(try test.store.latestTimestamp == nil)
      try await test.apply(change("x", iso))
      // The store's kind of clock counts from now on.
      #expect(try test.store.validate(batch).map(\.recordIndex) == [0, 1, 3, 4, 5])
      // What is not among the problems can be applied.
      try await test.store.apply([batch[2]])
    }
  }

  @Test(arguments: StoreHome.allCases)
  func `A store of plain texts orders them by their bytes`(home: StoreHome) async throws {
    let texts = [
      "\u{0}", "\u{0}\u{0}", " ", "10", "9", "A", "a", "a\u{0}", "aaaaaaaaaaaaaaaa",
      "aaaaaaaaaaaaaaaa\u{0}", "aaaaaaaaaaaaaaaab", "b", "e\u{301}", "\u{E9}", "\u{FFFF}",
      "\u{10000}",
    ]
    func configure(_ configuration: inout Configuration) {
      configuration.timestampFormat = .utf8Order
    }
    try await home.withStore(configure) { test in
      for text in texts.reversed() { try await test.apply(change(text, text)) }
      #expect(
        try await test.store.sweep(pageSize: 1).map { Array($0.id.utf8) }
          == texts.map { Array($0.utf8) })
      for (index, text) in texts.enumerated() {
        let rest = try await test.store.getChangesSince(sinceHlcTimestamp: text, limit: .max)
        #expect(rest.count == texts.count - index - 1)
      }
      let error = await storeError { try await test.store.apply([change("x", "")]) }
      #expect(error?.code == .invalidTimestamp)
      #expect(try test.store.latestTimestamp == "\u{10000}")
      // What would be two kinds of clock are just texts here.
      try await test.store.apply([
        change("x", time(1)), change("y", "2023-11-14T22:13:20.000Z-0000-n"),
      ])
    }
  }

  @Test func `A store that does not match the configuration is refused and not touched`()
    async throws
  {
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      let store = try ChangeStore(at: path)
      try await store.apply([change("a", time(1))])
      try store.close()
      // Also one that was not closed: refusing must not recover it either.
      for isClosed in [true, false] {
        if !isClosed {
          let open = try ChangeStore(at: path)
          try await open.apply([change("b", time(2))])
        }
        let before = try DirectoryContents(path)
        for isReadOnly in [true, false] {
          var format = Configuration()
          format.timestampFormat = .utf8Order
          format.isReadOnly = isReadOnly
          var deletions = Configuration()
          deletions.deletionValues = [2, 3]
          deletions.isReadOnly = isReadOnly
          for configuration in [format, deletions] {
            let error = await storeError {
              _ = try ChangeStore(at: path, configuration: configuration)
            }
            #expect(error?.code == .configurationMismatch)
            #expect(try DirectoryContents(path) == before)
          }
        }
      }
    }
  }

  @Test(arguments: [TimestampFormat?.none, .hybrid, .utf8Order])
  func `What is recorded counts where the configuration names nothing`(
    format: TimestampFormat?
  ) throws {
    let platform = MemoryPlatform()
    var created = Configuration.tiny
    created.timestampFormat = format
    created.deletionValues = format == nil ? nil : [-3, 7]
    var records = [change("a", time(1)), change("b", time(2)), change("c", time(3))]
    records[0].type = MutationType(rawValue: 7)!
    records[1].type = MutationType(rawValue: 2)!
    var store = try ChangeStore(path: "/store", created, platform: platform)
    try store.applyAndWait(records)
    try store.close()
    for isReadOnly in [true, false] {
      var plain = Configuration.tiny
      plain.isReadOnly = isReadOnly
      store = try ChangeStore(path: "/store", plain, platform: platform)
      let statistics = try store.statistics(countingDeletions: true)
      #expect(statistics.timestampFormat == format ?? .hybrid)
      #expect(statistics.deletionValues == (format == nil ? [2] : [-3, 7]))
      #expect(statistics.liveDeletions == 1)
      #expect(try store.changes(limit: 9).records == records)
      // The recorded format is the one that the calls check against.
      let isHybrid = format != .utf8Order
      #expect(try store.validate([change("d", "opaque")]).isEmpty != isHybrid)
      if !isReadOnly {
        var code: LogStoreError.Code?
        do throws(LogStoreError) {
          try store.applyAndWait([change("d", "opaque")])
        } catch {
          code = error.code
        }
        #expect(code == (isHybrid ? .invalidTimestamp : nil))
      }
      try store.close()
    }
  }

  @Test func `Statistics count deletions and the bytes of all unsealed segments`() throws {
    let platform = MemoryPlatform()
    let scheduler = ManualScheduler()
    let store = try ChangeStore(
      path: "/store", .tiny, platform: platform, scheduler: scheduler)
    var model: [String: Bool] = [:]
    var seen: Set<Int> = []
    for index in 0..<200 {
      let isDeletion = index % 3 == 0
      try store.applyAndWait([
        change("\(index * 7 % 60)", time(index), isDeletion ? .delete : .update, payload: "x")
      ])
      model["\(index * 7 % 60)"] = isDeletion
      if index % 17 == 0 { scheduler.run() }
      let statistics = try store.statistics(countingDeletions: true)
      #expect(statistics.liveDeletions == UInt64(model.values.count { $0 }))
      #expect(statistics.liveRecords == UInt64(model.count))
      let state = try store.engine.snapshot
      seen.insert(state.tail.count)
      // Behind the last frame, whose last byte is of a payload, there is only reserved space.
      let ends = try state.tail.map { log in
        try StoreDirectory(path: "/store", platform: platform).contents(
          of: store.engine.directory.segment(log.fileId), limit: 1 << 30)!
          .lastIndex { $0 != 0 }! / 8 * 8 + 8
      }
      #expect(statistics.unsealedBytes == UInt64(ends.reduce(0, +)))
    }
    #expect(try store.statistics().liveDeletions == nil)
    #expect(seen.contains(2), "a segment that waits for its seal counts as well")
  }

  @Test func `What the system forbids comes with advice that fits the system`() {
    let error = LogStoreError(SystemError(errno: EACCES, call: "open"), "open a file", file: "/f")
    #expect(error.code == .protectedDataUnavailable)
    #expect(error.recoverySuggestion.contains("permission"))
    #if !canImport(Darwin)
      #expect(!error.description.contains("unlock"))
    #endif
  }

  @Test func `A manifest of a newer format is refused and not touched`() async throws {
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      let store = try ChangeStore(at: path)
      try await store.apply([change("a", time(1))])
      try store.close()
      let original = try DirectoryContents.bytes(path + "/MANIFEST")
      // Format version, required features, optional features.
      for (offset, readers) in [(12, false), (64, false), (72, true)] {
        var bytes = original
        bytes[offset] = 2
        seal(manifest: &bytes)
        try Data(bytes).write(to: URL(fileURLWithPath: path + "/MANIFEST"))
        let before = try DirectoryContents(path)
        let error = await storeError { _ = try ChangeStore(at: path) }
        #expect(error?.code == .unsupportedFormat)
        var configuration = Configuration()
        configuration.isReadOnly = true
        if readers {
          let reader = try ChangeStore(at: path, configuration: configuration)
          #expect(try await reader.sweep(pageSize: 1) == [change("a", time(1))])
        } else {
          let error = await storeError {
            _ = try ChangeStore(at: path, configuration: configuration)
          }
          #expect(error?.code == .unsupportedFormat)
        }
        #expect(try DirectoryContents(path) == before)
      }
    }
  }

  @Test func `A missing store is an error where none may be created`() async throws {
    try await withTemporaryDirectory { root in
      for setting in [\Configuration.isReadOnly, \Configuration.createsIfMissing] {
        var configuration = Configuration()
        configuration[keyPath: setting].toggle()
        for path in [root + "/none", root] {
          let error = await storeError {
            _ = try ChangeStore(at: path, configuration: configuration)
          }
          #expect(error?.code == .storeNotFound)
        }
        let error = await storeError { try ChangeStore.destroy(at: root + "/none") }
        #expect(error?.code == .storeNotFound)
        let left = try DirectoryContents(root)
        #expect(left.files.isEmpty)
      }
    }
  }

  @Test func `The parent of what is made is not made, and the error names it`() async throws {
    try await withTemporaryDirectory { root in
      let missing = root + "/none"
      let store = try ChangeStore(at: root + "/store")
      let errors = [
        await storeError { _ = try ChangeStore(at: missing + "/store") },
        await storeError { _ = try ChangeStore(at: missing + "/store/") },
        await storeError { try store.backUp(to: missing + "/copy") },
        await storeError { _ = try InstallationId(keptAt: missing + "/id") },
      ]
      for error in errors {
        #expect(error?.code == .directoryNotFound)
        #expect(error?.file == missing)
      }
      #expect(!FileManager.default.fileExists(atPath: missing))
      try store.close()
    }
  }

  @Test func `A path may be a URL everywhere`() throws {
    try withTemporaryDirectory { root in
      let folder = URL(fileURLWithPath: root)
      let place = folder.appendingPathComponent("a store", isDirectory: true)
      let copy = folder.appendingPathComponent("a copy")
      let store = try ChangeStore(at: place)
      try store.backUp(to: copy)
      try store.close()
      let identity = try ChangeStore.adopt(at: copy)
      let opened = try ChangeStore(at: copy)
      #expect(try opened.statistics().storeId == identity)
      try opened.close()
      try ChangeStore.destroy(at: place)
      try ChangeStore.destroy(at: copy)
      #expect(try FileManager.default.contentsOfDirectory(atPath: root).isEmpty)
    }
  }
}

/// Makes the checksum of a manifest's bytes right again.
func seal(manifest bytes: inout [UInt8]) {
  let checksum = bytes[12...].withUnsafeBytes {
    Checksum.bound(.manifest, file: 0, offset: 0, $0)
  }
  bytes.withUnsafeMutableBytes {
    $0.storeBytes(of: checksum.littleEndian, toByteOffset: 8, as: UInt32.self)
  }
}
