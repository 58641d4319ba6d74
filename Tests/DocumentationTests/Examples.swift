// The examples of the documentation, compiled and run. `ExampleTests` holds them against the
// documents: what stands between "example" and "end" is there word for word.

// example: README
import AirDbLogStore
import Foundation
// end
import TestSupport
import Testing

#if !canImport(Darwin)
  extension ProcessInfo {
    /// Stands in for Apple's, which asks the system for time.
    func performExpiringActivity(
      withReason reason: String, using block: @escaping @Sendable (Bool) -> Void
    ) {
      block(false)
    }
  }
#endif

struct Examples {
  private let changes = [
    ChangeRecord(
      id: "1", collection: "notes", type: .insert, payload: Data(),
      hlcTimestamp: "1700000000000-0000-a")
  ]

  @Test func readme() async throws {
    try await withTemporaryDirectory { path in
      let directory = URL(fileURLWithPath: path).appendingPathComponent("store")
      // example: README
      let store = try ChangeStore(at: directory)

      // A batch is applied as a whole, or not at all.
      try await store.apply([
        ChangeRecord(
          id: "1", collection: "notes", type: .insert, payload: Data("Buy milk".utf8),
          hlcTimestamp: "1700000000000-0000-a81bc81b")
      ])

      // A record, and what has changed since a timestamp: all that AirDB asks of its adapter.
      let note = try store.record(forKey: RecordKey(collection: "notes", id: "1"))
      let changes = try await store.getChangesSince(sinceHlcTimestamp: nil, limit: 100)

      try store.close()
      // end
      #expect(note?.payload == Data("Buy milk".utf8))
      #expect(changes.map(\.id) == ["1"])
    }
  }

  @Test func changeStore() async throws {
    try await withTemporaryDirectory { path in
      let directory = path + "/store"
      // example: ChangeStore
      let store = try ChangeStore(at: directory)
      try await store.apply([
        ChangeRecord(
          id: "1", collection: "notes", type: .insert, payload: Data("Hello".utf8),
          hlcTimestamp: "1700000000000-0000-a")
      ])
      let note = try store.record(forKey: RecordKey(collection: "notes", id: "1"))
      try store.close()
      // end
      #expect(note?.payload == Data("Hello".utf8))
    }
  }

  @Test func gettingStarted() async throws {
    try await withTemporaryDirectory { directory in
      let path = directory + "/store"
      // example: Open
      let store = try ChangeStore(at: path)
      // end
      // example: Write
      let written = try await store.apply([
        ChangeRecord(
          id: "groceries", collection: "notes", type: .insert, payload: Data("Milk".utf8),
          hlcTimestamp: "1700000000000-0000-phone"),
        ChangeRecord(
          id: "letters", collection: "notes", type: .insert, payload: Data("Post office".utf8),
          hlcTimestamp: "1700000000000-0001-phone"),
      ])
      assert(written.accepted == 2)

      let late = try await store.apply([
        ChangeRecord(
          id: "groceries", collection: "notes", type: .update, payload: Data("Bread".utf8),
          hlcTimestamp: "1699999999999-0000-tablet")
      ])
      assert(late.accepted == 0 && late.superseded == 1)
      // end
      // example: Read
      let key = RecordKey(collection: "notes", id: "groceries")
      let note = try store.record(forKey: key)
      if let note, !store.isDeletion(note.type) {
        assert(String(decoding: note.payload, as: UTF8.self) == "Milk")
      }

      let letters = try store.records(in: "notes", idPrefix: "let")
      assert(letters.map(\.id) == ["letters"])
      // end
      // example: Follow
      var cursor: ChangeCursor?
      while true {
        let page = try store.changes(after: cursor, limit: 500)
        for record in page.records {
          print(record.collection, record.id, record.hlcTimestamp)
        }
        cursor = page.next
        if page.isLast { break }
      }
      // end
      let peer = try ChangeStore.inMemory()
      // example: Sync
      var timestamp: String?
      while true {
        let changes = try await store.getChangesSince(sinceHlcTimestamp: timestamp, limit: 500)
        guard let last = changes.last else { break }
        try await peer.applyChanges(changes)
        timestamp = last.hlcTimestamp
      }
      // end
      #expect(try peer.changes(limit: 10).records == store.changes(limit: 10).records)
      #expect(cursor?.timestamp == "1700000000000-0001-phone")
      // example: Close
      try store.close()
      // end
    }
  }

