import Foundation
import Testing

/// The privacy manifest that apps on Apple platforms ship for the library.
struct PrivacyTests {
  @Test func callsThatNeedAReasonAreDeclaredAndNoOthers() throws {
    // Those that Apple lists, as far as a store could want them.
    let categories = [
      ("NSPrivacyAccessedAPICategoryFileTimestamp", /\b[fl]?stat(?:at)?\(|attributesOfItem/),
      ("NSPrivacyAccessedAPICategoryDiskSpace", /\bf?statv?fs\(|volumeAvailable|systemFreeSize/),
      ("NSPrivacyAccessedAPICategorySystemBootTime", /systemUptime|mach_absolute_time/),
      ("NSPrivacyAccessedAPICategoryUserDefaults", /UserDefaults/),
    ]
    let sources = ["HlcText", "AirDbContract", "CAirDbPlatform", "AirDbLogStore"]
      .flatMap { Repository.files(in: "Sources/\($0)/", ending: "") }
      .filter { $0.path.hasSuffix(".swift") || $0.path.hasSuffix(".c") }
    let used = categories.filter { _, call in sources.contains { $0.code.contains(call) } }

    let file = Repository.root.appendingPathComponent("Sources/AirDbLogStore/PrivacyInfo.xcprivacy")
    let content = try PropertyListSerialization.propertyList(
      from: Data(contentsOf: file), format: nil)
    let manifest = try #require(content as? [String: Any])
    let declared = try #require(manifest["NSPrivacyAccessedAPITypes"] as? [[String: Any]])
    #expect(declared.map { $0["NSPrivacyAccessedAPIType"] as? String } == used.map(\.0))
    // The files lie in the container of the app or of its group.
    for access in declared {
      #expect(access["NSPrivacyAccessedAPITypeReasons"] as? [String] == ["C617.1"])
    }
    #expect(manifest["NSPrivacyTracking"] as? Bool == false)
  }
}
