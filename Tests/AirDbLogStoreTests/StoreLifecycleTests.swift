import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// Opening, closing, suspending and what comes between.
@Suite struct StoreLifecycleTests {
  @Test func `A closed store says so, and closing again does nothing`() async throws {
    try await withTemporaryDirectory { root in
      let store = try ChangeStore(at: root + "/store")
      try await store.apply([change("a", time(1))])
      try store.close()
      try store.close()
      try store.suspend()
      let calls: [(ChangeStore) async throws -> Void] = [
        { try await $0.apply([change("b", time(2))]) }, { try $0.applyAndWait([]) },
        { _ = try await $0.getChangesSince(sinceHlcTimestamp: nil, limit: 1) },
        { _ = try $0.record(forKey: RecordKey(collection: "c", id: "a")) },
        { _ = try $0.records(in: "c") }, { _ = try $0.changes(limit: 1) },
        { _ = try $0.latestTimestamp }, { _ = try $0.position }, { _ = try $0.validate([]) },
        { try $0.flush(to: .powerLoss) }, { try $0.reopen() }, { try $0.refresh() },
        { _ = try $0.effectiveDurability },
      ]
      for call in calls {
        #expect(await storeError { try await call(store) }?.code == .closed)
      }
    }
  }

  @Test func `A store that is opened and closed a thousand times writes nothing`() async throws {
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      var store: ChangeStore? = try ChangeStore(at: path, configuration: .tiny)
      for index in 0..<40 {
        try await store!.apply([change("\(index % 30)", time(index), payload: "payload")])
      }
      try store!.close()
      let before = try DirectoryContents(path)
      for round in 0..<1_000 {
        store = try ChangeStore(at: path, configuration: .tiny)
        switch round % 4 {
        case 0: try store!.close()
        case 1:
          #expect(try await store!.getLatestHlc() == time(39))
          try store!.flush(to: .powerLoss)
          try store!.close()
        case 2:
          // A batch that is stale writes nothing.
          let result = try store!.applyAndWait(
            [change("3", time(3)), change("39", time(-1))][..<1].map { $0 })
          #expect(result.accepted == 0)
        default:
          try store!.suspend()
          try store!.resume()
        }
        store = nil
        if round < 20 || round % 100 == 99 { #expect(try DirectoryContents(path) == before) }
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
      // Nothing goes on behind a store that has been dropped: its files can be moved.
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
          try await store!.apply([record])
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

  @Test func `A second writer is refused until the first one goes`() async throws {
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      var store: ChangeStore? = try ChangeStore(at: path)
      try await store!.apply([change("a", time(1))])
      let before = try DirectoryContents(path)
      // More than once: a refused open must not free what it did not hold.
      for other in [path, path + "/", root + "/./store", path] {
        let error = await storeError { _ = try ChangeStore(at: other) }
        #expect(error?.code == .storeInUse)
      }
      #expect(try DirectoryContents(path) == before)
      try await store!.apply([change("b", time(2))])
      store = nil
      let next = try openWhenFree(path, Configuration())
      #expect(try await next.sweep(pageSize: 10).map(\.id) == ["a", "b"])
    }
  }

  @Test func `A refused open leaves the registry of open stores as it was`() async throws {
    // A file system on which a second lock of one process succeeds, as on some network file systems.
    let platform = LenientLockPlatform()
    let store = try ChangeStore(path: "/store", Configuration(), platform: platform)
    for _ in 0..<3 {
      let error = await storeError {
        _ = try ChangeStore(path: "/store", Configuration(), platform: platform)
      }
      #expect(error?.code == .storeInUse)
    }
    try store.close()
    try ChangeStore(path: "/store", Configuration(), platform: platform).close()
  }

  @Test func `Suspending gives the lock to others, resuming shows what they wrote`() async throws {
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      let first = try ChangeStore(at: path, configuration: .tiny)
      let second = try { () throws -> ChangeStore in
        try first.suspend()
        let second = try ChangeStore(at: path, configuration: .tiny)
        try second.suspend()
        return second
      }()
      var model = ReferenceModel()
      for round in 0..<8 {
        let (active, idle) = round % 2 == 0 ? (first, second) : (second, first)
        try active.resume()
        try active.resume()
        try await expectEqual(active, model)
        for index in 0..<10 {
          let record = change("\(index)", time(round * 10 + index), payload: "\(round)")
          try await active.apply([record])
          try model.apply([record])
        }
        let code = await storeError { try await idle.apply([change("x", time(0))]) }?.code
        #expect(code == .suspended)
        let reading = await storeError { _ = try idle.changes(limit: 1) }?.code
        #expect(reading == .suspended)
        let resuming = await storeError { try idle.resume() }?.code
        #expect(resuming == .storeInUse)
        try await expectEqual(active, model)
        try active.suspend()
        try active.suspend()
      }
      try first.close()
      #expect(await storeError { _ = try first.latestTimestamp }?.code == .closed)
      try second.resume()
      try await expectEqual(second, model)
    }
  }

  @Test func `Reopening goes on with the same content on the same object`() async throws {
    for home in [StoreHome.disk, .memoryInTinySegments] {
      try await home.withStore { test in
        var model = ReferenceModel()
        for round in 0..<5 {
          for index in 0..<10 {
            let record = change("\(index)", time(round * 10 + index), payload: "\(round)")
            try await test.store.apply([record])
            try model.apply([record])
          }
          try test.store.reopen()
          try await expectEqual(test.store, model)
        }
      }
    }
  }

  @Test func `A failed reopening lets others write, and trying again does not undo that`()
    async throws
  {
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      let blocker = BlockedPlatform()
      let store = try ChangeStore(path: path, Configuration(), platform: blocker)
      try await store.apply([change("a", time(1), payload: "first")])
      blocker.blocks = true
      #expect(await storeError { try store.reopen() }?.code == .tooManyOpenFiles)
      blocker.blocks = false
      // Another handle takes the store over.
      let heir = try ChangeStore(path: path, Configuration(), platform: SystemPlatform())
      try await heir.apply([change("b", time(2), payload: "heir")])
      for _ in 0..<3 {
        #expect(await storeError { try store.reopen() }?.code == .storeInUse)
        let refused = await storeError { try await store.apply([change("c", time(3))]) }
        #expect(refused != nil)
      }
      try store.close()
      try await heir.apply([change("d", time(4), payload: "heir")])
      try heir.close()
      let last = try ChangeStore(at: path)
      #expect(try await last.sweep(pageSize: 5).map(\.id) == ["a", "b", "d"])
    }
  }

