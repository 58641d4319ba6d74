import AirDbAdapterTesting
import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// The examples of the conformance kit; see Examples.swift.
struct ConformanceExamples {
  /// Somebody's adapter over files.
  private struct FileAdapter: AirDbAdapter {
    let path: String
    private let store: ChangeStore

    init(at path: String) throws {
      self.path = path
      store = try ChangeStore(at: path)
    }

    func close() throws { try store.close() }

    func getChangesSince(sinceHlcTimestamp: String?, limit: Int) async throws -> [ChangeRecord] {
      try await store.getChangesSince(sinceHlcTimestamp: sinceHlcTimestamp, limit: limit)
    }

    func applyChanges(_ changes: [ChangeRecord]) async throws {
      try await store.applyChanges(changes)
    }

    func getLatestHlc() async throws -> String? {
      try await store.getLatestHlc()
    }
  }

  @Test func someChecksOfAnAdapterOverFiles() async throws {
    try await withTemporaryDirectory { directory in
      // example: Conformance
      let conformance = AdapterConformance(
        makeAdapter: { try FileAdapter(at: "\(directory)/\(UUID())") },
        reopen: { adapter in
          try adapter.close()
          return try FileAdapter(at: adapter.path)
        },
        dispose: { adapter in
          try adapter.close()
          try FileManager.default.removeItem(atPath: adapter.path)
        })
      // end
      let report = await conformance.run([.empty, .order, .reopening])
      #expect(report.outcomes.count == 3 && report.isConforming, "\(report)")
      let left = try FileManager.default.contentsOfDirectory(atPath: directory)
      #expect(left.isEmpty)
    }
  }

  @Test func allChecksOfTheReferenceAdapter() async {
    var options = AdapterConformance.Options()
    options.randomScripts = 3
    let conformance = AdapterConformance(options: options) { ReferenceAdapter() }
    // example: Run all checks
    let report = await conformance.run()
    #expect(report.isConforming, "\(report)")
    // end
  }

  @Test func aStoreInMemory() async {
    // example: AdapterConformance
    let conformance = AdapterConformance { try ChangeStore.inMemory() }
    let report = await conformance.run([.order, .equalTimestamps])
    if !report.isConforming { print(report) }
    // end
    #expect(report.isConforming)
  }
}
