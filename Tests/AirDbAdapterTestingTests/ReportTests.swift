import AirDbAdapterTesting
import Testing

/// What the report says, and how what fails is made small.
struct ReportTests {
  typealias Check = AdapterConformance.Check

  private func failure(
    _ flaws: Set<Flaw>, _ check: Check, _ options: AdapterConformance.Options = .init()
  ) async throws -> AdapterConformance.Failure {
    try #require(await conformance(of: flaws, options: options).run([check]).failures.first)
  }

  @Test func aFailureNamesInputExpectedAndActual() async throws {
    let failure = try await failure([.splitsEqualTimestamps], .equalTimestamps)
    #expect(
      "\(failure)" == """
        equal-timestamps: No change is lost where a page ends among changes of equal timestamps
        input:
          apply
            "notes" "id5-4" insert at "1700000000005-0000-a" payload empty
            "notes" "id5-5" insert at "1700000000005-0000-a" payload empty
          read all pages, limit 1
        expected: 2 changes:
            "notes" "id5-4" insert at "1700000000005-0000-a" payload empty
            "notes" "id5-5" insert at "1700000000005-0000-a" payload empty
        actual: 1 change:
            "notes" "id5-4" insert at "1700000000005-0000-a" payload empty
        """)
  }

  @Test func theReportHasALineForEachCheck() async {
    let report = await AdapterConformance { FlawedAdapter([.latestOfNothingIsEmpty]) }
      .run([.order, .empty, .reopening])
    #expect(!report.isConforming)
    #expect(
      "\(report)" == """
        passed  order
        FAILED  empty: A fresh adapter has no changes and no latest timestamp
                input:
                  read the latest timestamp
                expected: nil
                actual: ""
        skipped reopening: No way to reopen the adapter was given.
        1 passed, 1 failed, 1 skipped
        """)
  }

  /// The changes that are needed are two of one key, and a read.
  @Test func aRandomScriptIsMadeSmall() async throws {
    let failure = try await failure([.unsignedNeverReplacesSigned], .randomScripts)
    let changes = failure.input.flatMap { $0.batches.joined() }
    #expect(changes.count == 2)
    #expect(Set(changes.map(\.id)).count == 1)
    #expect(changes.first?.signature?.isEmpty == false)
    #expect(changes.last?.signature == nil)
    #expect(failure.input.count <= 3)
  }

  @Test func theSeedOfARandomScriptBringsItBack() async throws {
    var options = AdapterConformance.Options()
    options.seed = 1_000
    let first = try await failure([.unsignedNeverReplacesSigned], .randomScripts, options)
    options.seed = try #require(first.seed)
    options.randomScripts = 1
    let second = try await failure([.unsignedNeverReplacesSigned], .randomScripts, options)
    #expect("\(second)" == "\(first)")
  }

  @Test func withoutAttemptsTheScriptStaysAsItWas() async throws {
    var options = AdapterConformance.Options()
    options.shrinkAttempts = 0
    let whole = try await failure([.unsignedNeverReplacesSigned], .randomScripts, options)
    options.shrinkAttempts = 5
    let smaller = try await failure([.unsignedNeverReplacesSigned], .randomScripts, options)
    #expect(whole.input.count > 3)
    #expect(smaller.input.count <= whole.input.count)
  }

  @Test func idsAreDistinctAndTextsAreThere() {
    #expect(Set(Check.all.map(\.id)).count == Check.all.count)
    for check in Check.all {
      #expect(check.id.allSatisfy { $0 == "-" || ("a"..."z").contains($0) }, "\(check)")
      #expect(!check.title.isEmpty && !check.explanation.isEmpty, "\(check)")
    }
  }
}
