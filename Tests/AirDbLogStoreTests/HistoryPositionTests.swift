import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// Positions that do not fit the store any more are errors, never wrong answers.
@Suite struct HistoryPositionTests {
  private static func fill(_ store: ChangeStore, _ range: Range<Int>, keys: Int = 5) throws {
    for index in range { try store.applyAndWait([change("\(index % keys)", time(index))]) }
  }

  /// What a fetch and the check of the engine say about a position; they must agree.
  private static func code(
    _ store: ChangeStore, _ position: Position,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> (code: LogStoreError.Code, message: String)? {
    var found: [LogStoreError?] = []
    for limit in [0, 1] {
      do throws(LogStoreError) {
        _ = try store.commits(after: position, limit: limit)
        found.append(nil)
      } catch {
        found.append(error)
      }
    }
    do throws(LogStoreError) {
      try store.engine.validate(position)
      found.append(nil)
    } catch {
      found.append(error)
    }
    for error in found {
      #expect(error?.message == found[0]?.message, sourceLocation: sourceLocation)
    }
    return found[0].map { ($0.code, $0.message) }
  }

  @Test func `A position of another store is refused`() throws {
    let store = try ChangeStore.inMemory()
    let other = try ChangeStore.inMemory()
    try Self.fill(store, 0..<3)
    try Self.fill(other, 0..<3)
    let position = try #require(try other.position)
    let found = try Self.code(store, position)
    #expect(found?.code == .foreignPosition)
    #expect(found?.message.contains(position.storeId) == true)
  }

  @Test func `A position beyond the log is refused, also in an empty one`() throws {
    let store = try ChangeStore.inMemory()
    let id = try store.statistics().storeId
    let any = Position(storeId: id, sequence: 1 << 32 | 1, checksum: 7, horizon: 0)
    #expect(try Self.code(store, any)?.code == .positionBeyondEnd)
    try Self.fill(store, 0..<3)
    let end = try #require(try store.position)
    for sequence in [end.sequence + 1, .max] {
      let beyond = Position(storeId: id, sequence: sequence, checksum: end.checksum, horizon: 0)
      #expect(try Self.code(store, beyond)?.code == .positionBeyondEnd)
    }
  }

  @Test(arguments: [false, true])
  func `A position from before a restore is refused once its commit is another one`(
    compacts: Bool
  ) throws {
    try withTemporaryDirectory { root in
      let path = root + "/store"
      var store = try ChangeStore(at: path, configuration: .tiny)
      try Self.fill(store, 0..<20)
      let shared = try #require(try store.position)
      try store.backUp(to: root + "/backup")
      try store.close()
      store = try ChangeStore(at: path, configuration: .tiny)
      var lost: [Position] = []
      for index in 20..<40 {
        lost.append(try #require(try store.applyAndWait([change("x", time(index))]).position))
      }
      try store.close()

      // Restored, it is at first shorter, and then another one.
      store = try ChangeStore(at: root + "/backup", configuration: .tiny)
      for position in lost {
        #expect(try Self.code(store, position)?.code == .positionBeyondEnd)
      }
      for index in 20..<40 {
        try store.applyAndWait([change("key \(index)", time(index), payload: "another")])
      }
      if compacts { try store.compact() }
      for position in lost {
        let found = try Self.code(store, position)
        #expect(found?.code == .positionDiverged)
      }
      #expect(try Self.code(store, shared) == nil)
      #expect(try store.history(after: shared).count == 20)
      try store.close()
    }
  }

  @Test func `A position whose commit has been cleaned away is taken on trust`() throws {
    let scheduler = ManualScheduler()
    let store = try ChangeStore(
      path: "/store", .tiny, platform: MemoryPlatform(), scheduler: scheduler)
    var positions: [Position] = []
    for index in 0..<40 {
      let result = try store.applyAndWait([change("\(index % 3)", time(index))])
      positions.append(try #require(result.position))
    }
    scheduler.run()
    try store.compact()
    scheduler.run()
    let rest = try store.history()
    #expect(rest.count < 20)
    for position in positions {
      #expect(try Self.code(store, position) == nil)
      #expect(
        try store.history(after: position)
          == rest.filter { $0.position.sequence > position.sequence })
      let isThere = rest.contains { $0.position == position }
      let forged = Position(
        storeId: position.storeId, sequence: position.sequence, checksum: ~position.checksum,
        horizon: 0)
      #expect(try Self.code(store, forged)?.code == (isThere ? .positionDiverged : nil))
    }
  }

  @Test func `A position from before a purge is refused, unless the reading began after it`() throws
  {
    let platform = MemoryPlatform()
    var store = try ChangeStore(path: "/store", .tiny, platform: platform)
    var positions: [Position] = []
    for index in 0..<20 {
      let result = try store.applyAndWait([change("\(index)", time(index))])
      positions.append(try #require(result.position))
    }
    #expect(positions.allSatisfy { $0.horizon == 0 })
    try store.close()
    // As a purge of deletions up to the tenth commit leaves it.
    let horizon = positions[9].sequence
    let directory = StoreDirectory(path: "/store", platform: platform)
    var manifest = try #require(try directory.readManifest())
    manifest.generation += 1
    manifest.retentionHorizon = horizon
    manifest.horizonHlc = manifest.greatestHlc
    try directory.replaceManifest(manifest)

    store = try ChangeStore(path: "/store", .tiny, platform: platform)
    for (index, position) in positions.enumerated() {
      let found = try Self.code(store, position)
      #expect(found?.code == (index < 9 ? .historyPurged : nil))
      if index < 9 {
        // The gap, by name.
        #expect(found?.message.contains("commit \(describe(position.sequence)) ") == true)
        #expect(found?.message.contains("commit \(describe(horizon)) ") == true)
      }
    }
    // Begun now, nothing is missed: neither by pages nor by what is made of their commits.
    var position: Position?
    var count = 0
    while true {
      let page = try store.commits(after: position, limit: 1)
      #expect(page.next?.horizon == horizon)
      #expect(page.commits.allSatisfy { $0.position.horizon == horizon })
      if let first = page.commits.first { #expect(try Self.code(store, first.position) == nil) }
      count += page.commits.count
      position = page.next
      if page.isLast { break }
    }
    #expect(count == 20)
    #expect(try store.position?.horizon == horizon)
    #expect(try store.position(before: .max)?.horizon == horizon)
    let applied = try store.applyAndWait([change("new", time(99))]).position
    #expect(applied?.horizon == horizon)
    // A reading that began before keeps what it knew.
    let older = try store.commits(after: positions[15], limit: 1).next
    #expect(older?.horizon == 0)
    try store.close()
  }
}
