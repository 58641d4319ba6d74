import Foundation
import Testing

/// The sources of the adapters are the text of the guides, but for the name of one import.
@Suite("The text of the guides")
struct GuideTextTests {
  struct Adapter: CustomTestStringConvertible {
    var file: String
    var guide: String
    var digest: UInt64

    var testDescription: String { file }
  }

  static let adapters = [
    Adapter(file: "GrdbAirDbAdapter", guide: "grdb-adapter-guide", digest: 0xF73B_ECE9_B8F8_0CB8),
    Adapter(
      file: "CoreDataAirDbAdapter", guide: "core-data-adapter-guide", digest: 0x9BB6_7896_9A40_D207),
    Adapter(
      file: "SwiftDataAirDbAdapter", guide: "swiftdata-adapter-guide", digest: 0x7E5D_447B_FF5A_DAFB
    ),
  ]

  /// A folder with the guides as text files, to compare with them in full.
  static let guides = ProcessInfo.processInfo.environment["AIRDB_GUIDES"]

  @Test("an adapter is the one that was taken from its guide", arguments: adapters)
  func digests(adapter: Adapter) throws {
    #expect(fnv1a(try source(adapter)) == adapter.digest)
  }

  @Test(
    "an adapter is the text of its guide",
    .enabled(if: guides != nil, "AIRDB_GUIDES does not name a folder with the guides"),
    arguments: adapters)
  func texts(adapter: Adapter) throws {
    let folder = URL(fileURLWithPath: try #require(Self.guides))
    let guide = try String(
      contentsOf: folder.appendingPathComponent("\(adapter.guide).txt"), encoding: .utf8)
    let start = try #require(guide.range(of: "import AirDbKit\n")).lowerBound
    let end = try #require(guide.lastIndex(of: "}"))
    #expect(try source(adapter) == guide[start...end] + "\n")
  }

  /// The source of an adapter from its imports on, with the import of the guide.
  private func source(_ adapter: Adapter) throws -> String {
    let file = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("GuideAdapters/Adapters/\(adapter.file).swift")
    let text = try String(contentsOf: file, encoding: .utf8)
    let start = try #require(text.range(of: "import AirDbContract\n"))
    return "import AirDbKit\n" + text[start.upperBound...]
  }

  /// The 64-bit FNV-1a hash: enough against edits by accident.
  private func fnv1a(_ text: String) -> UInt64 {
    text.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
  }
}
