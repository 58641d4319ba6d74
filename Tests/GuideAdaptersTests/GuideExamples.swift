import AirDbLogStore
import CoreData
import Foundation
import GRDB
import GuideAdapters
import SwiftData
import TestSupport
import Testing

/// The examples of the articles on leaving an adapter of AirDB's guides; see Examples.swift.
struct GuideExamples {
  /// What one import wrote: more changes of one timestamp than a page has.
  private static let changes = (0..<1_200).map { number in
    ChangeRecord(
      id: "\(number)", collection: "notes", type: number % 7 == 0 ? .delete : .insert,
      payload: Data("\(number)".utf8), hlcTimestamp: "1700000000000-0000-node")
  }

  /// Runs an example over an adapter that has the changes, and looks whether the store gets them all.
  private func expectAll(
    in adapter: any AirDbAdapter & Sendable,
    after example: (_ path: String) async throws -> ChangeStore
  ) async throws {
    try await adapter.applyChanges(Self.changes)
    try await withTemporaryDirectory { directory in
      let store = try await example(directory + "/store")
      let records = try store.changes(limit: .max).records
      #expect(Set(records) == Set(Self.changes))
      try store.close()
    }
  }

  @Test func grdb() async throws {
    let database = Guide.makeDatabase()
    try await expectAll(in: GrdbAirDbAdapter(dbWriter: database)) { path in
      // example: From GRDB
      let old = GrdbAirDbAdapter(dbWriter: database)
      let store = try ChangeStore(at: path)
      let result = try await store.migrate(from: old)
      if !result.isVerified { print("\(result.differenceCount) records differ") }
      // end
      #expect(result.isVerified)
      return store
    }
  }

  @Test func shadow() async throws {
    let old = Guide.makeGrdb()
    let store = try ChangeStore.inMemory()
    // example: Shadow of an old adapter
    let adapter = ShadowAdapter(primary: old, shadow: store) { difference in
      print("the new store differs: \(difference)")
    }
    // end
    try await adapter.applyChanges(Self.changes)
    #expect(try await adapter.getLatestHlc() == Self.changes[0].hlcTimestamp)
    #expect(try store.changes(limit: .max).records.count == Self.changes.count)
  }

  @Test func coreData() async throws {
    let container = NSPersistentContainer()
    try await expectAll(in: CoreDataAirDbAdapter(persistentContainer: container)) { path in
      // example: From Core Data
      let old = CoreDataAirDbAdapter(persistentContainer: container)
      let store = try ChangeStore(at: path)
      let result = try await store.migrate(from: old)
      if !result.isVerified { print("\(result.differenceCount) records differ") }
      // end
      #expect(result.isVerified)
      return store
    }
  }

  @Test func swiftData() async throws {
    let container = try ModelContainer(for: AirDbChangeEntity.self)
    try await expectAll(in: SwiftDataAirDbAdapter(container: container)) { path in
      // example: From SwiftData
      let old = SwiftDataAirDbAdapter(container: container)
      let store = try ChangeStore(at: path)
      let result = try await store.migrate(from: old)
      if !result.isVerified { print("\(result.differenceCount) records differ") }
      // end
      #expect(result.isVerified)
      return store
    }
  }
}