  @Test func history() async throws {
    let store = try ChangeStore.inMemory()
    try await store.apply(changes, author: "extension")
    // example: History
    var filter = CommitFilter()
    filter.excludedAuthors = ["main app"]
    filter.collections = ["notes"]

    var position: Position?
    while true {
      let page = try store.commits(after: position, matching: filter, limit: 100)
      for commit in page.commits {
        for change in commit.changes where !store.isDeletion(change.type) {
          print(commit.author, try change.record().payload.count)
        }
      }
      position = page.next
      if page.isLast { break }
    }
    // end
    #expect(try position == store.position)
  }

  @Test func positions() async throws {
    let store = try ChangeStore.inMemory()
    try await store.apply(changes)
    let observer = Task {
      var seen: Position?
      // example: Positions
      for await _ in store.positions {
        while true {
          let page = try store.commits(after: seen, limit: 100)
          for commit in page.commits {
            print(commit.author, commit.changes.map(\.key.id))
          }
          seen = page.next
          if page.isLast { break }
        }
      }
      // end
      return seen
    }
    // It has caught up, and waits for more.
    while store.signal.waiterCount == 0 { await Task.yield() }
    let end = try store.position
    try store.close()
    #expect(try await observer.value == end)
  }

  @Test func consumers() async throws {
    let store = try ChangeStore.inMemory()
    let position = try #require(try await store.apply(changes).position)
    // example: Consumer
    let search = try store.consumer(named: "search index")
    try search.acknowledge(position)
    // end
    #expect(try search.position() == position)
  }

  @Test func durability() async throws {
    try await withTemporaryDirectory { directory in
      let path = directory + "/store"
      // example: Flush
      var configuration = Configuration()
      configuration.durability = .processCrash
      let store = try ChangeStore(at: path, configuration: configuration)
      try await store.apply(changes)
      try store.flush(to: .powerLoss)
      // end
      // example: Unknown outcome
      do {
        try await store.apply(changes)
      } catch let error as LogStoreError where error.code == .outcomeUnknown {
        try store.reopen()
        try await store.apply(changes)
      }
      // end
      #expect(try store.changes(limit: 10).records == changes)
      try store.close()
    }
  }

  @Test func recovery() async throws {
    try await withTemporaryDirectory { directory in
      let path = directory + "/store"
      // example: Events
      var configuration = Configuration()
      configuration.eventHandler = { event in
        print("store: \(event)")
      }
      let store = try ChangeStore(at: path, configuration: configuration)
      // end
      try await store.apply(changes)
      // example: Verify
      let report = try store.verify()
      for problem in report.problems {
        print(problem.file, problem.offset ?? 0, problem.reason)
      }
      // end
      #expect(report.isClean)
      // example: Copy
      try store.backUp(to: path + ".backup")
      // end
      try store.close()
      let copy = try ChangeStore(at: path + ".backup")
      #expect(try copy.changes(limit: 10).records == changes)
      try copy.close()
    }
  }

  @Test func suspension() async throws {
    let store = try ChangeStore.inMemory()
    // example: Suspend
    ProcessInfo.processInfo.performExpiringActivity(withReason: "Suspend the store") { isExpiring in
      if !isExpiring { try? store.suspend() }
    }
    // end
    #if !canImport(Darwin)
      #expect(throws: LogStoreError.self) { try store.changes(limit: 1) }
    #endif
    // example: Resume
    try store.resume()
    // end
    #expect(try store.changes(limit: 1).records == [])
  }
}
