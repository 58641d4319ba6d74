import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// What opening finds, and what it leaves in the directory.
@Suite struct StoreOpeningTests {
  /// A store of several segments that has nothing left to clean, in `path`.
  private func makeSettledStore(_ path: String) async throws {
    let store = try ChangeStore(at: path, configuration: .tiny)
    for index in 0..<40 {
      try await store.apply([change("\(index % 30)", time(index), payload: "payload")])
    }
    try store.compact()
    try store.close()
    // A close that comes soon leaves files that were replaced to the next open.
    try ChangeStore(at: path, configuration: .tiny).close()
  }

  @Test func `A store that is opened and closed a thousand times writes nothing`() async throws {
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      try await makeSettledStore(path)
      let before = try DirectoryContents(path)
      for round in 0..<1_000 {
        let store = try ChangeStore(at: path, configuration: .tiny)
        switch round % 4 {
        case 0: break
        case 1:
          #expect(try await store.getLatestHlc() == time(39))
          try store.flush(to: .powerLoss)
        case 2:
          // A batch that is stale writes nothing.
          #expect(try store.applyAndWait([change("3", time(3))]).accepted == 0)
        default:
          try store.suspend()
          try store.resume()
        }
        try store.close()
        if round < 20 || round % 100 == 99 { #expect(try DirectoryContents(path) == before) }
      }
      #expect(try DirectoryContents(path) == before)
    }
  }

