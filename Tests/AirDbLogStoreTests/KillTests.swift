#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation
  import TestSupport
  import Testing

  /// Writers that are killed at any moment (F6): nothing that was acknowledged is lost, and what is
  /// there is exactly a prefix.
  @Suite(.serialized) struct KillTests {
    private static let isLong = ProcessInfo.processInfo.environment["AIRDB_LONG_TESTS"] != nil
    /// Each seed is a store that is killed ten times.
    private static let seeds: Range<UInt64> = isLong ? 0..<200 : 0..<5

    @Test(arguments: seeds)
    func `A killed writer has lost nothing that it acknowledged`(seed: UInt64) async throws {
      try await withTemporaryDirectory { root in
        var run = KillRun(path: root + "/store", seed: seed, writers: 1 + Int(seed % 3))
        for round in 0..<10 { try await run.kill(round) }
      }
    }

    @Test func `A killed delivery goes on where it was, and leaves nothing out`() throws {
      try withTemporaryDirectory { root in
        let path = root + "/store"
        let store = try ChangeStore(
          at: path, configuration: CrashScript.configuration(.processCrash))
        // From before the first commit, so that nothing of them is cleaned away.
        _ = try store.consumer(named: "killed", retaining: .history())
        let script = CrashScript(seed: 3, writer: 0)
        for number in 1...(Self.isLong ? 2_000 : 150) {
          try store.applyAndWait(script.batch(number))
        }
        let all = try store.commits(limit: .max, byteLimit: .max).commits.map(\.position.sequence)
        try store.close()
        var random = SeededGenerator(seed: 3)
        var received: [UInt64] = []
        var kills = 0
        while true {
          let helper = try HelperProcess(["deliver", path])
          var wanted = Int.random(in: 0...30, using: &random)
          var arrived: [UInt64] = []
          var isDone = false
          while let line = helper.readLine() {
            if let sequence = UInt64(line) { arrived.append(sequence) }
            #expect(!line.hasPrefix("failed"), "\(line)")
            isDone = isDone || line == "end"
            wanted -= 1
            if wanted == 0 { helper.kill() }
          }
          helper.wait()
          // It begins behind what has been dealt with, or before that, and goes on without a gap.
          if let first = arrived.first, let start = all.firstIndex(of: first) {
            #expect(start <= Set(received).count)
            #expect(arrived == Array(all[start..<(start + arrived.count)]))
          }
          received += arrived
          if isDone { break }
          kills += 1
          try #require(kills < 1_000)
        }
        #expect(Set(received) == Set(all))
        #expect(kills > 3)
      }
    }

    @Test func `A store is refused to another process until it is closed or its holder dies`()
      async throws
    {
      try withTemporaryDirectory { root in
        let path = root + "/store"
        func outcome(_ arguments: String...) throws -> String? {
          let helper = try HelperProcess(["open", path] + arguments)
          defer { helper.wait() }
          return helper.readLine()
        }
        let store = try ChangeStore(at: path)
        try store.applyAndWait([change("a", time(1))])
        #expect(try outcome() == "storeInUse")
        #expect(try outcome("readOnly") == "open 1")
        try store.suspend()
        #expect(try outcome() == "open 1")
        try store.resume()
        #expect(try outcome() == "storeInUse")
        try store.close()
        #expect(try outcome() == "open 1")

        let holder = try HelperProcess(["hold", path])
        #expect(holder.readLine() == "open")
        #expect(throws: LogStoreError.self) { try ChangeStore(at: path) }
        holder.endInput()
        #expect(holder.readLine() == "closed")
        #expect(holder.wait() == 0)
        try ChangeStore(at: path).close()

        let victim = try HelperProcess(["hold", path])
        #expect(victim.readLine() == "open")
        victim.kill()
        #expect(victim.wait() == nil)
        let heir = try ChangeStore(at: path)
        #expect(try heir.changes(limit: 10).records.count == 1)
      }
    }

    #if os(Linux)
      @Test func `A forked child can do nothing to the store of its parent`() async throws {
        try await withTemporaryDirectory { root in
          let path = root + "/store"
          let helper = try HelperProcess(["fork", path])
          #expect(
            helper.readLines() == [
              "apply forkedProcess", "flush forkedProcess", "reopen forkedProcess",
              "open storeInUse", "suspend done", "resume storeInUse", "close done",
              "child ended with 0", "verified true",
            ])
          #expect(helper.wait() == 0)
          var model = ReferenceModel()
          let script = CrashScript(seed: 1, writer: 0)
          for number in 1...20 { try model.apply(script.batch(number)) }
          let store = try ChangeStore(at: path)
          #expect(try await store.sweep(pageSize: 100) == model.feed.records)
        }
      }
    #endif
  }

  /// One store and what it must hold, from kill to kill.
  private struct KillRun {
    let path: String
    let seed: UInt64
    let scripts: [CrashScript]
    /// How many batches of each writer the store has.
    private var written: [Int]
    private var model = ReferenceModel()
    private var random: SeededGenerator

    init(path: String, seed: UInt64, writers: Int) {
      self.path = path
      self.seed = seed
      scripts = (0..<writers).map { CrashScript(seed: seed, writer: $0) }
      written = Array(repeating: 0, count: writers)
      random = SeededGenerator(seed: seed)
    }

    mutating func kill(_ round: Int) async throws {
      let comment = Comment(rawValue: "seed \(seed), round \(round)")
      let durability = Bool.random(using: &random) ? "powerLoss" : "processCrash"
      let helper = try start(durability)
      var acknowledged = written
      // Some die before they have opened the store, some while they do, most later.
      let wanted = Int.random(in: 0..<5, using: &random) == 0 ? 0 : Int(random.next() % 60)
      var reader: ChangeStore?
      if wanted > 0, helper.readLine() != nil {
        for count in 0..<wanted {
          guard acknowledge(helper.readLine(), &acknowledged) else {
            Issue.record("the writer ended early: \(comment)")
            break
          }
          if count % 8 == 7 { try read(&reader, atLeast: acknowledged, comment) }
        }
      }
      usleep(UInt32.random(in: 0...(wanted > 0 ? 4_000 : 60_000), using: &random))
      helper.kill()
      while acknowledge(helper.readLine(), &acknowledged) {}
      #expect(helper.wait() == nil, comment)
      try await check(acknowledged, comment)
    }

    private func start(_ durability: String) throws -> HelperProcess {
      try HelperProcess(["write", path, "\(seed)", durability] + written.map { "\($0 + 1)" })
    }

    /// Takes note of a line "writer batch"; false if there is none.
    private func acknowledge(_ line: String?, _ acknowledged: inout [Int]) -> Bool {
      guard let line else { return false }
      let parts = line.split(separator: " ").compactMap { Int($0) }
      if parts.count == 2 {
        acknowledged[parts[0]] = parts[1]
      } else {
        #expect(line == "open", "\(line)")
      }
      return true
    }

    /// Reads beside the writer: whole batches, and all that was acknowledged before.
    private func read(
      _ reader: inout ChangeStore?, atLeast acknowledged: [Int], _ comment: Comment
    ) throws {
      var configuration = CrashScript.configuration(.powerLoss)
      configuration.isReadOnly = true
      do throws(LogStoreError) {
        if let reader {
          try reader.refresh()
        } else {
          reader = try ChangeStore(at: path, configuration: configuration)
        }
      } catch {
        // The writer seals its small segments faster than this could follow.
        guard error.code == .staleReader else { throw error }
        return
      }
      for (writer, script) in scripts.enumerated() {
        let found = try reader!.records(in: script.markerKey(0).collection).map(Self.number)
        #expect(Set(found).count <= 1, comment)
        #expect(found.isEmpty || found.count == CrashScript.markers, comment)
        #expect(found.first ?? 0 >= acknowledged[writer], comment)
      }
    }

    private static func number(_ record: ChangeRecord) -> Int {
      Int(String(decoding: record.payload, as: UTF8.self)) ?? -1
    }

    /// Opens what the writer left.
    private mutating func check(_ acknowledged: [Int], _ comment: Comment) async throws {
      let store = try ChangeStore(at: path, configuration: CrashScript.configuration(.powerLoss))
      for (writer, script) in scripts.enumerated() {
        let number =
          try store.record(forKey: script.markerKey(0)).map(Self.number) ?? 0
        // The one batch that was under way may be there or not.
        #expect((acknowledged[writer]...(acknowledged[writer] + 1)).contains(number), comment)
        for next in written[writer]..<max(number, written[writer]) {
          try model.apply(script.batch(next + 1))
        }
        written[writer] = number
      }
      #expect(try Set(store.changes(limit: .max).records) == Set(model.feed.records), comment)
      if scripts.count == 1 { try await expectEqual(store, model, pageSize: 100, comment) }
      let report = try store.verify()
      #expect(report.isClean, "\(comment): \(report.problems)")
      // What is written now survives the next opening.
      try store.close()
      let again = try ChangeStore(at: path, configuration: CrashScript.configuration(.powerLoss))
      #expect(try again.changes(limit: .max).records.count == model.entries.count, comment)
      try again.close()
    }
  }
#endif
