import AirDbLogStore
import TestSupport
import Testing

/// Consumers by their public interface.
struct ConsumerTests {
  @Test(arguments: StoreHome.allCases)
  func `A consumer stays where it has come, whatever happens to the store`(home: StoreHome)
    async throws
  {
    try await home.withStore { subject in
      let first = try await subject.apply(change("a", time(1))).position!
      let second = try await subject.apply(change("b", time(2))).position!
      _ = try subject.store.consumer(named: "reader")
      try subject.step()
      func reader() throws -> Consumer { try subject.store.consumer(named: "reader") }
      #expect(try reader().position() == nil)
      try reader().acknowledge(first)
      try subject.step()
      #expect(try reader().position() == first)
      try reader().acknowledge(second)
      try reader().acknowledge(first)
      try subject.step()
      #expect(try reader().position() == second)
      try reader().reset(to: first)
      try subject.step()
      #expect(try reader().position() == first)
      _ = try subject.store.consumer(named: "reader", retaining: .history(maximumBytes: 77))
      try subject.step()
      let status = try subject.store.consumers()
      #expect(status.map(\.retention) == [.history(maximumBytes: 77)])
      #expect(status.map(\.position) == [first])
      #expect(try subject.store.consumer(named: "end", from: .end).position() == second)
      #expect(
        try subject.store.consumer(named: "at", from: .position(first)).position() == first)
      try subject.step()
      #expect(try subject.store.consumers().map(\.name) == ["at", "end", "reader"])
      try subject.store.consumer(named: "reader", retaining: .history(maximumBytes: 77)).retire()
      try subject.step()
      #expect(try subject.store.consumers().map(\.name) == ["at", "end"])
    }
  }

  @Test func `Names are bytes, within limits`() throws {
    let store = try ChangeStore.inMemory()
    let composed = try store.consumer(named: "\u{E9}")
    let decomposed = try store.consumer(named: "e\u{301}")
    try store.applyAndWait([change("a", time(1))])
    try composed.acknowledge(try #require(try store.position))
    #expect(try decomposed.position() == nil)
    for name in ["", String(repeating: "x", count: 257)] {
      #expect { try store.consumer(named: name) } throws: {
        ($0 as? LogStoreError)?.code == .limitExceeded
      }
    }
    _ = try store.consumer(named: String(repeating: "x", count: 256))
    #expect(try store.consumers().count == 3)
  }

  @Test func `There are at most 1,024 consumers`() throws {
    let files = SimulatedFileSystem()
    let store = try ChangeStore(
      path: "/store", .tiny, platform: files, scheduler: ManualScheduler())
    var table = ConsumerTable()
    table.generation = 1
    table.nextNumber = 1_024
    for number in 1...1_023 {
      table.insert(
        ConsumerTable.Entry(
          number: UInt64(number), name: Array("\(number)".utf8), registeredDate: 0))
    }
    let storeId = try store.engine.manifest.value.storeId
    try files.install(
      FileBytes(ConsumerFile.make(table, storeId: storeId).bytes), at: "/store/CONSUMERS")
    _ = try store.consumer(named: "the last")
    #expect { try store.consumer(named: "one more") } throws: {
      ($0 as? LogStoreError)?.code == .limitExceeded
    }
    _ = try store.consumer(named: "3", retaining: .history())
    #expect(try store.consumers().count == 1_024)
  }

  @Test func `A handle does not act on another consumer that has its name now`() throws {
    let store = try ChangeStore.inMemory()
    let position = try store.applyAndWait([change("a", time(1))]).position!
    let old = try store.consumer(named: "x")
    let copy = try store.consumer(named: "x")
    try old.retire()
    let new = try store.consumer(named: "x")
    for attempt in [
      { try copy.acknowledge(position) }, { try old.retire() }, { _ = try copy.position() },
      { try copy.reset(to: nil) }, { _ = try copy.lag() },
    ] {
      #expect { try attempt() } throws: { ($0 as? LogStoreError)?.code == .consumerNotFound }
    }
    #expect(try new.position() == nil)
    try store.retireAllConsumers()
    let third = try store.consumer(named: "x")
    #expect { try new.acknowledge(position) } throws: {
      ($0 as? LogStoreError)?.code == .consumerNotFound
    }
    try third.acknowledge(position)
  }

  @Test func `A position that does not fit the store is refused and changes nothing`() throws {
    let store = try ChangeStore.inMemory()
    let other = try ChangeStore.inMemory()
    let consumer = try store.consumer(named: "x")
    let first = try store.applyAndWait([change("a", time(1))]).position!
    try other.applyAndWait([change("a", time(1))])
    let foreign = try other.applyAndWait([change("b", time(2))]).position!
    let beyond = Position(
      storeId: first.storeId, sequence: first.sequence + 1, checksum: 1, horizon: 0)
    let diverged = Position(
      storeId: first.storeId, sequence: first.sequence, checksum: ~first.checksum, horizon: 0)
    let cases: [(Position, LogStoreError.Code)] = [
      (foreign, .foreignPosition), (beyond, .positionBeyondEnd), (diverged, .positionDiverged),
    ]
    for (position, code) in cases {
      for attempt in [
        { try consumer.acknowledge(position) }, { try consumer.reset(to: position) },
        { _ = try store.consumer(named: "new", from: .position(position)) },
      ] {
        #expect { try attempt() } throws: { ($0 as? LogStoreError)?.code == code }
      }
    }
    #expect(try consumer.position() == nil)
    #expect(try store.consumers().count == 1)
  }

  @Test func `A position that is not new writes nothing, and progress is one write of one slot`()
    throws
  {
    let files = SimulatedFileSystem()
    let store = try ChangeStore(
      path: "/store", .tiny, platform: files, scheduler: ManualScheduler())
    let consumer = try store.consumer(named: "x", retaining: .history(maximumAge: .seconds(1)))
    var positions: [Position] = []
    for number in 1...5 {
      positions.append(try store.applyAndWait([change("a", time(number))]).position!)
    }
    try consumer.acknowledge(positions[0])
    try consumer.acknowledge(positions[1])
    let used = files.usedBytes
    let before = files.operations.count
    try consumer.acknowledge(positions[1])
    try consumer.acknowledge(positions[0])
    _ = try store.consumer(named: "x", retaining: .history(maximumAge: .seconds(1)))
    #expect(files.operations.count == before)
    try consumer.acknowledge(positions[2])
    #expect(files.operations[before...].map(\.kind) == [.write, .synchronize])
    #expect(files.operations[before...].allSatisfy { $0.path == "/store/CONSUMERS" })
    // Back and forth, so that there is progress for any number of times.
    let times = isLongRun ? 1_000_000 : 500
    let entry = try #require(try store.engine.consumers.consumers.first)
    for number in 1...times {
      try store.engine.consumers.advance(
        entry,
        to: ConsumerTable.Place(
          sequence: positions[4].sequence + UInt64(number), checksum: UInt32(number)))
    }
    #expect(files.usedBytes == used)
    #expect(files.content(of: "/store/CONSUMERS")?.size == 3 * 4_096)
  }

  @Test func `Opens and closes leave the consumers alone`() throws {
    let files = SimulatedFileSystem()
    func open() throws -> ChangeStore {
      try ChangeStore(path: "/store", .tiny, platform: files, scheduler: ManualScheduler())
    }
    var store = try open()
    let position = try store.applyAndWait([change("a", time(1))]).position!
    try store.consumer(named: "x").acknowledge(position)
    try store.close()
    let before = files.operations.count
    for _ in 0..<5 {
      store = try open()
      #expect(try store.consumers().map(\.position) == [position])
      try store.close()
    }
    #expect(files.operations.count == before)
  }

  @Test func `A read-only store shows the consumers and changes none`() throws {
    let files = SimulatedFileSystem()
    func open(isReadOnly: Bool) throws -> ChangeStore {
      var configuration = Configuration.tiny
      configuration.isReadOnly = isReadOnly
      return try ChangeStore(
        path: "/store", configuration, platform: files, scheduler: ManualScheduler())
    }
    let writer = try open(isReadOnly: false)
    let position = try writer.applyAndWait([change("a", time(1))]).position!
    let consumer = try writer.consumer(named: "x")
    let reader = try open(isReadOnly: true)
    let seen = try reader.consumer(named: "x")
    #expect(try seen.position() == nil)
    #expect(try seen.lag().commits == 1)
    try consumer.acknowledge(position)
    try reader.refresh()
    #expect(try seen.position() == position)
    #expect(try reader.retentionReport().consumers.count == 1)
    let before = files.operations.count
    for attempt in [
      { try seen.acknowledge(position) }, { try seen.reset(to: nil) }, { try seen.retire() },
      { _ = try reader.consumer(named: "new") }, { try reader.retireAllConsumers() },
      { _ = try reader.consumer(named: "x", retaining: .history()) },
    ] {
      #expect { try attempt() } throws: { ($0 as? LogStoreError)?.code == .readOnly }
    }
    #expect(files.operations.count == before)
  }

  @Test func `Suspended, resumed and reopened, a store reads its consumers anew`() throws {
    let files = SimulatedFileSystem()
    func open() throws -> ChangeStore {
      try ChangeStore(path: "/store", .tiny, platform: files, scheduler: ManualScheduler())
    }
    let store = try open()
    let position = try store.applyAndWait([change("a", time(1))]).position!
    let consumer = try store.consumer(named: "x")
    try store.suspend()
    for attempt in [{ try consumer.acknowledge(position) }, { _ = try store.consumers() }] {
      #expect { try attempt() } throws: { ($0 as? LogStoreError)?.code == .suspended }
    }
    let other = try open()
    try other.consumer(named: "x").acknowledge(position)
    try other.close()
    try store.resume()
    #expect(try consumer.position() == position)
    try store.reopen()
    try consumer.reset(to: nil)
    #expect(try consumer.position() == nil)
    try store.close()
    #expect { try consumer.acknowledge(position) } throws: {
      ($0 as? LogStoreError)?.code == .closed
    }
  }

  @Test func `A copy has the consumers as they were, and destroying removes them`() throws {
    try withTemporaryDirectory { root in
      let store = try ChangeStore(at: root + "/store")
      let first = try store.applyAndWait([change("a", time(1))]).position!
      let consumer = try store.consumer(named: "x", retaining: .history())
      try consumer.acknowledge(first)
      try store.backUp(to: root + "/copy")
      try consumer.acknowledge(store.applyAndWait([change("b", time(2))]).position!)
      try store.close()
      let copy = try ChangeStore(at: root + "/copy")
      #expect(try copy.consumers().map(\.position) == [first])
      #expect(try copy.consumers().map(\.lag.commits) == [0])
      #expect(try copy.verify().isClean)
      try copy.close()
      try ChangeStore.destroy(at: root + "/copy")
      #expect(throws: (any Error).self) { try SystemPlatform().list(root + "/copy") }
    }
  }

  @Test func `Without a manifest a consumer file is not taken for nothing`() throws {
    let files = SimulatedFileSystem()
    try files.createDirectory("/store")
    try files.install(FileBytes([1, 2, 3]), at: "/store/CONSUMERS")
    #expect {
      try ChangeStore(path: "/store", .tiny, platform: files, scheduler: ManualScheduler())
    } throws: { ($0 as? LogStoreError)?.code == .corrupt }
    #expect(files.names(in: "/store") == ["CONSUMERS"])
  }

  @Test func `A damaged consumer file stops what depends on it, and nothing else`() throws {
    let files = SimulatedFileSystem()
    func open(_ files: SimulatedFileSystem) throws -> ChangeStore {
      try ChangeStore(path: "/store", .tiny, platform: files, scheduler: ManualScheduler())
    }
    let sound = try open(files)
    for number in 1...20 { try sound.applyAndWait([change("\(number % 3)", time(number))]) }
    try sound.consumer(named: "x", retaining: .history()).acknowledge(sound.position!)
    try sound.close()
    let damaged = files.copy()
    for slot in 1...2 {
      damaged.damage("/store/CONSUMERS", .flipBit(byte: UInt64(slot * 4_096 + 80), bit: 1))
    }
    let store = try open(damaged)
    for attempt in [
      { _ = try store.consumers() }, { _ = try store.consumer(named: "x") },
      { _ = try store.consumer(named: "y") }, { _ = try store.retentionReport() },
      { _ = try store.compact() },
    ] {
      #expect { try attempt() } throws: {
        let error = $0 as? LogStoreError
        return error?.code == .corrupt && error?.file == "/store/CONSUMERS"
      }
    }
    try store.applyAndWait([change("new", time(100))])
    #expect(try store.changes(limit: 10).records.count == 4)
    let problems = try store.verify().problems
    #expect(problems.map(\.file) == ["/store/CONSUMERS"])
    #expect(problems.allSatisfy { !$0.isDerived })
    try store.backUp(to: "/copy")
    #expect(
      damaged.content(of: "/copy/CONSUMERS")?.bytes
        == damaged.content(of: "/store/CONSUMERS")?.bytes)
    try store.retireAllConsumers()
    #expect(try store.consumers().isEmpty)
    _ = try store.consumer(named: "y")
    #expect(try store.compact().recordsDropped > 0)
    #expect(try store.verify().isClean)
    try store.close()
    #expect(try open(damaged.image(.none)).consumers().map(\.name) == ["y"])
  }

  @Test func `One damaged slot costs no consumer`() throws {
    let files = SimulatedFileSystem()
    func open(_ files: SimulatedFileSystem) throws -> ChangeStore {
      try ChangeStore(path: "/store", .tiny, platform: files, scheduler: ManualScheduler())
    }
    let sound = try open(files)
    let consumer = try sound.consumer(named: "x")
    var positions: [Position?] = [nil]
    for number in 1...3 {
      positions.append(try sound.applyAndWait([change("\(number)", time(number))]).position)
      try consumer.acknowledge(positions[number]!)
    }
    _ = try sound.consumer(named: "y", from: .end)
    try sound.close()
    for slot in 1...2 {
      let store = try open(
        files.damaged("/store/CONSUMERS", .flipBit(byte: UInt64(slot * 4_096 + 70), bit: 0)))
      let found = try store.consumers().map { $0.position }
      #expect(found == [positions[3], positions[3]])
    }
  }

  @Test func `The lag counts commits over sessions, and bytes`() throws {
    let files = SimulatedFileSystem()
    var store: ChangeStore?
    var positions: [Position] = []
    for session in 0..<6 {
      store = try ChangeStore(
        path: "/store", .tiny, platform: files, scheduler: ImmediateScheduler())
      for number in 0...session {
        let id = session * 10 + number
        positions.append(
          try store!.applyAndWait([change("\(id)", time(id), payload: "\(id)")]).position!)
      }
      if session < 5 { try store?.close() }
    }
    let open = try #require(store)
    var last: UInt64 = .max
    for (index, position) in positions.enumerated() {
      let consumer = try open.consumer(named: "\(index)", from: .position(position))
      let lag = try consumer.lag()
      #expect(lag.commits == UInt64(positions.count - 1 - index))
      #expect(lag.bytes < last)
      last = lag.bytes
    }
    #expect(last == 0)
    let lag = try open.consumer(named: "beginning").lag()
    #expect(lag.commits == UInt64(positions.count))
    let log = try open.retentionReport().logBytes
    #expect(lag.bytes < log && lag.bytes > log / 2)
  }
}
