import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// The native pages, and reading a collection.
@Suite struct StorePageTests {
  @Test(arguments: StoreHome.allCases)
  func `A native page may end inside a run of equal timestamps and goes on there`(
    home: StoreHome
  ) async throws {
    try await home.withStore { test in
      var records: [ChangeRecord] = []
      for index in 0..<30 {
        records.append(change("\(index)", time(index / 10), payload: "\(index)"))
      }
      // Three commits of five, then single ones.
      for start in [0, 5, 10] { try await test.store.apply(Array(records[start..<(start + 5)])) }
      try test.step()
      for record in records[15...] { try await test.apply(record) }
      for limit in 1...31 {
        #expect(try test.store.nativeSweep(pageSize: limit) == records, "limit \(limit)")
      }
      for limit in 1...3 {
        let page = try test.store.changes(limit: limit)
        #expect(page.records == Array(records[..<limit]))
        #expect(!page.isLast)
      }
    }
  }

  @Test(arguments: StoreHome.allCases)
  func `A native cursor holds its place while the store is changed`(home: StoreHome) async throws {
    try await home.withStore { test in
      for index in 0..<10 { try await test.apply(change("\(index)", time(1), payload: "\(index)")) }
      let first = try test.store.changes(limit: 4)
      #expect(first.records.map(\.id) == ["0", "1", "2", "3"])
      // The record at the cursor goes, one behind it goes, one is added to the run.
      try await test.apply(change("3", time(9)))
      try await test.apply(change("6", time(9)))
      try await test.apply(change("new", time(1)))
      let cursor = try #require(first.next)
      let coded = try JSONDecoder().decode(
        ChangeCursor.self, from: try JSONEncoder().encode(cursor))
      #expect(coded == cursor)
      let rest = try test.store.changes(after: coded, limit: 100)
      #expect(rest.records.map(\.id) == ["4", "5", "7", "8", "9", "new", "3", "6"])
      #expect(rest.isLast)
      let end = try #require(rest.next)
      #expect(try test.store.changes(after: end, limit: 100).records.isEmpty)
      #expect(try test.store.changes(after: end, limit: 100).next == end)
      try await test.apply(change("later", time(10)))
      #expect(try test.store.changes(after: end, limit: 100).records.map(\.id) == ["later"])
    }
  }

  @Test(arguments: StoreHome.allCases)
  func `A native page is limited by bytes, and has at least one record`(
    home: StoreHome
  ) async throws {
    try await home.withStore { test in
      let payload = String(repeating: "p", count: 1_000)
      let records = (0..<20).map { change("\($0)", time($0), payload: payload) }
      for record in records { try await test.apply(record) }
      for limit in [Int.min, -1, 0, 1, 1_000] {
        #expect(try test.store.changes(limit: 100, byteLimit: limit).records.count == 1)
      }
      let page = try test.store.changes(limit: 100, byteLimit: 5_000)
      #expect((4...5).contains(page.records.count))
      #expect(try test.store.nativeSweep(pageSize: 100, byteLimit: 5_000) == records)
      for limit in [Int.min, -1, 0] {
        let none = try test.store.changes(after: page.next, limit: limit)
        #expect(none.records.isEmpty && none.next == page.next && !none.isLast)
      }
      #expect(try test.store.changes(limit: .max, byteLimit: .max).records == records)
    }
  }

  @Test func `An empty store has one empty native page`() async throws {
    let store = try ChangeStore.inMemory()
    let page = try store.changes(limit: 10)
    #expect(page.records.isEmpty && page.next == nil && page.isLast)
  }

  @Test(arguments: StoreHome.allCases)
  func `A collection is read in the order of its ids' bytes`(home: StoreHome) async throws {
    try await home.withStore { test in
      let ids = ["", "a", "a/1", "a/10", "a/2", "b", "e\u{301}", "z", "\u{E9}"]
      for (index, id) in ids.enumerated() {
        try await test.apply(change(id, time(100 - index), in: "x", payload: "old"))
        try await test.apply(change(id, time(200 - index), in: "y"))
        try await test.apply(change(id, time(300 - index), in: "x", payload: "new"))
      }
      let store = test.store
      let all = try store.records(in: "x")
      #expect(all.map { Array($0.id.utf8) } == ids.map { Array($0.utf8) })
      #expect(all.allSatisfy { $0.payload == Data("new".utf8) && $0.collection == "x" })
      #expect(try store.records(in: "none").isEmpty)
      #expect(try store.records(in: "x", idPrefix: "a/").map(\.id) == ["a/1", "a/10", "a/2"])
      #expect(
        try store.records(in: "x", idPrefix: "a/", after: "a/1", limit: 1).map(\.id) == ["a/10"])
      // The precomposed letter is no prefix of the decomposed one, whatever `String` says.
      #expect(try store.records(in: "x", idPrefix: "\u{E9}").count == 1)
      #expect(try store.records(in: "x", idPrefix: "e").count == 1)
      for limit in [Int.min, -1, 0] { #expect(try store.records(in: "x", limit: limit).isEmpty) }
      for limit in 1...12 {
        var pages: [ChangeRecord] = []
        var after: String?
        while true {
          let page = try store.records(in: "x", after: after, limit: limit)
          guard let last = page.last else { break }
          #expect(page.count <= limit)
          pages += page
          after = last.id
        }
        #expect(pages == all)
      }
    }
  }

  @Test func `A small limit on a large collection finds the least ids`() async throws {
    let store = try ChangeStore.inMemory()
    var random = SeededGenerator(seed: 5)
    let ids = (0..<2_000).map { String(10_000 + $0) }
    let shuffled = ids.shuffled(using: &random)
    for start in stride(from: 0, to: 2_000, by: 100) {
      try await store.apply(shuffled[start..<(start + 100)].map { change($0, time(start)) })
    }
    for limit in [1, 2, 10, 999, 1_000, 1_999, 2_000, 2_001, .max / 2, .max] {
      #expect(try store.records(in: "c", limit: limit).map(\.id) == Array(ids.prefix(limit)))
    }
    #expect(
      try store.records(in: "c", after: "11995", limit: 3).map(\.id) == ["11996", "11997", "11998"])
  }
}
