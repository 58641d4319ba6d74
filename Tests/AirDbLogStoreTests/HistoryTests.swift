import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// Commits as history shows them: what they say, filters, limits, places to go on from.
@Suite struct HistoryTests {
  private static func ids(_ page: CommitPage) -> [[String]] {
    page.commits.map { $0.changes.map(\.key.id) }
  }

  @Test(arguments: StoreHome.allCases)
  func `A commit shows its author, date and changes, in the order of the log`(
    home: StoreHome
  ) async throws {
    let labelled = { (configuration: inout Configuration) in configuration.authorLabel = "mine" }
    try await home.withStore(labelled) { subject in
      let before = Int64(Date().timeIntervalSince1970 * 1_000) - 1
      let first = try await subject.store.apply([
        change("b", time(2), payload: "B"), change("a", time(1), in: "d", .delete),
        change("b", time(0)),
      ])
      try subject.step()
      let second = try await subject.store.apply([change("a", time(9))], author: "peer")
      try subject.step()
      let third = try await subject.store.apply([change("c", time(5))], author: "")
      try subject.step()
      // Stale: it makes no commit.
      try await subject.store.apply([change("b", time(0))], author: "late")
      let page = try subject.store.commits(limit: 10)
      #expect(page.commits.map(\.author) == ["mine", "peer", ""])
      #expect(Self.ids(page) == [["b", "a"], ["a"], ["c"]])
      #expect(page.commits[0].changes.map(\.key.collection) == ["c", "d"])
      #expect(page.commits[0].changes.map(\.type) == [.insert, .delete])
      #expect(page.commits[0].changes.map(\.hlcTimestamp) == [time(2), time(1)])
      #expect(try page.commits[0].changes[0].record() == change("b", time(2), payload: "B"))
      #expect(page.commits.map(\.position) == [first.position, second.position, third.position])
      #expect(page.isLast)
      #expect(page.next == third.position)
      #expect(try subject.store.position == third.position)
      let dates = page.commits.map(\.milliseconds)
      #expect(dates == dates.sorted() && dates[0] >= before)
    }
  }

  @Test func `An empty store has an empty history, with nothing to go on from`() throws {
    let store = try ChangeStore.inMemory()
    let page = try store.commits(limit: 10)
    #expect(page.commits.isEmpty && page.next == nil && page.isLast)
    #expect(try store.position(before: .max) == nil)
  }

  @Test func `A limit of nothing shows nothing and stays where it is`() throws {
    let store = try ChangeStore.inMemory()
    let first = try store.applyAndWait([change("a", time(1))]).position
    try store.applyAndWait([change("b", time(2))])
    for limit in [0, -1, .min] {
      let page = try store.commits(after: first, limit: limit)
      #expect(page.commits.isEmpty && page.next == first && !page.isLast)
    }
    #expect(try store.commits(limit: 0).next == nil)
  }

  @Test func `Filters compare bytes, not what looks alike`() throws {
    let store = try ChangeStore.inMemory()
    let texts = ["caf\u{E9}", "cafe\u{301}", "", "\u{0}", "a:b"]
    for (index, text) in texts.enumerated() {
      try store.applyAndWait(
        [change("1", time(index), in: text), change("2", time(index), in: "other \(index)")],
        author: text)
    }
    for (index, text) in texts.enumerated() {
      let own = try store.commits(matching: CommitFilter(authors: [text]), limit: 10)
      #expect(own.commits.map { Array($0.author.utf8) } == [Array(text.utf8)])
      #expect(own.commits.first?.changes.count == 2)
      let others = try store.commits(matching: CommitFilter(excludedAuthors: [text]), limit: 10)
      #expect(others.commits.count == texts.count - 1)
      #expect(!others.commits.contains { $0.author.utf8.elementsEqual(text.utf8) })
      let collection = try store.commits(matching: CommitFilter(collections: [text]), limit: 10)
      #expect(Self.ids(collection) == [["1"]])
      #expect(collection.commits.map(\.position) == own.commits.map(\.position), "\(index)")
    }
    #expect(CommitFilter(authors: [texts[0]]) != CommitFilter(authors: [texts[1]]))
    #expect(CommitFilter(authors: [texts[0]]) == CommitFilter(authors: [texts[0]]))
    #expect(try store.commits(matching: CommitFilter(authors: []), limit: 10).commits.isEmpty)
    #expect(try store.commits(matching: CommitFilter(collections: []), limit: 10).commits.isEmpty)
  }

