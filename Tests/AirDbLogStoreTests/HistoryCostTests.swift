import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// What a fetch reads: each stretch of the log once, wherever a page begins.
@Suite struct HistoryCostTests {
  private static func configuration(segmentBytes: UInt64) -> Configuration {
    var configuration = Configuration()
    configuration.segmentBytes = segmentBytes
    configuration.durability = .processCrash
    return configuration
  }

  private static func fill(_ store: ChangeStore, _ count: Int, payload: Int) throws {
    var random = SeededGenerator(seed: 1)
    for index in 0..<count {
      var record = change("\(index)", time(index))
      record.payload = Data(random.bytes(payload))
      try store.applyAndWait([record], author: "other")
    }
  }

  /// What readahead may read beyond a page, and again.
  private static let readahead = 300 << 10

  @Test func `What does not match is looked at once, across pages and sessions`() throws {
    let platform = ReadCountingPlatform()
    let segmentBytes: UInt64 = isLongRun ? 16 << 20 : 1 << 20
    let configuration = Self.configuration(segmentBytes: segmentBytes)
    let open = {
      try ChangeStore(
        path: "/store", configuration, platform: platform, scheduler: ManualScheduler())
    }
    var store = try open()
    try Self.fill(store, isLongRun ? 1_000_000 : 1_500, payload: isLongRun ? 100 : 4_000)
    try store.close()
    store = try open()
    let logBytes = try Int(store.statistics().segmentBytes)
    var limits = Engine.HistoryLimits(commits: 10, bytes: .max)
    limits.examinedBytes = 1 << 20
    let predicate = CommitFilter(authors: ["nobody"]).predicate
    var position: Position?
    var pages = 0
    var total = 0
    while true {
      if pages == 3 {
        // As an app that is started again with the position that it has saved.
        let saved = try JSONEncoder().encode(try #require(position))
        try store.close()
        store = try open()
        position = try JSONDecoder().decode(Position.self, from: saved)
      }
      _ = platform.take()
      let (page, horizon) = try store.engine.history(after: position, predicate, limits)
      let bytes = platform.take()
      total += bytes
      #expect(page.commits.isEmpty)
      // After a restart also the headers from the start of a segment.
      #expect(bytes <= (2 << 20) + Self.readahead + (pages == 3 ? Int(segmentBytes) : 0))
      pages += 1
      let next = try #require(page.end)
      #expect(next.sequence > position?.sequence ?? 0)
      position = try store.engine.position(at: next, horizon: horizon)
      if page.isLast { break }
    }
    #expect(pages > 5)
    #expect(total < logBytes + pages * Self.readahead + 2 * Int(segmentBytes))
    #expect(try position == store.position)
    try store.close()
  }

  @Test(arguments: ["tail", "sealed", "packed"])
  func `A page costs the same at the end of a segment as at its start`(kind: String) throws {
    let platform = ReadCountingPlatform()
    let scheduler = ManualScheduler()
    let store = try ChangeStore(
      path: "/store", Self.configuration(segmentBytes: kind == "tail" ? 64 << 20 : 4 << 20),
      platform: platform, scheduler: scheduler)
    try Self.fill(store, 1_200, payload: 4_000)
    scheduler.run()
    if kind == "packed" {
      for index in 0..<50 { try store.applyAndWait([change("\(index)", time(5_000))]) }
      #expect(try store.compact().segments > 0)
      scheduler.run()
    }
    var position: Position?
    var costs: [Int] = []
    while true {
      _ = platform.take()
      let page = try store.commits(after: position, limit: 3)
      costs.append(platform.take())
      position = page.next
      if page.isLast { break }
    }
    #expect(costs.count > 300)
    // A packed frame, here of half a megabyte of payloads, is read once, and a page may need two.
    let most = Self.readahead + (kind == "packed" ? 2 * (550 << 10) : 0)
    #expect(costs.allSatisfy { $0 <= most }, "\(costs.max() ?? 0)")
    // Nor does it matter where somebody else comes in, once the way is known.
    _ = platform.take()
    for commit in try store.history().suffix(20) {
      _ = platform.take()
      _ = try store.commits(after: commit.position, limit: 1)
      #expect(platform.take() <= most + (64 << 10))
    }
    try store.close()
  }

  @Test func `The map of a segment is bounded, and leads to the closest place before a commit`() {
    var random = SeededGenerator(seed: 5)
    let map = FrameMap(start: FrameMap.Boundary(offset: 64, sequence: 7, checksum: 0))
    var all: [FrameMap.Boundary] = [FrameMap.Boundary(offset: 64, sequence: 7, checksum: 0)]
    for index in 0..<20_000 {
      let last = all[all.count - 1]
      all.append(
        FrameMap.Boundary(
          offset: last.offset + UInt64.random(in: 64...20_000, using: &random),
          sequence: last.sequence + UInt64.random(in: 1...3, using: &random), checksum: 1,
          commitChecksum: index % 5 == 0 ? nil : 2, date: Int64(index / 10)))
    }
    for boundary in all.shuffled(using: &random) { map.note(boundary) }
    for boundary in all { map.note(boundary) }
    #expect(map.residentBytes < 16 << 10)
    #expect(map.start == all[0])
    let end = all[all.count - 1]
    let spacing = end.offset / 32
    for _ in 0..<1_000 {
      let wanted = UInt64.random(in: 7...(end.sequence + 2), using: &random)
      guard let found = map.last(upTo: wanted) else {
        #expect(wanted == 7)
        continue
      }
      #expect(all.contains(found))
      #expect(found.sequence <= wanted)
      #expect(found.sequence < wanted || found.commitChecksum != nil)
      let exact = all.last { $0.sequence <= wanted } ?? all[0]
      #expect(exact.offset - found.offset <= spacing)
      let date = Int64.random(in: -1...2_001, using: &random)
      #expect((map.last(before: date)?.date ?? .min) < max(date, .min + 1))
    }
    // Where a page ended, it knows exactly.
    let place = all[12_346]
    map.remember(place)
    #expect(map.last(upTo: place.sequence)?.offset == place.offset || place.commitChecksum == nil)
  }
}
