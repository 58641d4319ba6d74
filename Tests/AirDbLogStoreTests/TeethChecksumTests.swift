import AirDbLogStore
import TestSupport
import Testing

/// Each checksum is made to match damaged bytes. Either another check notices, or none does: then it
/// was this one that did.
@Suite("Teeth of the rot suite")
struct TeethChecksumTests {
  private static let closed = Result { try RotStore(.tinyClosed) }
  private static let fresh = Result { try RotStore(.tinyFresh) }

  private static let first = "0000000000000001.segment"

  /// What becomes of a store in which a file was forged.
  private func outcome(
    _ store: RotStore, _ name: String, _ forge: (inout Forgery) throws -> Void
  ) throws -> RotOutcome {
    var forgery = Forgery(store.content(name), named: name)
    try forge(&forgery)
    return try store.examine(Damage(name, .replace(forgery.content), "forged"))
  }

  /// Wrong data are read, which the oracle calls a violation.
  private func expectWrong(
    _ store: RotStore, _ name: String, _ forge: (inout Forgery) throws -> Void
  ) {
    #expect(throws: OracleViolation.self, "this checksum alone protects it") {
      _ = try outcome(store, name, forge)
    }
  }

  @Test("A manifest is protected by its checksum alone")
  func manifest() throws {
    let store = try Self.closed.get()
    // The last digit of the node of the greatest timestamp, behind one deletion value.
    let place = 232 + "1700000000004-0000-a".utf8.count - 1
    #expect(try outcome(store, "MANIFEST") { $0.flip(place, bit: 1) } == .refused)
    expectWrong(store, "MANIFEST") {
      $0.flip(place, bit: 1)
      $0.sealManifest()
    }
  }

  @Test("A segment's header is also bound to the segment before it, and to its place")
  func segmentHeader() throws {
    let store = try Self.closed.get()
    let name = "0000000000000002.segment"
    let predecessorLength = 48
    #expect(try outcome(store, name) { $0.flip(predecessorLength) } == .named)
    let forged = try outcome(store, name) {
      $0.flip(predecessorLength)
      $0.sealSegmentHeader()
    }
    #expect(forged == .named)
  }

  @Test("A frame's header is also chained to the next frame's, but for the last")
  func frameHeader() throws {
    let commitDate = 64 + 32
    let sealed = try outcome(try Self.closed.get(), Self.first) {
      $0.flip(commitDate)
      $0.sealFrameHeader(64)
    }
    #expect(sealed == .named)

    let store = try Self.fresh.get()
    let last = try #require(store.frames.last)
    let start = Int(last.range.lowerBound)
    let unforged = try outcome(store, Self.first) { $0.flip(start + 32) }
    #expect(unforged == .discarded)
    let forged = try outcome(store, Self.first) {
      $0.flip(start + 32)
      $0.sealFrameHeader(start)
    }
    #expect(forged == .unnoticed, "this checksum alone protects it")
    // The frame behind a forged one does not fit any more. What it says was durable before it, must
    // be there.
    for (number, expected) in [(0, RotOutcome.refused), (1, .discarded)] {
      let frame = Int(store.frames[number].range.lowerBound)
      let outcome = try outcome(store, Self.first) {
        $0.flip(frame + 32)
        $0.sealFrameHeader(frame)
      }
      #expect(outcome == expected)
    }
  }

  @Test("A block is also covered by its frame, which a read does not look at")
  func block() throws {
    let store = try Self.closed.get()
    let payload = Int(store.frames[0].range.upperBound) - 8
    #expect(try outcome(store, Self.first) { $0.flip(payload) } == .unreadable)
    expectWrong(store, Self.first) {
      $0.flip(payload)
      $0.sealBlock(ofFrame: 64)
    }
    // In the tail every frame is scanned.
    let tail = try outcome(try Self.fresh.get(), Self.first) {
      $0.flip(payload)
      $0.sealBlock(ofFrame: 64)
    }
    #expect(tail == .refused)
  }

  @Test("An impossible block header under right checksums is corruption, not the end of the log")
  func blockHeader() throws {
    let store = try Self.fresh.get()
    let frame = Int(try #require(store.frames.last).range.lowerBound)
    let block = frame + 64
    let impossible: [(field: String, place: Int, value: UInt8)] = [
      ("recordCount", 4, 0), ("recordCount", 6, 1), ("rawLength", 19, 0x7F), ("codec", 20, 7),
      ("flags", 21, 1), ("flags", 21, 2), ("reserved", 22, 1), ("reserved", 23, 1),
      ("firstRecord", 24, 1), ("frameDistance", 28, 0), ("frameDistance", 31, 1),
    ]
    for (field, place, value) in impossible {
      let outcome = try outcome(store, Self.first) {
        $0.store(value, at: block + place)
        $0.sealBlock(ofFrame: frame)
        $0.sealBody(ofFrame: frame)
        $0.sealFrameHeader(frame)
      }
      #expect(outcome == .refused, "\(field) with \(value) at \(place)")
    }
  }

  @Test("A frame's body is also covered by its header, and that by the chain")
  func body() throws {
    let store = try Self.fresh.get()
    let payload = Int(store.frames[0].range.upperBound) - 8
    func forge(_ forgery: inout Forgery, _ depth: Int) {
      forgery.flip(payload)
      forgery.sealBlock(ofFrame: 64)
      if depth > 0 { forgery.sealBody(ofFrame: 64) }
      if depth > 1 { forgery.sealFrameHeader(64) }
    }
    for depth in 0...2 {
      #expect(try outcome(store, Self.first) { forge(&$0, depth) } == .refused)
    }
    // The last frame has no next one; its record's own checksum is looked at by the full check.
    let last = Int(store.frames[2].range.lowerBound)
    let end = Int(store.frames[2].range.upperBound) - 8
    expectWrong(store, Self.first) {
      $0.flip(end)
      $0.sealBlock(ofFrame: last)
      $0.sealBody(ofFrame: last)
      $0.sealFrameHeader(last)
    }
  }

  @Test("An index page is protected by its checksum alone, and compared by the full check")
  func indexPage() throws {
    let store = try Self.closed.get()
    let name = "0000000000000001.index"
    // The first byte of the first key's hash.
    let hash = 2 * Limits.pageSize + 4
    #expect(try outcome(store, name) { $0.flip(hash) } == .repaired)
    expectWrong(store, name) {
      $0.flip(hash)
      $0.sealPage(2)
    }
  }

  @Test("The liveness is also bound to the manifest that names it")
  func liveness() throws {
    let store = try Self.closed.get()
    let name = try #require(store.names.first { $0.hasSuffix(".liveness") })
    let bitmap = store.content(name).bytes.count - 8
    for seals in [false, true] {
      let outcome = try outcome(store, name) {
        $0.flip(bitmap, bit: 1)
        if seals { $0.sealLiveness() }
      }
      #expect(outcome == .repaired)
    }
  }
}
