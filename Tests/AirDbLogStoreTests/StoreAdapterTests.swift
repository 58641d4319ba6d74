import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// The adapter's contract on the engine, wherever the store lives.
@Suite struct StoreAdapterTests {
  @Test(arguments: StoreHome.allCases)
  func `An empty store has no changes and no latest timestamp`(home: StoreHome) async throws {
    try await home.withStore { test in
      for _ in 0..<2 {
        #expect(try await test.store.getLatestHlc() == nil)
        #expect(try await test.store.getChangesSince(sinceHlcTimestamp: nil, limit: 10).isEmpty)
        #expect(
          try await test.store.getChangesSince(sinceHlcTimestamp: time(1), limit: 10).isEmpty)
        try await test.store.applyChanges([])
        try test.step()
      }
    }
  }

  @Test(arguments: StoreHome.allCases)
  func `Changes come in the order of their clocks, not of their texts`(home: StoreHome) async throws
  {
    try await home.withStore { test in
      // As texts, the counters 10 and 9 are the other way round, and so is the padded number.
      try await test.apply(change("a", time(5, 10)), change("b", time(5, 9)))
      try await test.apply(change("c", "01700000000004-0-n"), change("d", time(5, 9, nil)))
      try await test.apply(change("e", time(5, 10, "m")))
      let page = try await test.store.getChangesSince(sinceHlcTimestamp: nil, limit: 10)
      #expect(page.map(\.id) == ["c", "d", "b", "e", "a"])
    }
  }

  @Test(arguments: StoreHome.allCases)
  func `The cursor is strict, also where no change has its timestamp`(home: StoreHome) async throws
  {
    try await home.withStore { test in
      for index in stride(from: 0, to: 40, by: 2) {
        try await test.apply(change("\(index)", time(index)))
      }
      for cursor in -1...40 {
        let page = try await test.store.getChangesSince(
          sinceHlcTimestamp: time(cursor), limit: .max)
        #expect(
          page.map(\.id) == stride(from: 0, to: 40, by: 2).filter { $0 > cursor }.map(String.init))
      }
      // Another spelling of the same timestamp is the same place.
      let page = try await test.store.getChangesSince(
        sinceHlcTimestamp: "001700000000036_000:n", limit: 10)
      #expect(page.map(\.id) == ["38"])
    }
  }

  @Test(arguments: StoreHome.allCases)
  func `The limit is kept, and any number will do for one`(home: StoreHome) async throws {
    try await home.withStore { test in
      for index in 0..<20 { try await test.apply(change("\(index)", time(index))) }
      for (limit, count) in [
        (0, 0), (-1, 0), (Int.min, 0), (1, 1), (19, 19), (20, 20), (21, 20), (Int.max, 20),
      ] {
        let page = try await test.store.getChangesSince(sinceHlcTimestamp: nil, limit: limit)
        #expect(page.map(\.id) == (0..<count).map(String.init))
        let rest = try await test.store.getChangesSince(
          sinceHlcTimestamp: time(9), limit: limit)
        #expect(rest.map(\.id) == (10..<(10 + min(count, 10))).map(String.init))
      }
      #expect(try await test.store.getChangesSince(sinceHlcTimestamp: time(19), limit: 5).isEmpty)
    }
  }

  @Test(arguments: StoreHome.allCases)
  func `A page does not end inside a run of equal timestamps`(home: StoreHome) async throws {
    try await home.withStore { test in
      // Runs of 1, 5 and 12 in three spellings, spread over commits and segments.
      var run: [ChangeRecord] = [change("first", time(0))]
      for index in 0..<5 { run.append(change("five \(index)", time(1), in: "x")) }
      for index in 0..<12 {
        let spelling = ["\(time(2))", "0\(time(2))", "1700000000002:00_n"][index % 3]
        run.append(change("twelve \(index)", spelling, in: "\(index % 2)"))
      }
      run.append(change("last", time(3)))
      for record in run { try await test.apply(record) }
      // At each limit: the ends of the runs are at 1, 6, 18 and 19.
      for limit in 1...25 {
        let page = try await test.store.getChangesSince(sinceHlcTimestamp: nil, limit: limit)
        let end = [1, 6, 18, 19].first { $0 >= min(limit, 19) }!
        #expect(page == Array(run[..<end]), "limit \(limit)")
        #expect(try await test.store.sweep(pageSize: limit) == run)
      }
    }
  }

  @Test(arguments: StoreHome.allCases)
  func `The last writer wins, in whatever order the changes come`(home: StoreHome) async throws {
    try await home.withStore { test in
      for (index, order) in [
        [1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1],
      ]
      .enumerated() {
        for step in order {
          try await test.apply(change("\(index)", time(step), payload: "\(step)"))
        }
        let record = try test.store.record(forKey: RecordKey(collection: "c", id: "\(index)"))
        #expect(record == change("\(index)", time(3), payload: "3"))
      }
      #expect(try await test.store.sweep(pageSize: 2).count == 6)
    }
  }

  @Test(arguments: StoreHome.allCases)
  func `A key that occurs twice in a batch is as if applied one after the other`(
    home: StoreHome
  ) async throws {
    try await home.withStore { test in
      var result = try await test.apply(
        change("a", time(2), payload: "2"), change("a", time(3), payload: "3"),
        change("a", time(1), payload: "1"), change("b", time(1)), change("a", time(3), payload: "4")
      )
      #expect((result.accepted, result.superseded, result.conflictingTies) == (2, 3, 1))
      #expect(
        try test.store.record(forKey: RecordKey(collection: "c", id: "a"))
          == change("a", time(3), payload: "3"))
      // Stale against the store, then newer, then stale against the batch.
      result = try await test.apply(
        change("a", time(2)), change("a", time(5), payload: "5"), change("a", time(4)))
      #expect((result.accepted, result.superseded, result.conflictingTies) == (1, 2, 0))
      #expect(try await test.store.sweep(pageSize: 10).map(\.hlcTimestamp) == [time(1), time(5)])
    }
  }

  @Test(arguments: StoreHome.allCases)
  func `Applying the same changes again changes nothing and takes no position`(
    home: StoreHome
  ) async throws {
    try await home.withStore { test in
      let batch = (0..<10).map { change("\($0)", time($0), payload: "p\($0)") }
      let first = try await test.store.apply(batch)
      try test.step()
      #expect(first.accepted == 10)
      let position = try test.store.position
      #expect(position != nil && first.position == position)
      for _ in 0..<3 {
        let again = try await test.store.apply(batch)
        #expect((again.accepted, again.superseded, again.conflictingTies) == (0, 10, 0))
        #expect(again.position == nil)
        try test.step()
        #expect(try test.store.position == position)
        #expect(try await test.store.sweep(pageSize: 3) == batch)
      }
    }
  }

  @Test(arguments: StoreHome.allCases)
  func `Equal timestamps with other content are counted as conflicts, and the first stays`(
    home: StoreHome
  ) async throws {
    try await home.withStore { test in
      let first = change("a", time(1), payload: "p", author: Data([1]), signature: Data())
      try await test.apply(first)
      // Fills a tiny segment, so that the stored version is a sealed one.
      for index in 0..<20 { try await test.apply(change("other \(index)", time(100 + index))) }
      var others = [first, first, first, first, first, first]
      others[0].payload = Data("q".utf8)
      others[1].type = .update
      others[2].authorPublicKey = nil
      others[3].signature = nil
      others[4].authorPublicKey = Data([2])
      others[5].hlcTimestamp = "01700000000001:00:n"
      for (index, other) in others.enumerated() {
        let result = try await test.apply(other)
        #expect((result.accepted, result.superseded) == (0, 1))
        // Another spelling of the same timestamp is no other content.
        #expect(result.conflictingTies == (index == 5 ? 0 : 1))
        #expect(try test.store.record(forKey: RecordKey(collection: "c", id: "a")) == first)
      }
    }
  }

  @Test(arguments: StoreHome.allCases)
  func `Deletions are changes, stay in the feed, and can be outdone`(home: StoreHome) async throws {
    try await home.withStore { test in
      try await test.apply(change("a", time(1)), change("b", time(2)))
      let deletion = change("a", time(3), .delete)
      try await test.apply(deletion)
      #expect(try await test.store.sweep(pageSize: 10) == [change("b", time(2)), deletion])
      #expect(try test.store.record(forKey: RecordKey(collection: "c", id: "a")) == deletion)
      // A late change from before the deletion does not bring the record back.
      try await test.apply(change("a", time(2), .update))
      #expect(try test.store.record(forKey: RecordKey(collection: "c", id: "a")) == deletion)
      try await test.apply(change("a", time(4), .insert))
      #expect(try await test.store.sweep(pageSize: 1).map(\.hlcTimestamp) == [time(2), time(4)])
    }
  }

  @Test(arguments: StoreHome.allCases)
  func `The latest timestamp never decreases`(home: StoreHome) async throws {
    try await home.withStore { test in
      var expected = [String]()
      for (stamp, latest) in [
        (5, 5), (3, 5), (7, 7), (6, 7), (7, 7), (1, 7), (9, 9), (8, 9),
      ] {
        try await test.apply(change("k\(stamp % 3)", time(stamp)))
        #expect(try await test.store.getLatestHlc() == time(latest))
        expected.append(time(latest))
      }
      #expect(try test.store.latestTimestamp == expected.last)
      // Its text is the text that came in first of all equal ones.
      try await test.apply(change("other", "0" + time(9)))
      #expect(try test.store.latestTimestamp == time(9))
    }
  }
}
