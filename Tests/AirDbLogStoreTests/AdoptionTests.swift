import AirDbLogStore
import TestSupport
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A copy that becomes a store of its own.
@Suite struct AdoptionTests {
  private static func makeStore(on platform: any Platform) throws -> [HistoryModel.Entry] {
    let scheduler = ManualScheduler()
    let store = try ChangeStore(path: "/store", .tiny, platform: platform, scheduler: scheduler)
    for index in 0..<20 { try store.applyAndWait([change("\(index % 8)", time(index))]) }
    scheduler.run()
    try store.close()
    return try entries(on: platform)
  }

  /// The history, which must be sound, by its own identity.
  private static func entries(on platform: any Platform) throws -> [HistoryModel.Entry] {
    let store = try ChangeStore(
      path: "/store", .tiny, platform: platform, scheduler: ManualScheduler())
    let report = try store.verify()
    #expect(report.isClean, "\(report.problems)")
    let entries = try store.history(limit: 3)
    // It can still be written.
    try store.applyAndWait([change("0", time(0))])
    try store.close()
    return entries
  }

  private static func expectSame(
    _ a: [HistoryModel.Entry], _ b: [HistoryModel.Entry],
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(a.map(\.records) == b.map(\.records), sourceLocation: sourceLocation)
    #expect(
      a.map(\.position.sequence) == b.map(\.position.sequence), sourceLocation: sourceLocation)
    #expect(
      a.map(\.position.checksum) == b.map(\.position.checksum), sourceLocation: sourceLocation)
  }

  @Test func `An adopted copy and the original refuse each other's positions`() throws {
    try withTemporaryDirectory { root in
      let original = try ChangeStore(at: root + "/store", configuration: .tiny)
      for index in 0..<20 { try original.applyAndWait([change("\(index)", time(index))]) }
      try original.backUp(to: root + "/copy")
      let identity = try ChangeStore.adopt(at: root + "/copy")
      let copy = try ChangeStore(at: root + "/copy", configuration: .tiny)
      #expect(try copy.statistics().storeId == identity)
      #expect(try copy.position?.storeId == identity)
      #expect(try original.statistics().storeId != identity)
      Self.expectSame(try copy.history(), try original.history())
      for (store, other) in [(copy, original), (original, copy)] {
        let position = try #require(try other.position)
        #expect(throws: LogStoreError.self) { try store.commits(after: position, limit: 1) }
        do throws(LogStoreError) {
          try store.engine.validate(position)
          Issue.record("nothing was thrown")
        } catch {
          #expect(error.code == .foreignPosition)
        }
      }
      // Both go on, with the same sequences.
      try copy.applyAndWait([change("new", time(30))])
      try original.applyAndWait([change("new", time(31))])
      try copy.compact()
      #expect(try copy.verify().isClean)
      try copy.close()
      let again = try ChangeStore.adopt(at: root + "/copy")
      #expect(again != identity)
      #expect(try original.statistics().storeId != again)
      try original.close()
    }
  }

  @Test func `What is in use, or no store, is refused and not touched`() throws {
    try withTemporaryDirectory { root in
      let path = root + "/store"
      let store = try ChangeStore(at: path)
      let before = try DirectoryContents(path)
      for (target, code) in [
        (path, LogStoreError.Code.storeInUse), (root, .storeNotFound),
        (root + "/none", .storeNotFound),
      ] {
        do throws(LogStoreError) {
          try ChangeStore.adopt(at: target)
          Issue.record("nothing was thrown")
        } catch {
          #expect(error.code == code)
        }
      }
      #expect(try DirectoryContents(path) == before)
      #expect(try SystemPlatform().list(root) == ["store"])
      try store.close()
    }
  }

  @Test func `A crash at any operation leaves the one identity or the other`() throws {
    var images = 0
    var changed = 0
    for operation in 1... {
      let files = SimulatedFileSystem()
      let whole = try Self.makeStore(on: files)
      let done = files.operations.count
      files.losePower(at: done + operation)
      let adopted = Result { try ChangeStore.adopt(at: "/store", platform: files) }
      for rule in files.survivorRules() {
        let image = files.image(rule)
        let found = try Self.entries(on: image)
        Self.expectSame(found, whole)
        let identity = try #require(found.first).position.storeId
        let isOld = identity == whole[0].position.storeId
        if case .success(let new) = adopted { #expect(identity == new) }
        images += 1
        if !isOld { changed += 1 }
      }
      if case .success = adopted { break }
      #expect(operation < 100)
    }
    #expect(images > 10 && changed > 1 && changed < images)
  }

  @Test(arguments: [ENOSPC, EIO] as [CInt])
  func `A failing call leaves the one identity or the other, and it can be tried again`(
    errno: CInt
  ) throws {
    var failures = 0
    for number in 1... {
      let files = SimulatedFileSystem()
      let whole = try Self.makeStore(on: files)
      files.inject(FaultPlan(.failing(errno), on: .only(number)))
      let adopted = Result { try ChangeStore.adopt(at: "/store", platform: files) }
      files.clearFaults()
      Self.expectSame(try Self.entries(on: files), whole)
      if case .failure(let error) = adopted {
        failures += 1
        #expect(error is LogStoreError)
        let identity = try ChangeStore.adopt(at: "/store", platform: files)
        #expect(try Self.entries(on: files).first?.position.storeId == identity)
      } else if number > 20 {
        break
      }
    }
    #expect(failures > 5)
  }
}
