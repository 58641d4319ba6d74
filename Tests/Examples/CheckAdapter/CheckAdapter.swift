import AirDbAdapterTesting
import Foundation

/// Holds an adapter to the contract, as a program: prints the report, and answers 1 if a check failed.
///
///     swift run check-adapter               the adapter of the article "Write an adapter"
///     swift run check-adapter --cut-pages   the same with pages as AirDB's guides have them
///
/// To check an adapter of your own, put it in the place of `JsonLinesAdapter`.
@main
struct CheckAdapter {
  static func main() async throws {
    let arguments = CommandLine.arguments.dropFirst()
    guard arguments.allSatisfy({ $0 == "--cut-pages" }) else {
      print("usage: check-adapter [--cut-pages]")
      exit(2)
    }
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("check-adapter-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let report: AdapterConformance.Report
    if arguments.isEmpty {
      report = await check(in: folder, open: { try JsonLinesAdapter(at: $0) }, file: \.file)
    } else {
      report = await check(
        in: folder, open: { PageCutter(try JsonLinesAdapter(at: $0)) }, file: \.adapter.file)
    }
    print(report)
    try FileManager.default.removeItem(at: folder)
    exit(report.isConforming ? 0 : 1)
  }

  /// Runs all checks on adapters over files of a folder.
  private static func check<Adapter: AirDbAdapter & Sendable>(
    in folder: URL, open: @escaping @Sendable (URL) throws -> Adapter,
    file: @escaping @Sendable (Adapter) -> URL
  ) async -> AdapterConformance.Report {
    let conformance = AdapterConformance(
      makeAdapter: { try open(folder.appendingPathComponent("\(UUID()).jsonl")) },
      reopen: { try open(file($0)) },
      // A file is made by the first batch.
      dispose: { try? FileManager.default.removeItem(at: file($0)) })
    return await conformance.run()
  }
}

/// An adapter whose pages end at their limit, also among changes of equal timestamps, as those of
/// AirDB's guides do: the mistake that the kit is to find.
struct PageCutter: AirDbAdapter {
  let adapter: JsonLinesAdapter

  init(_ adapter: JsonLinesAdapter) { self.adapter = adapter }

  func getChangesSince(sinceHlcTimestamp: String?, limit: Int) async throws -> [ChangeRecord] {
    let page = await adapter.getChangesSince(sinceHlcTimestamp: sinceHlcTimestamp, limit: limit)
    return Array(page.prefix(max(0, limit)))
  }

  func applyChanges(_ changes: [ChangeRecord]) async throws {
    try await adapter.applyChanges(changes)
  }

  func getLatestHlc() async throws -> String? { await adapter.getLatestHlc() }
}
