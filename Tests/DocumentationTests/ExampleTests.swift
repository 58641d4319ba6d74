import Foundation
import Testing

/// Holds the examples in the documents against those that are compiled.
struct ExampleTests {
  private static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  @Test func everyExampleIsCompiledWordForWord() throws {
    let compiled = try compiledExamples()
    let documented = try documentedExamples()
    for (place, example) in documented {
      #expect(compiled.values.contains(example), "\(place) is not compiled:\n\(example)")
    }
    for (name, example) in compiled {
      let isDocumented = documented.contains { $0.example == example }
      #expect(isDocumented, "the example \(name) is in no document")
    }
    #expect(documented.count >= 10)
  }

  /// Where examples are compiled. Those in the second folder need the adapters of AirDB's guides; that in
  /// the third is a program as well.
  private static let folders = [
    "Tests/DocumentationTests", "Tests/GuideAdaptersTests", "Tests/Examples/CheckAdapter",
  ]

  /// The parts between "example" and "end" of the files whose names end in "Examples.swift", by their
  /// names. Parts of one name belong together, with an empty line between them.
  private func compiledExamples() throws -> [String: String] {
    var examples: [String: String] = [:]
    var name: String?
    var lines: [Substring] = []
    let files = try Self.folders.flatMap { folder in
      try FileManager.default.contentsOfDirectory(
        at: Self.root.appendingPathComponent(folder), includingPropertiesForKeys: nil)
    }
    for file in files where file.lastPathComponent.hasSuffix("Examples.swift") {
      for line in try String(contentsOf: file, encoding: .utf8).split(
        separator: "\n", omittingEmptySubsequences: false)
      {
        let text = line.drop(while: { $0 == " " })
        if text.hasPrefix("// example: ") {
          name = String(text.dropFirst("// example: ".count))
          lines = []
        } else if text == "// end", let known = name {
          let part = Self.withoutIndentation(lines)
          examples[known] = examples[known].map { $0 + "\n\n" + part } ?? part
          name = nil
        } else if name != nil {
          lines.append(line)
        }
      }
    }
    return examples
  }

  private static func withoutIndentation(_ lines: [Substring]) -> String {
    let indentation = lines.filter { !$0.isEmpty }.map { $0.prefix { $0 == " " }.count }.min() ?? 0
    return lines.map { $0.dropFirst(indentation) }.joined(separator: "\n")
  }

  /// The blocks of Swift in the README, in the articles, and in the comments of the sources.
  private func documentedExamples() throws -> [(place: String, example: String)] {
    let sources = FileManager.default.enumerator(
      at: Self.root.appendingPathComponent("Sources"), includingPropertiesForKeys: nil)
    let files = (sources?.allObjects as? [URL] ?? []).filter {
      ["md", "swift"].contains($0.pathExtension)
    }
    var examples: [(place: String, example: String)] = []
    for file in [Self.root.appendingPathComponent("README.md")] + files {
      let isSource = file.pathExtension == "swift"
      let text = try String(contentsOf: file, encoding: .utf8)
      var block: [Substring]?
      // In an item of a list a block is indented.
      var indentation = 0
      for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
        guard let whole = isSource ? Self.comment(line) : line else { continue }
        if block == nil { indentation = whole.prefix { $0 == " " }.count }
        let content = whole.dropFirst(min(indentation, whole.prefix { $0 == " " }.count))
        if let lines = block, content == "```" {
          examples.append((file.lastPathComponent, lines.joined(separator: "\n")))
          block = nil
        } else if content == "```swift" {
          block = []
        } else {
          block?.append(content)
        }
      }
    }
    return examples
  }

  /// What a line says if it is a documentation comment.
  private static func comment(_ line: Substring) -> Substring? {
    let text = line.drop(while: { $0 == " " })
    guard text.hasPrefix("///") else { return nil }
    let content = text.dropFirst(3)
    return content.first == " " ? content.dropFirst() : content
  }
}
