import AirDbLogStore
import TestSupport
import Testing

/// What is read of packed frames without the frame.
@Suite struct PackedFrameTests {
  @Test func `Whatever bit of a transaction table rots, a cursor is right or there is an error`()
    throws
  {
    let home = try CleaningTests.Home()
    for keys in ["abcd", "cd", "ef", "gh"] { try home.write(keys) }
    try home.reopen()
    try home.compact()
    try home.store.close()
    home.scheduler.run()
    func ends(_ files: SimulatedFileSystem) throws -> [ChangeCursor?] {
      let store = try ChangeStore(
        path: "/store", home.configuration, platform: files, scheduler: ManualScheduler())
      // The second one finds the table known.
      return try [1, 3, 3, 8].map { try store.changes(limit: $0).next }
    }
    let expected = try ends(home.files)
    let path = try #require(
      try home.files.list("/store").filter { $0.hasSuffix(".segment") }.map { "/store/" + $0 }.last)
    let content = try #require(home.files.content(of: path)?.bytes)
    let header = SegmentHeader.size
    let tableLength = Int(content[header + 60]) | Int(content[header + 61]) << 8
    let table = (header + FrameHeader.size)..<(header + FrameHeader.size + tableLength)
    try #require(content[header + 56] == 2 && table.count > 20)
    var errors = 0
    for byte in table {
      for bit in isLongRun ? 0..<8 : (byte % 8)..<(byte % 8 + 1) {
        let files = home.files.damaged(path, .flipBit(byte: UInt64(byte), bit: bit))
        do {
          #expect(try ends(files) == expected, "bit \(bit) of byte \(byte)")
        } catch let error as LogStoreError {
          #expect(error.code == .corrupt)
          errors += 1
        }
      }
    }
    #expect(errors == table.count * (isLongRun ? 8 : 1), "no bit of it goes unnoticed")
  }

  @Test func `A copy that a reopening overtakes says so, and another one succeeds`() throws {
    let files = SimulatedFileSystem()
    let scheduler = ManualScheduler()
    let store = try ChangeStore(path: "/store", .tiny, platform: files, scheduler: scheduler)
    for stamp in 1...40 {
      try store.applyAndWait("abcdefgh".map { CleaningTests.record("\($0)", stamp) })
      scheduler.run()
    }
    let count = Locked(0)
    let failure = Locked<LogStoreError?>(nil)
    files.beforeEachCall { call in
      guard call.kind == .create, call.path.hasPrefix("/copy/") else { return }
      let isFirst = count.withLock { count in
        count += 1
        return count == 1
      }
      guard isFirst else { return }
      do throws(LogStoreError) {
        try store.compact()
        try store.reopen()
        scheduler.run()
      } catch {
        failure.withLock { $0 = error }
      }
    }
    #expect {
      try store.backUp(to: "/copy")
    } throws: { error in
      (error as? LogStoreError)?.code == .expired
    }
    files.beforeEachCall(nil)
    #expect(failure.withLock { $0 } == nil && count.withLock { $0 } > 0)
    // What is there is no store.
    #expect {
      try ChangeStore(path: "/copy", .tiny, platform: files)
    } throws: { error in
      (error as? LogStoreError)?.code == .corrupt
    }
    try store.backUp(to: "/another")
    let copy = try ChangeStore(path: "/another", .tiny, platform: files)
    #expect(try copy.changes(limit: .max).records == store.changes(limit: .max).records)
  }
}
