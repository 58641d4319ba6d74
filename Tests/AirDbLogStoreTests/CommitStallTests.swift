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
}
