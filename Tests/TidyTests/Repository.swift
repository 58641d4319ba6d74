import Foundation

/// The files of the package, as the rules of this target look at them.
enum Repository {
  struct File: Sendable {
    /// Relative to the package.
    let path: String
    let text: String

    var name: String { String(path.split(separator: "/").last ?? "") }
    var lines: [Substring] { text.split(separator: "\n", omittingEmptySubsequences: false) }

    /// A Swift file's text without comments and the content of string literals.
    var code: String {
      text.replacing(/\/\/[^\n]*/, with: "")
        .replacing(/"""(?s:.*?)"""/, with: "\"\"")
        .replacing(/"(?:\\.|[^"\\\n])*"/, with: "\"\"")
    }
  }

  static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// Every text file that is kept, but for the fixtures.
  static let files: [File] = {
    let kept = [
      "Package.swift", "README.md", ".swift-format", ".ci", "Sources", "Tests", "Spec",
      "Benchmarks",
    ]
    return kept.flatMap { paths(under: $0) }.sorted().compactMap { path in
      let content = try? String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
      return content.map { File(path: path, text: $0) }
    }
  }()

  static func files(in folder: String = "", ending suffix: String) -> [File] {
    files.filter { $0.path.hasPrefix(folder) && $0.path.hasSuffix(suffix) }
  }

  static func exists(_ path: String) -> Bool {
    FileManager.default.fileExists(atPath: root.appendingPathComponent(path).path)
  }

  private static func paths(under path: String) -> [String] {
    var isDirectory: ObjCBool = false
    let full = root.appendingPathComponent(path).path
    guard FileManager.default.fileExists(atPath: full, isDirectory: &isDirectory) else { return [] }
    guard isDirectory.boolValue else { return [path] }
    guard path != "Spec/fixtures/stores" else { return [] }
    let names = (try? FileManager.default.contentsOfDirectory(atPath: full)) ?? []
    return names.filter { ![".build", "__pycache__", ".DS_Store"].contains($0) }
      .flatMap { paths(under: "\(path)/\($0)") }
  }
}
