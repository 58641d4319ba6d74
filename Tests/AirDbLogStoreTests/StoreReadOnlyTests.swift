import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// A read-only store writes nothing, and follows a writer.
@Suite struct StoreReadOnlyTests {
  private static var readOnly: Configuration {
    var configuration = Configuration.tiny
    configuration.isReadOnly = true
    return configuration
  }

  @Test(arguments: ["closed", "open", "abandoned"])
  func `Reading writes zero bytes, whatever state the writer left`(state: String) async throws {
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      var model = ReferenceModel()
      var generator = RecordGenerator(seed: 11)
      var writer: ChangeStore? = try ChangeStore(
        path: path, .tiny, platform: SystemPlatform(), scheduler: ManualScheduler())
      for _ in 0..<20 {
        let batch = generator.batch(5)
        try await writer!.apply(batch)
        try model.apply(batch)
      }
      switch state {
      case "closed": try writer!.close()
      case "abandoned": writer = nil
      default: break
      }
      let before = try DirectoryContents(path)
      let reader = try ChangeStore(at: path, configuration: Self.readOnly)
      try await expectEqual(reader, model)
      let refusals: [(ChangeStore) async throws -> Void] = [
        { try await $0.apply([change("a", time(1))]) }, { try $0.applyAndWait([]) },
        { try $0.flush(to: .powerLoss) },
      ]
      for refusal in refusals {
        #expect(await storeError { try await refusal(reader) }?.code == .readOnly)
      }
      #expect(try reader.validate([change("a", "bad")]).count == 1)
      try reader.refresh()
      try await expectEqual(reader, model)
      try reader.suspend()
      try reader.resume()
      try reader.reopen()
      try await expectEqual(reader, model)
      try reader.close()
      #expect(try DirectoryContents(path) == before)
      withExtendedLifetime(writer) {}
    }
  }

  @Test func `A reader cannot be told from a closed store by what is missing`() async throws {
    // What can be derived is built in memory, and still nothing is written.
    for suffix in [".index", ".liveness"] {
      try await withTemporaryDirectory { root in
        let path = root + "/store"
        var model = ReferenceModel()
        let writer = try ChangeStore(at: path, configuration: .tiny)
        for index in 0..<60 {
          let record = change("\(index % 25)", time(index))
          try await writer.apply([record])
          try model.apply([record])
        }
        try writer.close()
        let removed = try DirectoryContents(path).files.keys.filter { $0.hasSuffix(suffix) }
        #expect(!removed.isEmpty)
        for name in removed { try SystemPlatform().remove(path + "/" + name) }
        let before = try DirectoryContents(path)
        let reader = try ChangeStore(at: path, configuration: Self.readOnly)
        try await expectEqual(reader, model)
        try reader.close()
        #expect(try DirectoryContents(path) == before)
      }
    }
  }

  @Test func `A reader beside a writer shows what was committed when it was refreshed`()
    async throws
  {
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      let writer = try ChangeStore(at: path, configuration: .tiny)
      let reader = try ChangeStore(at: path, configuration: Self.readOnly)
      #expect(try reader.latestTimestamp == nil)
      var model = ReferenceModel()
      var generator = RecordGenerator(seed: 12)
      for round in 0..<30 {
        let shown = model
        for _ in 0..<3 {
          let batch = generator.batch(generator.below(8))
          try await writer.apply(batch)
          try model.apply(batch)
        }
        // Not yet: it shows the state that it had.
        try await expectEqual(reader, shown, "round \(round)")
        try reader.refresh()
        try await expectEqual(reader, model, "round \(round)")
        #expect(try reader.position == writer.position)
      }
      try writer.close()
      try await expectEqual(reader, model)
      try reader.refresh()
      try await expectEqual(reader, model)
    }
  }

  @Test func `A reader keeps its state while the writer moves on far`() async throws {
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      let writer = try ChangeStore(at: path, configuration: .tiny)
      var model = ReferenceModel()
      var generator = RecordGenerator(seed: 13)
      for _ in 0..<20 {
        let batch = generator.batch(5)
        try await writer.apply(batch)
        try model.apply(batch)
      }
      // It loads its indexes and the liveness only when it is first asked, which is late.
      let late = try ChangeStore(at: path, configuration: Self.readOnly)
      for _ in 0..<60 { try await writer.apply(generator.batch(5)) }
      try await expectEqual(late, model)
      try writer.close()
      try await expectEqual(late, model)
    }
  }

  @Test func `A reader beside a busy writer always opens and reads whole batches`() throws {
    try withTemporaryDirectory { root in
      let path = root + "/store"
      var configuration = Configuration.tiny
      configuration.durability = .processCrash
      let writer = try ChangeStore(at: path, configuration: configuration)
      let isDone = Locked(false)
      inThreads(2) { thread in
        do {
          if thread == 0 {
            defer { isDone.withLock { $0 = true } }
            // Each batch sets all ten keys to its number, so that any mixture shows.
            for round in 1...600 {
              try writer.applyAndWait(
                (0..<10).map { change("\($0)", time(round), payload: "\(round)") })
            }
          } else {
            let last = try readWholeBatches(path, until: { isDone.withLock { $0 } })
            #expect(last == 600)
          }
        } catch {
          Issue.record(error)
        }
      }
    }
  }

  /// Reads until the writer is done, and answers the number of the last batch.
  private func readWholeBatches(_ path: String, until isDone: () -> Bool) throws -> Int {
    var last = 0
    var reader = try ChangeStore(at: path, configuration: Self.readOnly)
    while true {
      let isLast = isDone()
      do throws(LogStoreError) {
        if last % 2 == 0 {
          try reader.refresh()
        } else {
          reader = try ChangeStore(at: path, configuration: Self.readOnly)
        }
      } catch {
        // Such small segments may be sealed faster than a reader can follow.
        guard error.code == .staleReader else { throw error }
        if !isLast { continue }
      }
      let page = try reader.changes(limit: 100).records
      let rounds = Set(page.map { String(decoding: $0.payload, as: UTF8.self) })
      #expect(rounds.count <= 1 && (page.isEmpty || page.count == 10))
      let round = rounds.first.flatMap { Int($0) } ?? 0
      #expect(round >= last)
      last = round
      if isLast { return last }
    }
  }
}
