import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// Concurrent updates beside changes of peers, held against the order of the log: each update must build on the
/// very version that it follows there.
@Suite struct UpdateModelTests {
  private static let keys = (0..<3).map { RecordKey(collection: "c", id: "\($0)") }

  @Test(arguments: [StoreHome.memory, .disk, .memoryInTinySegments], 0..<3 as Range<UInt64>)
  func `No update is lost, and none overwrites what it has not seen`(
    home: StoreHome, seed: UInt64
  ) async throws {
    try await home.withStore { subject in
      let store = subject.store
      // Keeps every version.
      _ = try store.consumer(named: "all", retaining: .history())
      let accepted = Locked<Set<String>>([])
      try await withThrowingTaskGroup { group in
        for writer in 0..<4 {
          group.addTask {
            var random = SeededGenerator(seed: seed * 100 + UInt64(writer))
            for number in 0..<25 {
              let key = Self.keys[Int(random.next() % 3)]
              let token = "+\(writer).\(number)"
              switch random.next() % 8 {
              case 0: _ = try await store.update(key) { $0 = nil }
              default:
                try await store.update(key) { payload in
                  payload = (payload ?? Data()) + Data(token.utf8)
                }
              }
            }
          }
        }
        for peer in 0..<2 {
          group.addTask {
            var random = SeededGenerator(seed: seed * 100 + 50 + UInt64(peer))
            for number in 0..<40 {
              let now = Int64(Date().timeIntervalSince1970 * 1_000)
              // Some are stale, some are ahead.
              let stamp = "\(now + Int64(random.next() % 200) - 100)-\(number)-peer\(peer)"
              let name = "p\(peer).\(number)"
              let record = change(
                Self.keys[Int(random.next() % 3)].id, stamp,
                random.next() % 6 == 0 ? .delete : .update, payload: name)
              if try await store.apply([record], author: "peer").accepted == 1 {
                _ = accepted.withLock { $0.insert(stamp) }
              }
            }
          }
        }
        try await group.waitForAll()
      }
      try check(try allCommits(of: store), accepted: accepted.withLock { $0 }, store)
      #expect(try store.verify().isClean)
    }
  }

  private func allCommits(of store: ChangeStore) throws -> [Commit] {
    var commits: [Commit] = []
    var position: Position?
    while true {
      let page = try store.commits(after: position, limit: 100)
      commits += page.commits
      position = page.next
      if page.isLast { return commits }
    }
  }

  private func check(_ commits: [Commit], accepted: Set<String>, _ store: ChangeStore) throws {
    var state: [RecordKey: ChangeRecord] = [:]
    var tokens: Set<String> = []
    var peers: Set<String> = []
    var lastStamp: String?
    for commit in commits {
      let record = try #require(commit.changes.first).record()
      let key = RecordKey(collection: record.collection, id: record.id)
      let before = state[key]
      if let before {
        #expect(HlcComparator.compare(before.hlcTimestamp, record.hlcTimestamp) < 0)
      }
      state[key] = record
      if commit.author == "peer" {
        peers.insert(record.hlcTimestamp)
        continue
      }
      if let lastStamp { #expect(HlcComparator.compare(lastStamp, record.hlcTimestamp) < 0) }
      lastStamp = record.hlcTimestamp
      if record.type == .delete {
        #expect(before != nil && before?.type != .delete)
        continue
      }
      // What it read is what stands before it, and something new was added.
      let seen = before?.type == .delete ? Data() : before?.payload ?? Data()
      #expect(record.payload.starts(with: seen))
      let token = String(decoding: record.payload.dropFirst(seen.count), as: UTF8.self)
      #expect(token.split(separator: "+").count == 1 && token.hasPrefix("+"))
      #expect(tokens.insert(token).inserted, "\(token) was stored twice")
    }
    #expect(peers == accepted)
    #expect(tokens.count > 50)
    for (key, record) in state { #expect(try store.record(forKey: key) == record) }
  }
}
