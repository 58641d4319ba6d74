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
        { try $0.resume() }, { _ = try $0.effectiveDurability },
      ]
      for call in calls {
        #expect(await storeError { try await call(store) }?.code == .closed)
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

  @Test func `A segment that is sealed right after opening brings nothing back`() async throws {
    let platform = MemoryPlatform()
    var configuration = Configuration.tiny
    configuration.replayBytes = 1 << 20
    var model = ReferenceModel()
    var store: ChangeStore?
    store = try ChangeStore(path: "/store", configuration, platform: platform)
    for index in 0..<40 {
      let record = change("\(index % 11)", time(index))
      try store!.applyAndWait([record])
      try model.apply([record])
    }
    try store!.close()
    // The unsealed segment is full for this session, and sealed before the first commit looks up
    // what is there.
    configuration.segmentRecords = 1
    store = try ChangeStore(
      path: "/store", configuration, platform: platform, scheduler: ImmediateScheduler())
    let record = change("3", time(100))
    try store!.applyAndWait([record])
    try model.apply([record])
    try await expectEqual(store!, model)
    store = nil
    store = try ChangeStore(path: "/store", configuration, platform: platform)
    try await expectEqual(store!, model)
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
  try openWhenFree { try ChangeStore(at: path, configuration: configuration) }
}

/// Opens a store that was dropped, as soon as the last thread that served it has let go of it.
func openWhenFree(_ open: () throws -> ChangeStore) throws -> ChangeStore {
  for _ in 0..<10_000 {
    do {
      return try open()
    } catch let error as LogStoreError where error.code == .storeInUse {
      Thread.sleep(forTimeInterval: 0.001)
    }
  }
  return try open()
}
