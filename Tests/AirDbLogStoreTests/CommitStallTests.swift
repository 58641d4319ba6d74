import AirDbLogStore
import Dispatch
import Foundation
import TestSupport
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// What commits must not wait for.
@Suite struct CommitStallTests {
  /// Holds up the first write of an index until somebody lets it go on.
  private final class HeldSeal: Sendable {
    private let begun = DispatchSemaphore(value: 0)
    private let mayEnd = DispatchSemaphore(value: 0)
    private let state = Locked((isHeld: false, isLetGo: false))

    init(on files: SimulatedFileSystem) {
      files.beforeEachCall { [self] call in
        guard call.kind == .write, call.path.hasSuffix(".index.new"),
          !state.withLock({ state in
            defer { state.isHeld = true }
            return state.isHeld
          })
        else { return }
        begun.signal()
        // Would the others wait for this one, it would give up, and the test fail.
        let outcome = mayEnd.wait(timeout: .now() + 20)
        state.withLock { $0.isLetGo = outcome == .success }
      }
    }

    /// Does something while the seal is held up. Answers whether it was done before the seal.
    func during(_ body: () throws -> Void) rethrows -> Bool {
      guard begun.wait(timeout: .now() + 20) == .success else { return false }
      try body()
      mayEnd.signal()
      return true
    }

    var wasLetGo: Bool { state.withLock { $0.isLetGo } }
  }

  /// Another version of the one key, with a payload that does not shrink.
  private static func commit(_ store: ChangeStore, _ round: Int, bytes: Int = 8) throws {
    var random = SeededGenerator(seed: UInt64(round))
    let payload = Data((0..<bytes).map { _ in UInt8.random(in: .min ... .max, using: &random) })
    try store.applyAndWait([
      ChangeRecord(
        id: "key", collection: "c", type: .update, payload: payload, hlcTimestamp: time(round),
        authorPublicKey: nil, signature: nil)
    ])
  }

  @Test func `Commits go on while a compaction on demand has a segment sealed`() throws {
    let files = SimulatedFileSystem()
    var configuration = Configuration()
    configuration.cleaning = .off
    let store = try ChangeStore(path: "/store", configuration, platform: files)
    for round in 0..<3 { try Self.commit(store, round) }
    let seal = HeldSeal(on: files)
    inThreads(2) { thread in
      do {
        if thread == 0 {
          #expect(try store.compact().recordsDropped == 3)
          return
        }
        #expect(try seal.during { for round in 3..<6 { try Self.commit(store, round) } })
      } catch {
        Issue.record(error)
      }
    }
    files.beforeEachCall(nil)
    #expect(seal.wasLetGo)
    #expect(try store.changes(limit: 10).records.map(\.hlcTimestamp) == [time(5)])
    #expect(try store.verify().isClean)
    try store.close()
  }

  @Test func `Commits go on while an idle store has a segment sealed`() throws {
    let files = SimulatedFileSystem()
    var configuration = Configuration()
    configuration.cleaning.idleDelay = .milliseconds(1)
    let sealed = DispatchSemaphore(value: 0)
    configuration.eventHandler = { if case .sealed = $0 { sealed.signal() } }
    let store = try ChangeStore(path: "/store", configuration, platform: files)
    let seal = HeldSeal(on: files)
    // More than half superseded, and large enough to be worth it; no sooner than with the third.
    for round in 0..<3 { try Self.commit(store, round, bytes: 600 << 10) }
    #expect(try seal.during { for round in 3..<6 { try Self.commit(store, round) } })
    #expect(sealed.wait(timeout: .now() + 20) == .success)
    files.beforeEachCall(nil)
    #expect(seal.wasLetGo)
    #expect(try store.changes(limit: 10).records.map(\.hlcTimestamp) == [time(5)])
    try store.close()
  }

