#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation
  import TestSupport
  import Testing

  /// Migrations and exchanges whose process is killed at random moments, and begun again.
  struct ExchangeKillTests {
    private static let isLong = ProcessInfo.processInfo.environment["AIRDB_LONG_TESTS"] != nil

    @Test(arguments: 0..<(isLong ? 20 : 2))
    func `A migration that is killed again and again is complete`(seed: UInt64) throws {
      try withTemporaryDirectory { directory in
        let configuration = CrashScript.configuration(.powerLoss)
        let changes = Self.changes
        let source = try ChangeStore(at: directory + "/source", configuration: configuration)
        try source.applyAndWait(changes)
        try source.close()
        var random = SeededGenerator(seed: seed)
        var kills = 0
        var lines: [String] = []
        // More pages each time, so that it comes to an end.
        for attempt in 0... {
          let helper = try HelperProcess(["migrate", directory])
          lines = []
          let wanted = 1 + Int(random.next() % UInt64(12 + attempt * 4))
          while let line = helper.readLine() {
            lines.append(line)
            if lines.count == wanted { break }
          }
          usleep(UInt32.random(in: 0...3_000, using: &random))
          if lines.last != "end" {
            helper.kill()
            lines += helper.readLines()
          }
          if helper.wait() == nil { kills += 1 }
          if lines.last == "end" { break }
          #expect(!lines.contains { $0.hasPrefix("failed") }, "\(lines)")
        }
        #expect(kills >= 2)
        // What was made durable before a checkpoint is there: nothing is left to the comparison.
        let figures = "true \(changes.count) \(changes.count) 0"
        #expect(lines.contains("back " + figures), "\(lines.suffix(4))")
        #expect(lines.contains("into " + figures), "\(lines.suffix(4))")
        for name in ["store", "target"] {
          let store = try ChangeStore(
            at: "\(directory)/\(name)", configuration: configuration)
          #expect(try Set(store.changes(limit: .max).records) == Set(changes))
          #expect(try store.verify().isClean)
          try store.close()
        }
      }
    }

    /// Four hundred records in runs of one to nine equal timestamps.
    private static let changes: [ChangeRecord] = {
      var random = SeededGenerator(seed: 5)
      var (changes, time) = ([ChangeRecord](), 0)
      while changes.count < 400 {
        time += 1
        for _ in 0..<(1 + random.next() % 9) where changes.count < 400 {
          changes.append(
            ChangeRecord(
              id: "id\(changes.count)", collection: "notes",
              type: random.next() % 5 == 0 ? .delete : .insert,
              payload: Data(repeating: UInt8(truncatingIfNeeded: random.next()), count: 50),
              hlcTimestamp: "\(1_700_000_000_000 + time)-0000-n"))
        }
      }
      return changes
    }()

    @Test(
      .enabled(if: ChangeStream.isPresent, "the recorded stream is not there"))
    func `Two stores that are killed amid their exchanges have the same in the end`() throws {
      let all = try ChangeStream.batches()
      let batches = Array(all.prefix(Self.isLong ? all.count : 240))
      try withTemporaryDirectory { directory in
        var random = SeededGenerator(seed: 11)
        var (next, kills, exchanges) = (0, 0, 0)
        let every = Self.isLong ? 200 : 40
        var isDone = false
        while !isDone {
          let helper = try HelperProcess(
            ["synchronize", directory, "\(next)", "\(batches.count)", "\(every)"])
          let lifetime = Int(random.next() % UInt64(every * (kills < 8 ? 1 : 8)))
          var count = 0
          func take(_ line: String) {
            if let number = Int(line) { next = number + 1 }
            if line.hasPrefix("exchanged") {
              #expect(line.hasPrefix("exchanged true"))
              exchanges += 1
            }
            #expect(!line.hasPrefix("failed"), "\(line)")
            isDone = line == "end"
          }
          while count < lifetime, let line = helper.readLine() {
            take(line)
            count += 1
          }
          usleep(UInt32.random(in: 0...2_000, using: &random))
          if !isDone { helper.kill() }
          while let line = helper.readLine() { take(line) }
          if helper.wait() == nil { kills += 1 }
        }
        print(
          "two stores: \(batches.joined().count) changes, \(kills) kills, \(exchanges) exchanges")
        #expect(kills >= 3)
        var model = ReferenceModel()
        for batch in batches { try model.apply(batch) }
        for name in ["one", "other"] {
          let store = try ChangeStore(
            at: "\(directory)/\(name)", configuration: CrashScript.configuration(.powerLoss))
          let found = try store.changes(limit: .max, byteLimit: .max).records
          #expect(Set(found) == Set(model.feed.records))
          #expect(found.count == model.entries.count)
          #expect(try store.verify().isClean)
          try store.close()
        }
      }
    }
  }
#endif
