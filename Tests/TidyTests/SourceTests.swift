import Testing

/// Rules for the sources.
struct SourceTests {
  private static let greatestLineCount = 600

  @Test func filesAreShort() {
    for file in Repository.files(in: "Sources/", ending: ".swift") {
      #expect(
        file.lines.count <= Self.greatestLineCount, "\(file.path): \(file.lines.count) lines")
    }
  }

  /// What can crash the app that the library is a part of, other than by a broken promise.
  @Test func nothingTraps() {
    for file in Repository.files(in: "Sources/", ending: ".swift") {
      for trap in ["try!", "fatalError(", "as!", "unowned(unsafe)"] {
        let isThere = file.code.contains(trap)
        #expect(!isThere, "\(file.path): \(trap)")
      }
    }
  }

  /// With FoundationEssentials an app on Linux need not carry ICU. Apple platforms have no such part.
  @Test func theLibraryImportsFoundationOnlyWhereThereIsNoOther() throws {
    let folders = ["HlcText", "AirDbContract", "AirDbLogStore", "AirDbAdapterTesting"]
    for folder in folders.map({ "Sources/\($0)/" }) {
      for file in Repository.files(in: folder, ending: ".swift") {
        let lines = file.lines.map { $0.drop(while: \.isWhitespace) }
        for (index, line) in lines.enumerated() where line.contains(/import Foundation$/) {
          let isConditional =
            index > 0 && ["#else", "#if canImport(Darwin)"].contains(lines[index - 1])
          #expect(isConditional, "\(file.path):\(index + 1)")
        }
      }
    }
  }
}

/// The floors of the engine: each may use those below it.
struct FloorTests {
  private static let floors = ["Platform", "Format", "Segments", "Indexes", "Engine", "API"]

  /// Public types that floors below the API speak of as well.
  private static let vocabulary: [String: Set<String>] = [
    "Segments": ["LogStoreError"],
    "Engine": [
      "LogStoreError", "Durability", "Configuration", "StoreEvent", "Statistics",
      "VerificationReport", "Position", "CleaningPolicy", "SpaceReport", "CompactionEstimate",
      "HybridLogicalClock",
    ],
  ]

  /// Types that are declared at the top of a file, and the number of their floor.
  private static let owners: [String: Int] = {
    let declaration =
      /(?m)^(?:@\w+\s+)*(?:(?:public|package|internal|final|indirect)\s+)*(?:struct|class|enum|protocol|actor|typealias)\s+(\w+)/
    var owners: [String: Int] = [:]
    for (number, floor) in floors.enumerated() {
      for file in Repository.files(in: "Sources/AirDbLogStore/\(floor)/", ending: ".swift") {
        for match in file.code.matches(of: declaration) { owners[String(match.1)] = number }
      }
    }
    return owners
  }()

  @Test func everyFileIsOnAFloor() {
    for file in Repository.files(in: "Sources/AirDbLogStore/", ending: ".swift") {
      let folder = file.path.split(separator: "/")[2]
      #expect(Self.floors.contains(String(folder)) || folder == "Contract.swift", "\(file.path)")
    }
    for (number, floor) in Self.floors.enumerated() {
      #expect(Self.owners.values.contains(number), "no type is declared in \(floor)")
    }
  }

  @Test(arguments: floors.indices)
  func aFloorUsesWhatIsBelow(_ number: Int) {
    let floor = Self.floors[number]
    for file in Repository.files(in: "Sources/AirDbLogStore/\(floor)/", ending: ".swift") {
      let words = Set(file.code.matches(of: /\b[A-Z]\w+\b/).map { String($0.0) })
      for word in words.subtracting(Self.vocabulary[floor] ?? []).sorted() {
        guard let owner = Self.owners[word], owner > number else { continue }
        Issue.record("\(file.path): \(word) belongs to \(Self.floors[owner])")
      }
    }
  }
}