  @Test func `A compaction waits for the segment that it has sealed, and tells why that failed`()
    throws
  {
    let files = SimulatedFileSystem()
    var configuration = Configuration()
    configuration.cleaning = .off
    let store = try ChangeStore(path: "/store", configuration, platform: files)
    for round in 0..<3 { try Self.commit(store, round) }
    files.inject(
      FaultPlan(.failing(ENOSPC), kinds: [.write], pathSuffix: ".index.new"))
    let error = #expect(throws: LogStoreError.self) { try store.compact() }
    #expect(error?.code == .noSpace)
    try Self.commit(store, 3)
    files.clearFaults()
    #expect(try store.compact().recordsDropped == 3)
    #expect(try store.verify().isClean)
    try store.close()
  }

  // MARK: The next segment

  private static var smallSegments: Configuration {
    var configuration = Configuration()
    configuration.segmentRecords = 8
    configuration.durability = .processCrash
    configuration.cleaning = .off
    return configuration
  }

  private static func segments(_ files: SimulatedFileSystem) throws -> [String] {
    try files.list("/store").filter { $0.hasSuffix(".segment") }.sorted()
  }

  /// Closes the store, which leaves nothing for an open to remove, and checks what is in it.
  private static func close(
    _ store: ChangeStore, _ files: SimulatedFileSystem, commits: Int
  ) throws {
    try store.close()
    let left = try segments(files)
    let reopened = try ChangeStore(
      path: "/store", smallSegments, platform: files, scheduler: ManualScheduler())
    #expect(try segments(files) == left)
    try expectOnlyUsedFiles(reopened, files)
    let stamps = try reopened.changes(limit: .max).records.map(\.hlcTimestamp)
    #expect(stamps == (0..<commits).map { time($0) })
    #expect(try reopened.verify().isClean)
    try reopened.close()
  }

  @Test func `The commit that finds a segment full only writes, if the next has been prepared`()
    throws
  {
    let files = SimulatedFileSystem()
    let scheduler = ManualScheduler()
    let store = try ChangeStore(
      path: "/store", Self.smallSegments, platform: files, scheduler: scheduler)
    for number in 0..<4 { try store.applyAndWait([change("\(number)", time(number))]) }
    #expect(try Self.segments(files).count == 1)
    scheduler.run()
    #expect(try Self.segments(files).count == 2)
    let kinds = Locked<Set<SimulatedCall.Kind>>([])
    files.beforeEachCall { call in _ = kinds.withLock { $0.insert(call.kind) } }
    for number in 4..<9 { try store.applyAndWait([change("\(number)", time(number))]) }
    files.beforeEachCall(nil)
    #expect(kinds.withLock { $0 } == [.write])
    scheduler.run()
    #expect(try store.engine.snapshot.sealed.count == 1)
    // Another one is there, and not needed any more.
    for number in 9..<13 { try store.applyAndWait([change("\(number)", time(number))]) }
    scheduler.run()
    #expect(try Self.segments(files).count == 3)
    try Self.close(store, files, commits: 13)
  }

  @Test func `A segment that was prepared too late is not used`() throws {
    let files = SimulatedFileSystem()
    let scheduler = ManualScheduler()
    let store = try ChangeStore(
      path: "/store", Self.smallSegments, platform: files, scheduler: scheduler)
    for number in 0..<4 { try store.applyAndWait([change("\(number)", time(number))]) }
    let begun = DispatchSemaphore(value: 0)
    let mayEnd = DispatchSemaphore(value: 0)
    let isHeld = Locked(false)
    files.beforeEachCall { call in
      guard call.kind == .create, call.path.hasSuffix(".segment"),
        !isHeld.withLock({ held in
          defer { held = true }
          return held
        })
      else { return }
      begun.signal()
      mayEnd.wait()
    }
    inThreads(2) { thread in
      if thread == 0 {
        scheduler.run()
        return
      }
      begun.wait()
      do {
        // It has its id by now; this one gets a higher one.
        for number in 4..<9 { try store.applyAndWait([change("\(number)", time(number))]) }
      } catch {
        Issue.record(error)
      }
      mayEnd.signal()
    }
    files.beforeEachCall(nil)
    scheduler.run()
    #expect(try Self.segments(files).count == 3)
    for number in 9..<18 { try store.applyAndWait([change("\(number)", time(number))]) }
    scheduler.run()
    #expect(try store.engine.snapshot.sealed.count == 2)
    try Self.close(store, files, commits: 18)
  }

