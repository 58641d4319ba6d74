import AirDbAdapterTesting
import Foundation

/// Holds an adapter to the contract, as a program: prints the report, and answers 1 if a check failed.
///
///     swift run check-adapter               an adapter over a file of JSON Lines
///     swift run check-adapter --cut-pages   the same with pages as the guides have them
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
    let cutsPages = !arguments.isEmpty
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("check-adapter-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)

    let conformance = AdapterConformance(
      makeAdapter: {
        try JsonLinesAdapter(
          path: folder.appendingPathComponent("\(UUID()).jsonl").path, cutsPages: cutsPages)
      },
      reopen: { adapter in
        try await adapter.close()
        return try JsonLinesAdapter(path: adapter.path, cutsPages: adapter.cutsPages)
      },
      dispose: { adapter in
        try await adapter.close()
        try FileManager.default.removeItem(atPath: adapter.path)
      })
    let report = await conformance.run()
    print(report)
    try FileManager.default.removeItem(at: folder)
    exit(report.isConforming ? 0 : 1)
  }
}