  @Test func `Bytes bound a page, which has one commit at least`() throws {
    let store = try ChangeStore.inMemory()
    for index in 0..<6 {
      try store.applyAndWait([
        change("\(index)", time(index), payload: String(repeating: "x", count: 10_000))
      ])
    }
    #expect(try store.commits(limit: 10, byteLimit: 1).commits.count == 1)
    #expect(try store.commits(limit: 10, byteLimit: -1).commits.count == 1)
    #expect(try store.commits(limit: 10, byteLimit: 25_000).commits.count == 3)
    #expect(try store.commits(limit: 2, byteLimit: 25_000).commits.count == 2)
    #expect(try store.history(byteLimit: 1).count == 6)
  }

  @Test func `A page shows what was visible, and the next one goes on with what came since`() throws
  {
    let store = try ChangeStore.inMemory()
    try store.applyAndWait([change("a", time(1))])
    let first = try store.commits(limit: 10)
    try store.applyAndWait([change("b", time(2))])
    try store.applyAndWait([change("a", time(3))])
    let second = try store.commits(after: first.next, limit: 10)
    #expect(Self.ids(second) == [["b"], ["a"]])
    let third = try store.commits(after: second.next, limit: 10)
    #expect(third.commits.isEmpty && third.isLast && third.next == second.next)
  }

  @Test func `A position is the same after it has been stored`() throws {
    let store = try ChangeStore.inMemory()
    let position = try #require(try store.applyAndWait([change("a", time(1))]).position)
    let copy = try JSONDecoder().decode(Position.self, from: JSONEncoder().encode(position))
    #expect(copy == position)
    #expect(try store.commits(after: copy, limit: 1).isLast)
  }

  @Test func `A position is the same as a word, and other words are none`() throws {
    let store = try ChangeStore.inMemory()
    let position = try #require(try store.applyAndWait([change("a", time(1))]).position)
    let word = "\(position)"
    #expect(word.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
    #expect(Position(word) == position)
    let id = position.storeId
    for numbers in [(0, 0, 0), (UInt64.max, UInt64(UInt32.max), UInt64.max)] {
      let text = [numbers.0, numbers.1, numbers.2].map { String($0, radix: 16) }
      let other = Position("\(id).\(text.joined(separator: "."))")
      #expect(other?.sequence == numbers.0 && other?.horizon == numbers.2)
      #expect(other.map { "\($0)" } == "\(id).\(text.joined(separator: "."))")
    }
    for text in [
      "", "a", "\(id).1.2", "\(id).1.2.3.4", "\(id)..2.3", "\(id).+1.2.3", "\(id).-1.2.3",
      "\(id).1.2.A", "\(id).1.100000000.0", "\(id).10000000000000000.0.0",
      "x\(id.dropFirst()).1.2.3",
      "\(id) .1.2.3", "\(id).1.2.3 ", "\(id.dropFirst()).1.2.3", "\(id).\u{661}.2.3",
    ] {
      #expect(Position(text) == nil, "\(text)")
    }
  }

  // MARK: Dates

  @Test(arguments: [-86_400_000, 315_360_000_000] as [Int64])
  func `Dates never decrease, whatever the clock does, across sessions too`(jump: Int64) throws {
    let platform = ClockedPlatform()
    let start = platform.clock.milliseconds
    var store = try ChangeStore(path: "/store", Configuration.tiny, platform: platform)
    try store.applyAndWait([change("a", time(1))])
    platform.clock.advance(by: jump)
    try store.applyAndWait([change("b", time(2))])
    try store.close()
    store = try ChangeStore(path: "/store", Configuration.tiny, platform: platform)
    try store.applyAndWait([change("c", time(3))])
    platform.clock.milliseconds = start + 5
    try store.applyAndWait([change("d", time(4))])
    try store.close()
    store = try ChangeStore(path: "/store", Configuration.tiny, platform: platform)
    try store.applyAndWait([change("e", time(5))])
    let dates = try store.commits(limit: 10).commits.map { $0.milliseconds - start }
    let far = max(jump, 0)
    #expect(dates == [0, far, far, max(far, 5), max(far, 5)])
    try store.close()
  }

