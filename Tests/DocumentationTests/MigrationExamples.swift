import AirDbAdapterTesting
import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// The examples of moving between adapters; see Examples.swift.
struct MigrationExamples {
  @Test func migrate() async throws {
    let (old, store) = (ReferenceAdapter(), try ChangeStore.inMemory())
    await old.applyChanges([
      ChangeRecord(
        id: "1", collection: "notes", type: .insert, payload: Data("Hello".utf8),
        hlcTimestamp: "1700000000000-0000-a")
    ])
    try await withTemporaryDirectory { path in
      let directory = URL(fileURLWithPath: path)
      // example: Migration
      let file = directory.appendingPathComponent("migration.json")
      let saved = try? JSONDecoder().decode(
        Migration.Checkpoint.self, from: Data(contentsOf: file))
      let result = try await store.migrate(from: old, resuming: saved) { progress in
        try JSONEncoder().encode(progress.checkpoint).write(to: file, options: .atomic)
      }
      if !result.isVerified { print("\(result.differenceCount) records differ") }
      // end
      #expect(result.isVerified && result.copied == 1 && result.identical == 1)
    }
  }
}