  /// A store whose next segment has been prepared.
  private static func prepared(
    _ files: SimulatedFileSystem, _ scheduler: ManualScheduler
  ) throws -> ChangeStore {
    let store = try ChangeStore(
      path: "/store", smallSegments, platform: files, scheduler: scheduler)
    for number in 0..<4 { try store.applyAndWait([change("a", time(number))]) }
    scheduler.run()
    #expect(try store.writerIfAny?.preparedId != nil)
    return store
  }

  private static func largeChange(_ id: String, _ time: String, bytes: Int) -> ChangeRecord {
    var random = SeededGenerator(seed: UInt64(bytes))
    return ChangeRecord(
      id: id, collection: "c", type: .insert, payload: Data(random.bytes(bytes)), hlcTimestamp: time
    )
  }

  @Test func `A store that has become quiet gives back the segment that was prepared`() throws {
    let files = SimulatedFileSystem()
    let scheduler = ManualScheduler()
    var configuration = Self.smallSegments
    configuration.cleaning = CleaningPolicy()
    let store = try ChangeStore(
      path: "/store", configuration, platform: files, scheduler: scheduler,
      cleanerScheduler: scheduler)
    for number in 0..<4 { try store.applyAndWait([change("a", time(number))]) }
    let removed = Locked(0)
    files.beforeEachCall { call in
      if call.kind == .remove, call.path.hasSuffix(".segment") { removed.withLock { $0 += 1 } }
    }
    scheduler.run()
    files.beforeEachCall(nil)
    #expect(removed.withLock { $0 } == 1)
    #expect(try store.writerIfAny?.preparedId == nil)
    try expectOnlyUsedFiles(store, files)
    for number in 4..<12 { try store.applyAndWait([change("a", time(number))]) }
    #expect(try store.verify().isClean)
    try store.close()
  }

  @Test func `On a full disk a commit gets the space of the segment that was prepared`() throws {
    let files = SimulatedFileSystem()
    let scheduler = ManualScheduler()
    let store = try Self.prepared(files, scheduler)
    files.capacity = files.usedBytes
    try store.applyAndWait([Self.largeChange("b", time(4), bytes: 200 << 10)])
    #expect(try store.writerIfAny?.preparedId == nil)
    try expectOnlyUsedFiles(store, files)
    // What is needed next cannot be had, and is asked for again when there is room.
    #expect(throws: LogStoreError.self) {
      try store.applyAndWait([Self.largeChange("c", time(5), bytes: 2 << 20)])
    }
    files.capacity = nil
    for number in 6..<12 { try store.applyAndWait([change("a", time(number))]) }
    scheduler.run()
    #expect(try store.verify().isClean)
    try store.close()
  }

  @Test func `A full disk leaves a seal and a compaction what the prepared segment has`()
    throws
  {
    let files = SimulatedFileSystem()
    let scheduler = ManualScheduler()
    let store = try Self.prepared(files, scheduler)
    // So much as the seal gives back itself is missing.
    files.capacity = files.usedBytes - (64 << 10)
    try store.compact()
    #expect(try store.writerIfAny?.preparedId == nil)
    #expect(try store.engine.snapshot.sealed.map(\.segment.info.recordCount) == [1])
    scheduler.run()
    try expectOnlyUsedFiles(store, files)
    #expect(try store.verify().isClean)
    try store.close()
  }
}