  @Test func `A store that is opened and dropped writes nothing`() async throws {
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      try await makeSettledStore(path)
      let before = try DirectoryContents(path)
      // A cleaner that is at work would hold the dropped store for a moment.
      var configuration = Configuration.tiny
      configuration.cleaning = .off
      for round in 0..<100 {
        let store = try ChangeStore(at: path, configuration: configuration)
        if round % 2 == 0 {
          #expect(try store.applyAndWait([change("3", time(3))]).accepted == 0)
        } else {
          try store.suspend()
          try store.resume()
        }
      }
      #expect(try DirectoryContents(path) == before)
    }
  }

  @Test func `A clean open replays at most 256 KiB`() async throws {
    for size in [100, 200_000, 300_000, 1_000_000] {
      try await withTemporaryDirectory { root in
        let path = root + "/store"
        let store = try ChangeStore(at: path)
        var random = SeededGenerator(seed: UInt64(size))
        let chunk = 50_000
        for start in stride(from: 0, to: size, by: chunk) {
          let record = ChangeRecord(
            id: "\(start)", collection: "c", type: .insert,
            payload: Data(random.bytes(min(chunk, size - start))), hlcTimestamp: time(start))
          try await store.apply([record])
        }
        let latest = try await store.getLatestHlc()
        try store.close()
        let manifest = try #require(
          try StoreDirectory(path: path, platform: SystemPlatform()).readManifest())
        // What is not sealed is what an open has to replay.
        let sealed = Set(
          manifest.segments.map {
            StoreDirectory(path: path, platform: SystemPlatform()).segment($0.fileId)
          })
        let tail = try DirectoryContents(path).files.filter {
          $0.key.hasSuffix(".segment") && !sealed.contains(path + "/" + $0.key)
        }
        #expect(tail.values.allSatisfy { $0.bytes.count <= 256 << 10 }, "\(size)")
        #expect(tail.isEmpty == (size > 256 << 10), "\(size)")
        let events = Locked<[String]>([])
        var configuration = Configuration()
        configuration.eventHandler = { event in events.withLock { $0.append("\(event)") } }
        let again = try ChangeStore(at: path, configuration: configuration)
        #expect(try await again.getLatestHlc() == latest)
        #expect(events.withLock { $0 }.isEmpty, "a clean open has nothing to report")
      }
    }
  }

  @Test func `A store can be moved and copied, and foreign files in it are left alone`()
    async throws
  {
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      let strangers = [
        ".DS_Store", "._MANIFEST", "MANIFEST~", "manifest", "MANIFEST.old", "LOCK.bak", "1.segment",
        "0000000000000001.SEGMENT", "0000000000000001.segment~", "000000000000000A.segment",
        "00000000000000001.segment", "0000000000000000.segment", "ffffffffffffffff.segment",
        "ffffffffffffffff.index", "ffffffffffffffff.index.new", "ffffffffffffffff.liveness",
        "notes.txt", "\u{E9}.txt",
      ]
      // Nothing goes on behind a store that has been dropped: its files can be moved. So commits are
      // made on this thread, where no other still holds the store when it has been answered.
      let open = { path in
        try ChangeStore(
          path: path, .tiny, platform: SystemPlatform(), scheduler: ManualScheduler())
      }
      var store: ChangeStore? = try open(path)
      for name in strangers {
        try Data("foreign \(name)".utf8).write(to: URL(fileURLWithPath: path + "/" + name))
      }
      try FileManager.default.createDirectory(
        atPath: path + "/sub", withIntermediateDirectories: false)
      var model = ReferenceModel()
      var home = path
      for round in 0..<6 {
        for index in 0..<20 {
          let record = change("\(index)", time(100 * round + index), payload: "\(round)")
          try store!.applyAndWait([record])
          try model.apply([record])
        }
        if round % 2 == 0 { try store!.close() }
        store = nil
        let target = root + "/moved \(round) e\u{301}"
        if round < 3 {
          try FileManager.default.moveItem(atPath: home, toPath: target)
        } else {
          try FileManager.default.copyItem(atPath: home, toPath: target)
        }
        home = target
        store = try open(home)
        try await expectEqual(store!, model)
      }
      try store!.close()
      for name in strangers {
        #expect(
          try DirectoryContents.bytes(home + "/" + name) == Array("foreign \(name)".utf8))
      }
      // Destroying takes the store and leaves the rest.
      try ChangeStore.destroy(at: home)
      #expect(try Set(SystemPlatform().list(home)) == Set(strangers + ["sub"]))
    }
  }

  @Test func `Destroying a store removes it and its directory, but not while it is open`()
    async throws
  {
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      let store = try ChangeStore(at: path, configuration: .tiny)
      for index in 0..<30 { try await store.apply([change("\(index % 9)", time(index))]) }
      let error = await storeError { try ChangeStore.destroy(at: path) }
      #expect(error?.code == .storeInUse)
      #expect(try await store.sweep(pageSize: 5).count == 9)
      try store.close()
      try ChangeStore.destroy(at: path)
      #expect(try DirectoryContents(root).files.isEmpty)
      #expect(try ChangeStore(at: path).latestTimestamp == nil)
      try ChangeStore.destroy(at: path)
    }
  }

  @Test func `Destroying goes on where a crash ended it`() async throws {
    for isDamaged in [false, true] {
      try await withTemporaryDirectory { root in
        let path = root + "/store"
        let store = try ChangeStore(at: path, configuration: .tiny)
        for index in 0..<30 { try await store.apply([change("\(index % 9)", time(index))]) }
        try store.close()
        if isDamaged {
          try Data("damaged".utf8).write(to: URL(fileURLWithPath: path + "/MANIFEST"))
        } else {
          try SystemPlatform().remove(path + "/MANIFEST")
        }
        #expect(await storeError { _ = try ChangeStore(at: path) }?.code == .corrupt)
        try ChangeStore.destroy(at: path)
        #expect(await storeError { try ChangeStore.destroy(at: path) }?.code == .storeNotFound)
        #expect(try ChangeStore(at: path).latestTimestamp == nil)
      }
    }
  }

  @Test func `An open tells what it found of a store that was not closed`() async throws {
    let platform = MemoryPlatform()
    let events = Locked<[StoreEvent]>([])
    var configuration = Configuration()
    configuration.eventHandler = { event in events.withLock { $0.append(event) } }
    var store: ChangeStore?
    for round in 0..<3 {
      store = try ChangeStore(
        path: "/store", configuration, platform: platform, scheduler: ManualScheduler())
      let found = events.withLock { found in
        defer { found = [] }
        return found
      }
      if round == 1 {
        guard found.count == 1, case .recovered(0, let sequence, 5) = found[0] else {
          Issue.record("\(found)")
          return
        }
        #expect(try store!.position?.sequence == sequence)
      } else {
        #expect(found.isEmpty, "round \(round)")
      }
      for index in 0..<5 { try store!.applyAndWait([change("\(index)", time(index + round))]) }
      if round == 1 { try store!.close() }
      store = nil
    }
  }

  @Test(arguments: [1, 3, 40])
  func `An open and a close without a write leave what a close leaves, also after a kill`(
    commits: Int
  ) throws {
    var configuration = Configuration.tiny
    configuration.replayBytes = 512
    let system = SimulatedFileSystem(seed: 7)
    do {
      let store = try ChangeStore(
        path: "/store", configuration, platform: system, scheduler: ManualScheduler())
      for index in 0..<commits {
        try store.applyAndWait([change("\(index % 11)", time(index), payload: "payload \(index)")])
      }
      // Of the copy nothing was ever sealed or closed; neither of the store.
      try store.backUp(to: "/copy")
    }
    for path in ["/store", "/copy"] {
      let dead = system.afterProcessDeath()
      let content = try changes(path, configuration, dead.afterProcessDeath())
      #expect(content.count == min(commits, 11))
      try ChangeStore(
        path: path, configuration, platform: dead, scheduler: ManualScheduler()
      ).close()
      let manifest = try #require(
        try StoreDirectory(path: path, platform: dead).readManifest())
      #expect(manifest.livenessSequence == manifest.end.sequence)
      let recovered = try Recovery.run(
        StoreDirectory(path: path, platform: dead), manifest,
        EngineOptions(configuration).resolved(for: manifest))
      #expect(!recovered.isUnclosed && recovered.end == manifest.end)
      #expect(recovered.tail.count <= 1)
      #expect(recovered.tail.allSatisfy { $0.length == $0.size && $0.length - 64 <= 512 })
      // From here on nothing is written any more.
      let before = dead.operations.count
      #expect(try changes(path, configuration, dead) == content)
      #expect(dead.operations.count == before)
    }
  }

  @Test func `Sealing part of a copy keeps its end durable`() throws {
    let system = SimulatedFileSystem(seed: 8)
    let configuration = Configuration.tiny
    do {
      let store = try ChangeStore(
        path: "/store", configuration, platform: system, scheduler: ManualScheduler())
      // Until the second segment has begun, the first one is not sealed yet.
      for index in 0..<40 where try store.engine.snapshot.tail.count < 2 {
        try store.applyAndWait([change("\(index)", time(index))])
      }
      try store.backUp(to: "/copy")
    }
    let scheduler = ManualScheduler()
    let copy = try ChangeStore(
      path: "/copy", configuration, platform: system, scheduler: scheduler)
    let end = try copy.engine.snapshot.end
    #expect(try copy.engine.manifest.value.end == end)
    scheduler.run()
    let manifest = try copy.engine.manifest.value
    #expect(manifest.segments.count == 1 && manifest.sealedEnd.sequence < end.sequence)
    #expect(manifest.end == end, "what was known durable stays so")
    let dead = system.afterProcessDeath()
    #expect(try changes("/copy", configuration, dead).count == Int(end.sequence & 0xFFFF_FFFF))
  }

  /// What a store has that is opened for writing, read, and closed.
  private func changes(
    _ path: String, _ configuration: Configuration, _ platform: SimulatedFileSystem
  ) throws -> [ChangeRecord] {
    let store = try ChangeStore(
      path: path, configuration, platform: platform, scheduler: ManualScheduler())
    defer { try? store.close() }
    return try store.changes(limit: 1_000).records
  }

  @Test func `Bytes behind the last commit are cut and reported`() async throws {
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      let store = try ChangeStore(at: path)
      try await store.apply([change("a", time(1))])
      let segment = try #require(
        try DirectoryContents(path).files.keys.first { $0.hasSuffix(".segment") })
      let copy = root + "/copy"
      try FileManager.default.copyItem(atPath: path, toPath: copy)
      // What a frame that was cut short by a power loss looks like.
      var bytes = try DirectoryContents.bytes(copy + "/" + segment)
      let end = bytes.lastIndex { $0 != 0 }! + 1
      let start = (end + 7) / 8 * 8
      for offset in 0..<100 { bytes[start + offset] = 0xA5 }
      try Data(bytes).write(to: URL(fileURLWithPath: copy + "/" + segment))
      let events = Locked<[StoreEvent]>([])
      var configuration = Configuration()
      configuration.eventHandler = { event in events.withLock { $0.append(event) } }
      let again = try ChangeStore(at: copy, configuration: configuration)
      #expect(try await again.sweep(pageSize: 5) == [change("a", time(1))])
      guard case .recovered(100, _, 1)? = events.withLock({ $0.first }) else {
        Issue.record("\(events.withLock { $0 })")
        return
      }
      try await again.apply([change("b", time(2))])
      try again.close()
      #expect(try ChangeStore(at: copy).changes(limit: 5).records.map(\.id) == ["a", "b"])
    }
  }

  @Test func `Open files are bounded, and all of them are given back`() async throws {
    let platform = CountingPlatform()
    var configuration = Configuration.tiny
    configuration.cacheBytes = 0
    var store: ChangeStore? = try ChangeStore(
      path: "/store", configuration, platform: platform)
    for index in 0..<400 { try store!.applyAndWait([change("\(index % 150)", time(index))]) }
    #expect(try store!.statistics().sealedSegments > 30)
    var reader: ChangeStore?
    configuration.isReadOnly = true
    for round in 0..<3 {
      reader = try ChangeStore(path: "/store", configuration, platform: platform)
      for subject in [store!, reader!] {
        #expect(try await subject.sweep(pageSize: 7).count == 150)
        for index in 0..<150 {
          #expect(try subject.record(forKey: RecordKey(collection: "c", id: "\(index)")) != nil)
        }
      }
      // Each has four in its table; the writer has its lock beside, and up to two segments and the
      // one that is prepared.
      #expect(platform.open <= 4 + 4 + 4, "round \(round)")
    }
    try reader!.close()
    reader = nil
    try store!.close()
    store = nil
    #expect(platform.open == 0)
  }
}
