import AirDbLogStore
import TestSupport
import Testing

/// A check names all damage, not the first of it, and counts what it could not look at.
@Suite struct VerifierTests {
  /// A frame of a segment file.
  private struct Frame {
    var offset: Int
    var length: Int
  }

  /// An open store whose segments have several frames each, and the names of its segments.
  private func withStore(
    isSealed: Bool, _ body: (ChangeStore, OpenFile, _ path: String, [Frame]) throws -> Void
  ) throws {
    let platform = MemoryPlatform()
    var configuration = Configuration.tiny
    configuration.segmentBytes = 64 << 10
    configuration.segmentRecords = isSealed ? 10 : 1_000
    let store = try ChangeStore(
      path: "/store", configuration, platform: platform, scheduler: ImmediateScheduler())
    for index in 0..<10 {
      try store.applyAndWait([change("\(index)", time(index), payload: "payload \(index)")])
    }
    // Rolls the full segment.
    try store.applyAndWait([change("last", time(10))])
    #expect(try store.statistics().sealedSegments == (isSealed ? 1 : 0))
    let directory = StoreDirectory(path: "/store", platform: platform)
    let path = directory.segment(1)
    let file = try directory.open(path, .readWrite)
    let bytes = try #require(try directory.contents(of: path, limit: 1 << 20))
    var frames: [Frame] = []
    var offset = SegmentHeader.size
    while offset + FrameHeader.size <= bytes.count, bytes.number(at: offset + 8) > 0 {
      frames.append(Frame(offset: offset, length: Int(bytes.number(at: offset + 8))))
      offset += frames.last!.length
    }
    #expect(frames.count == (isSealed ? 10 : 11))
    try body(store, file, path, frames)
  }

  private func flip(_ file: OpenFile, _ offset: Int) throws {
    try withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { byte in
      _ = try file.readExactly(into: byte, at: UInt64(offset))
      byte[0] ^= 0x10
      try file.writeAll(UnsafeRawBufferPointer(byte), at: UInt64(offset))
    }
  }

  @Test(arguments: [true, false])
  func `Behind a damaged frame the check goes on`(isSealed: Bool) throws {
    try withStore(isSealed: isSealed) { store, file, path, frames in
      #expect(try store.verify().isClean)
      // Bodies, then headers: the first, the last, neighbours.
      for damaged in [[0], [frames.count - 1], [2, 5], [3, 4]] {
        for inHeader in [false, true] {
          for number in damaged {
            try flip(file, frames[number].offset + (inHeader ? 20 : 80))
          }
          let report = try store.verify()
          let isRun = damaged == [3, 4] && inHeader
          #expect(
            report.problems.map(\.offset)
              == (isRun ? [3] : damaged).map { UInt64(frames[$0].offset) })
          #expect(report.problems.allSatisfy { $0.file == path && !$0.isDerived })
          #expect(
            report.uncheckedBytes == UInt64(damaged.reduce(0) { $0 + frames[$1].length }))
          #expect(report.checkedCommits == UInt64(11 - damaged.count))
          for number in damaged {
            try flip(file, frames[number].offset + (inHeader ? 20 : 80))
          }
        }
      }
      #expect(try store.verify().isClean)
    }
  }

  @Test(arguments: [true, false])
  func `A segment that is cut short, or whose header is damaged, is checked as far as it goes`(
    isSealed: Bool
  ) throws {
    try withStore(isSealed: isSealed) { store, file, path, frames in
      try flip(file, 9)
      var report = try store.verify()
      #expect(report.problems.map(\.offset) == [8])
      #expect(report.checkedCommits == 11 && report.uncheckedBytes == 0)
      try flip(file, 9)
      #expect(try store.verify().isClean)

      try file.truncate(to: UInt64(frames[6].offset + 70))
      report = try store.verify()
      #expect(
        report.problems.map(\.offset) == [
          UInt64(frames[6].offset + 70), UInt64(frames[6].offset),
        ])
      #expect(report.checkedCommits == (isSealed ? 7 : 6))
      #expect(report.uncheckedBytes == UInt64(frames[6...].reduce(0) { $0 + $1.length }))
    }
  }

  @Test func `A frame that does not follow is named, and checked all the same`() throws {
    try withStore(isSealed: false) { store, file, path, frames in
      // The previous checksum of the sixth frame names another one; all else is as it should be.
      let frame = frames[5]
      var bytes = ByteBuffer()
      bytes.appendZeros(FrameHeader.size)
      let header = try withUnsafeTemporaryAllocation(
        byteCount: FrameHeader.size, alignment: 8
      ) { buffer in
        _ = try file.readExactly(into: buffer, at: UInt64(frame.offset))
        return try FrameHeader.decode(
          UnsafeRawBufferPointer(buffer), file: 1, offset: UInt64(frame.offset))
      }
      var other = header
      other.previousChecksum ^= 1
      _ = other.encode(into: &bytes, at: 0, file: 1, offset: UInt64(frame.offset))
      try file.writeAll(bytes.bytes, at: UInt64(frame.offset))
      let report = try store.verify()
      // Its own checksum is another one now, so that neither does the next one follow.
      #expect(
        report.problems.map(\.offset) == [5, 6].map { UInt64(frames[$0].offset) })
      #expect(report.checkedCommits == 11 && report.uncheckedBytes == 0)
    }
  }
}
