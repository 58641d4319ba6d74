import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// Writers and readers on many threads: the end must be what the model says, in whatever order the
/// batches came.
@Suite struct ModelThreadsTests {
  @Test(arguments: 0..<6 as Range<UInt64>)
  func `Concurrent batches end as the model does`(seed: UInt64) async throws {
    let threads = 4
    var options = RecordGenerator.Options()
    options.keys = 80
    // The order of arrival decides among equal timestamps, and here nobody knows it: no two
    // timestamps are equal, as each writer is a node of its own with a clock that moves on.
    let batches: [[[ChangeRecord]]] = (0..<threads).map { thread in
      var generator = RecordGenerator(seed: seed * 100 + UInt64(thread), options: options)
      var clock = 0
      return (0..<30).map { _ in
        generator.batch(1 + generator.below(12)).map { record in
          var record = record
          clock += 1
          record.hlcTimestamp = time(clock + generator.below(200) * 1_000, clock, "n\(thread)")
          return record
        }
      }
    }
    var model = ReferenceModel()
    for batch in batches.joined() { try model.apply(batch) }

    for home in [StoreHome.memoryInTinySegments, .disk] {
      try await home.withStore { configuration in
        configuration.segmentRecords = 50
      } _: { test in
        let store = test.store
        let isDone = Locked(0)
        inThreads(threads + 2) { thread in
          do {
            if thread < threads {
              for batch in batches[thread] { try store.applyAndWait(batch) }
              isDone.withLock { $0 += 1 }
            } else {
              try readUntil({ isDone.withLock { $0 } == threads }, store, thread)
            }
          } catch {
            Issue.record(error, "seed \(seed)")
          }
        }
        try await expectEqual(store, model, Comment(rawValue: "seed \(seed)"))
        try store.reopen()
        try await expectEqual(store, model, Comment(rawValue: "seed \(seed), reopened"))
      }
    }
  }

  /// Reads in every way and checks what holds at any time.
  private func readUntil(
    _ isDone: () -> Bool, _ store: ChangeStore, _ thread: Int
  ) throws {
    var isLast = false
    while !isLast {
      isLast = isDone()
      var cursor: ChangeCursor?
      repeat {
        let page = try store.changes(after: cursor, limit: 1 + thread * 10)
        for (a, b) in zip(page.records, page.records.dropFirst()) {
          #expect(HlcComparator.compare(a.hlcTimestamp, b.hlcTimestamp) <= 0)
        }
        let keys = Set(page.records.map { RecordKey(collection: $0.collection, id: $0.id) })
        #expect(keys.count == page.records.count, "one page shows each record once")
        cursor = page.isLast ? nil : page.next
      } while cursor != nil
      if let latest = try store.latestTimestamp {
        let beyond = try store.engine.adapterPage(after: latest, limit: 5)
        let now = try store.latestTimestamp!
        // What is behind what was the latest has come since.
        #expect(beyond.isEmpty || HlcComparator.compare(now, latest) > 0)
      }
    }
  }
}
