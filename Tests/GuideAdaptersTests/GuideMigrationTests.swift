import AirDbLogStore
import Foundation
import GuideAdapters
import Testing

/// From the adapters of the guides into a store, and back, whatever their pages are like.
struct GuideMigrationTests {
  private static let count = 60

  /// Runs of one to eight equal timestamps, deletions, and fields that are absent or empty.
  private static let changes: [ChangeRecord] = (0..<count).map { index in
    // 0, 1 1, 2 2 2, and so on.
    let time = Int((Double(8 * index + 1).squareRoot() - 1) / 2)
    let fields: [Data?] = [nil, Data(), Data([UInt8(index)])]
    return ChangeRecord(
      id: "id\(index)", collection: "notes\(index % 3)",
      type: [.insert, .update, .delete][index % 3],
      payload: index % 4 == 0 ? Data() : Data("\u{0}content \(index)".utf8),
      hlcTimestamp: "\(1_700_000_000_000 + time)-0000-n", authorPublicKey: fields[index % 3],
      signature: fields[index / 3 % 3])
  }

  private func all(_ adapter: any AirDbAdapter) async throws -> Set<ChangeRecord> {
    Set(try await adapter.getChangesSince(sinceHlcTimestamp: nil, limit: 10_000))
  }

  /// What the test is about: a sync by pages loses records of these adapters.
  @Test(arguments: Guide.allCases)
  func aPlainSyncLosesRecords(guide: Guide) async throws {
    let adapter = try guide.makeAdapter()
    try await adapter.applyChanges(Self.changes)
    var (found, cursor) = (0, String?.none)
    while true {
      let page = try await adapter.getChangesSince(sinceHlcTimestamp: cursor, limit: 7)
      guard let last = page.last else { break }
      found += page.count
      cursor = last.hlcTimestamp
    }
    #expect(found < Self.count)
  }

  @Test(arguments: Guide.allCases)
  func fromAGuideAndBack(guide: Guide) async throws {
    let old = try guide.makeAdapter()
    try await old.applyChanges(Self.changes.shuffled())
    for pageSize in Array(1...12) + [59, 60, 61, 500] {
      let store = try ChangeStore.inMemory()
      let result = try await store.migrate(from: old, pageSize: pageSize)
      #expect(result.isVerified && result.identical == Self.count && result.late == 0)
      #expect(try await all(store) == Set(Self.changes), "\(pageSize)")

      let new = try guide.makeAdapter()
      let back = try await store.migrate(to: new, pageSize: pageSize)
      #expect(back.isVerified && back.identical == Self.count && back.late == 0)
      #expect(try await all(new) == Set(Self.changes), "\(pageSize)")
    }
  }

  @Test(arguments: Guide.allCases)
  func largePayloads(guide: Guide) async throws {
    let old = try guide.makeAdapter()
    let changes = (0..<20).map { index in
      ChangeRecord(
        id: "id\(index)", collection: "large", type: .insert,
        payload: Data(repeating: UInt8(index), count: 1 << 20),
        hlcTimestamp: "\(1_700_000_000_000 + index / 3)-0000-n")
    }
    try await old.applyChanges(changes)
    let store = try ChangeStore.inMemory()
    #expect(try await store.migrate(from: old).isVerified)
    #expect(try await all(store) == Set(changes))
    let new = try guide.makeAdapter()
    #expect(try await store.migrate(to: new).isVerified)
  }

  /// Collection and id make one key there: a way back says what met.
  @Test(arguments: [Guide.coreData, .swiftData])
  func keysThatMeetAreReported(guide: Guide) async throws {
    let store = try ChangeStore.inMemory()
    try await store.apply(
      [("a", "b:c", 1), ("a:b", "c", 2)].map { collection, id, time in
        ChangeRecord(
          id: id, collection: collection, type: .insert, payload: Data(),
          hlcTimestamp: "\(1_700_000_000_000 + time)-0000-n")
      })
    let result = try await store.migrate(to: try guide.makeAdapter())
    #expect(!result.isVerified && result.differenceCount == 1)
    #expect(result.differences.map(\.kind) == [.missing])
  }
}
