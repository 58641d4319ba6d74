// The example of a test in "Write an adapter"; see Examples.swift. It stands at the top level.

// example: JSON Lines test
import AirDbAdapterTesting
import Foundation
import Testing
// end
@testable import check_adapter

// example: JSON Lines test
@Test func theAdapterConforms() async throws {
  let directory = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID())")
  try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: directory) }
  let conformance = AdapterConformance(
    makeAdapter: { try JsonLinesAdapter(at: directory.appendingPathComponent("\(UUID())")) },
    reopen: { try JsonLinesAdapter(at: $0.file) })
  let report = await conformance.run()
  #expect(report.isConforming, "\(report)")
}
// end