  @Test func `Flushing and closing keep what was applied without syncs`() async throws {
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      var configuration = Configuration.tiny
      configuration.durability = .processCrash
      let store = try ChangeStore(at: path, configuration: configuration)
      #expect(try store.effectiveDurability == .processCrash)
      var model = ReferenceModel()
      for index in 0..<50 {
        let record = change("\(index % 20)", time(index))
        #expect(try store.applyAndWait([record]).position == store.position)
        try model.apply([record])
        if index % 10 == 0 { try store.flush(to: .processCrash) }
        if index % 15 == 0 { try store.flush(to: .powerLoss) }
      }
      try store.close()
      let again = try ChangeStore(at: path, configuration: .tiny)
      #expect(try again.effectiveDurability == .powerLoss)
      try await expectEqual(again, model)
    }
  }

  @Test func `A sync in the background does not wait for a seal that is queued behind it`()
    async throws
  {
    var configuration = Configuration.tiny
    configuration.durability = .processCrash
    // The jobs run where a full segment has to wait for them: the sync that the first commit asked
    // for, then the seal.
    let store = try ChangeStore(
      path: "/store", configuration, platform: MemoryPlatform(), scheduler: ManualScheduler())
    for index in 0..<30 { try store.applyAndWait([change("\(index)", time(index))]) }
    #expect(try await store.sweep(pageSize: 100).count == 30)
    try store.close()
  }

  @Test func `The preset for app extensions works like any other`() async throws {
    func configure(_ configuration: inout Configuration) { configuration = .appExtension }
    try await StoreHome.reopened.withStore(configure) { test in
      var generator = RecordGenerator(seed: 3)
      var model = ReferenceModel()
      for _ in 0..<20 {
        let batch = generator.batch(30)
        try await test.store.apply(batch)
        try model.apply(batch)
        try test.step()
      }
      try await expectEqual(test.store, model)
    }
  }
}

/// Opens a store, waiting for a background job of a dropped one that still holds it.
func openWhenFree(_ path: String, _ configuration: Configuration) throws -> ChangeStore {
  for _ in 0..<10_000 {
    do throws(LogStoreError) {
      return try ChangeStore(at: path, configuration: configuration)
    } catch {
      guard error.code == .storeInUse else { throw error }
      Thread.sleep(forTimeInterval: 0.001)
    }
  }
  return try ChangeStore(at: path, configuration: configuration)
}