  @Test(arguments: [false, true])
  func `From a date on: every commit of that date or later`(compacts: Bool) throws {
    let platform = ClockedPlatform()
    let scheduler = ManualScheduler()
    let store = try ChangeStore(
      path: "/store", Configuration.tiny, platform: platform, scheduler: scheduler)
    let start = platform.clock.milliseconds
    for index in 0..<60 {
      // Three of each date, and a gap now and then.
      platform.clock.milliseconds = start + Int64(index / 3 * 10 + index / 20 * 100)
      try store.applyAndWait([change("\(index % 40)", time(index))])
      if index % 9 == 0 { scheduler.run() }
    }
    if compacts {
      scheduler.run()
      #expect(try store.compact().segments > 0)
    }
    let all = try store.history()
    #expect(compacts == (all.count < 60))
    for date in (start - 1)...(start + 420) {
      let position = try store.position(before: date)
      #expect(position?.sequence == all.last { $0.date < date }?.position.sequence)
      let shown = try store.history(after: position)
      #expect(shown == all.filter { $0.date >= date })
      // The same by a date, to a part of the millisecond.
      let exact = Date(timeIntervalSince1970: Double(date) / 1_000)
      #expect(try store.position(before: exact) == position)
      #expect(
        try store.position(before: exact.addingTimeInterval(0.000_4))
          == store.position(before: date + 1))
      #expect(
        try store.position(before: exact.addingTimeInterval(-0.000_4)) == position)
    }
    #expect(try store.position(before: .min) == nil)
    #expect(try store.position(before: .max) == store.position)
    for date in [Date.distantFuture, Date(timeIntervalSince1970: .infinity)] {
      #expect(try store.position(before: date) == store.position)
    }
    for date in [Date.distantPast, Date(timeIntervalSince1970: .nan)] {
      #expect(try store.position(before: date) == nil)
    }
    try store.close()
  }

  @Test func `Dates are those of the log, to the millisecond`() throws {
    let platform = ClockedPlatform()
    for milliseconds in [0, 1, 999, 1_700_000_000_123, 1_764_563_999_999, 253_402_300_799_999] {
      platform.clock.milliseconds = Int64(milliseconds)
      let path = "/store\(milliseconds)"
      let store = try ChangeStore(path: path, Configuration.tiny, platform: platform)
      try store.applyAndWait([change("a", time(1))])
      _ = try store.consumer(named: "x")
      let date = Date(timeIntervalSince1970: Double(milliseconds) / 1_000)
      #expect(try store.commits(limit: 1).commits.map(\.date) == [date])
      #expect(try store.statistics().createdDate == date)
      #expect(try store.statistics().lastCommitDate == date)
      #expect(try store.consumers().map(\.registeredDate) == [date])
      #expect(try store.position(before: date) == nil)
      #expect(try store.position(before: date.addingTimeInterval(0.001)) == store.position)
      try store.close()
    }
  }
}

/// The table of a packed frame.
@Suite struct TransactionTableTests {
  @Test func `Labels that look alike stay apart`() throws {
    let labels = ["caf\u{E9}", "cafe\u{301}", "", "\u{0}", "caf\u{E9}"]
    let transactions = labels.enumerated().map { index, label in
      Transaction(
        sequence: UInt64(index + 1), date: Int64(index), checksum: UInt32(index), label: label,
        recordCount: 1)
    }
    var buffer = ByteBuffer()
    TransactionTable.encode(transactions, into: &buffer)
    let decoded = try TransactionTable.decode(buffer.bytes)
    #expect(decoded.map { Array($0.label.utf8) } == labels.map { Array($0.utf8) })
    #expect(decoded.map(\.sequence) == transactions.map(\.sequence))
  }
}
