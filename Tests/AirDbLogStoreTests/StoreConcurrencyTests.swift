import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// Many callers at once, and calls that are given up.
@Suite struct StoreConcurrencyTests {
  @Test(arguments: [Durability.powerLoss, .processCrash])
  func `Concurrent writers and readers lose nothing`(durability: Durability) async throws {
    for home in [StoreHome.memoryInTinySegments, .disk] {
      func configure(_ configuration: inout Configuration) { configuration.durability = durability }
      try await home.withStore(configure) { test in
        let store = test.store
        try await withThrowingTaskGroup(of: Void.self) { group in
          for writer in 0..<8 {
            group.addTask {
              for step in 0..<15 {
                let batch = (0..<3).map {
                  change("\(writer) \(step) \($0)", time(step * 8 + writer), in: "\(writer)")
                }
                let result = try await store.apply(batch)
                #expect(result.accepted == 3)
                // What was acknowledged is visible to whoever acknowledged it.
                let key = RecordKey(collection: "\(writer)", id: batch[2].id)
                #expect(try store.record(forKey: key) == batch[2])
              }
            }
          }
          for _ in 0..<3 {
            group.addTask {
              for _ in 0..<10 {
                let page = try await store.getChangesSince(sinceHlcTimestamp: nil, limit: .max)
                // Every commit that shows, shows whole.
                let counts = Dictionary(grouping: page) { $0.id.dropLast(2) }.values.map(\.count)
                #expect(counts.allSatisfy { $0 == 3 })
              }
            }
          }
          try await group.waitForAll()
        }
        #expect(try await store.sweep(pageSize: 20).count == 8 * 15 * 3)
        #expect(try store.latestTimestamp == time(14 * 8 + 7))
      }
    }
  }

  @Test func `Threads that wait and tasks that do not share one order of commits`() async throws {
    try await withTemporaryDirectory { root in
      let store = try ChangeStore(at: root + "/store", configuration: .tiny)
      let sequences = Locked<[UInt64]>([])
      await withTaskGroup { group in
        group.addTask {
          inThreads(4) { thread in
            for step in 0..<20 {
              do {
                let result = try store.applyAndWait([change("t \(thread) \(step)", time(step))])
                sequences.withLock { $0.append(result.position!.sequence) }
              } catch {
                Issue.record(error)
              }
            }
          }
        }
        for task in 0..<4 {
          group.addTask {
            for step in 0..<20 {
              do {
                let result = try await store.apply([change("a \(task) \(step)", time(step))])
                sequences.withLock { $0.append(result.position!.sequence) }
              } catch {
                Issue.record(error)
              }
            }
          }
        }
      }
      let all = sequences.withLock { $0.sorted() }
      #expect(all.count == 160 && Set(all).count == 160)
      // One session, so without gaps.
      #expect(all.last! - all.first! == 159)
      try store.close()
      let again = try ChangeStore(at: root + "/store", configuration: .tiny)
      #expect(try again.changes(limit: .max).records.count == 160)
    }
  }

  @Test func `A call that reads sees one state, whatever is committed meanwhile`() async throws {
    for home in [StoreHome.memoryInTinySegments, .memory] {
      try await home.withStore { test in
        let store = test.store
        // Two accounts whose sum is always 100; a third record has the number of the transfer.
        @Sendable func transfer(_ round: Int) -> [ChangeRecord] {
          [
            change("x", time(2 * round), payload: "\(50 + round % 50)"),
            change("y", time(2 * round + 1), payload: "\(50 - round % 50)"),
            change("round", time(2 * round), payload: "\(round)"),
          ]
        }
        try await store.apply(transfer(0))
        // Threads: a task that reads in a loop does not let others have its thread.
        let isDone = Locked(false)
        inThreads(4) { thread in
          do {
            if thread == 0 {
              for round in 1...400 { try store.applyAndWait(transfer(round)) }
              isDone.withLock { $0 = true }
              return
            }
            var isLast = false
            while !isLast {
              isLast = isDone.withLock { $0 }
              let records =
                switch thread {
                case 1: try store.engine.adapterPage(after: nil, limit: 9)
                case 2: try store.changes(limit: 9).records
                default: try store.records(in: "c")
                }
              let values = Dictionary(
                uniqueKeysWithValues: records.map {
                  ($0.id, Int(String(decoding: $0.payload, as: UTF8.self))!)
                })
              #expect(values.count == 3 && values["x"]! + values["y"]! == 100)
              #expect(values["x"]! == 50 + values["round"]! % 50)
            }
          } catch {
            isDone.withLock { $0 = true }
            Issue.record(error)
          }
        }
      }
    }
  }

  @Test func `A cancelled task applies nothing, and says so`() async throws {
    let store = try ChangeStore.inMemory()
    let task = Task {
      // Goes on only when it has been cancelled.
      while !Task.isCancelled { await Task.yield() }
      try await store.apply([change("a", time(1))])
    }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try store.latestTimestamp == nil)
  }

  @Test func `A batch whose task is cancelled later is applied or not, and the answer is true`()
    async throws
  {
    let store = try ChangeStore.inMemory()
    var kept: Set<String> = []
    for index in 0..<200 {
      let task = Task { try await store.apply([change("\(index)", time(index))]) }
      if index % 3 > 0 { await Task.yield() }
      task.cancel()
      switch await task.result {
      case .success: kept.insert("\(index)")
      case .failure(let error): #expect(error is CancellationError)
      }
    }
    #expect(try Set(store.changes(limit: .max).records.map(\.id)) == kept)
  }

  @Test func `Closing while others write ends every call, and keeps what was acknowledged`()
    async throws
  {
    for round in 0..<10 {
      try await withTemporaryDirectory { root in
        let path = root + "/store"
        let store = try ChangeStore(at: path, configuration: .tiny)
        let acknowledged = Locked<Set<String>>([])
        try await withThrowingTaskGroup(of: Void.self) { group in
          for writer in 0..<4 {
            group.addTask {
              for step in 0..<1_000 {
                let id = "\(writer) \(step)"
                do {
                  try await store.apply([change(id, time(step))])
                  acknowledged.withLock { _ = $0.insert(id) }
                } catch let error as LogStoreError {
                  #expect(error.code == .closed)
                  return
                }
              }
            }
          }
          while acknowledged.withLock({ $0.count }) < 5 * round { await Task.yield() }
          try store.close()
          try await group.waitForAll()
        }
        let again = try ChangeStore(at: path, configuration: .tiny)
        #expect(
          try Set(again.changes(limit: .max).records.map(\.id)) == acknowledged.withLock { $0 })
      }
    }
  }
}
