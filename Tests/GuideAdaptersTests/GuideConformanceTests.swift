import AirDbAdapterTesting
import Testing

/// What the conformance kit finds in the adapters of the guides.
///
/// The stand-ins of Core Data and SwiftData compare texts as Swift does, by canonical equivalence;
/// over SQLite, where the system keeps them, their keys may well be told apart.
struct GuideConformanceTests {
  typealias Check = AdapterConformance.Check

  private func conformance(of guide: Guide) -> AdapterConformance {
    var options = AdapterConformance.Options()
    options.randomScripts = 3
    options.shrinkAttempts = 200
    options.largestPayload = 70_000
    // The Core Data guide traps on what does not fit in 16 bits.
    options.unknownTypes = [3, -1, 1_000]
    return switch guide {
    case .grdb: AdapterConformance(options: options) { Guide.makeGrdb() }
    case .coreData: AdapterConformance(options: options) { Guide.makeCoreData() }
    case .swiftData: AdapterConformance(options: options) { try Guide.makeSwiftData() }
    }
  }

  @Test(
    arguments: [
      (.grdb, [.noLimit, .comparator, .equalTimestamps, .batchAtomicity, .randomScripts]),
      (
        .coreData,
        [
          .noLimit, .comparator, .equalTimestamps, .keyPairs, .keyBytes, .batchAtomicity,
          .randomScripts,
        ]
      ),
      (
        .swiftData,
        [
          .comparator, .equalTimestamps, .keyPairs, .keyBytes, .batchAtomicity, .randomScripts,
        ]
      ),
    ] as [(Guide, [Check])])
  func aGuidesAdapterFails(guide: Guide, checks: [Check]) async {
    var asked = Check.all
    // The stand-in knows no negative limits, and what SwiftData does with them is not documented.
    if guide == .swiftData { asked.removeAll { $0 == .noLimit } }
    let report = await conformance(of: guide).run(asked)
    #expect(report.failures.map(\.check) == checks, "\(report)")
  }

  /// Two changes of one timestamp, read in pages of one: the second is never given.
  @Test(arguments: Guide.allCases)
  func theLossAtAPageEdgeIsFoundAndMadeSmall(guide: Guide) async throws {
    let report = await conformance(of: guide).run([.equalTimestamps])
    let failure = try #require(report.failures.first)
    let changes = failure.input.flatMap { $0.batches.joined() }
    #expect(changes.count == 2)
    #expect(Set(changes.map(\.hlcTimestamp)).count == 1)
    #expect(failure.input.count == 2)
    #expect(failure.expected.hasPrefix("2 changes"))
    #expect(failure.actual.hasPrefix("1 change:"))
  }
}
