import AirDbAdapterTesting
import Testing

/// How the kit treats factories, errors, calls that do not return, and its own cancellation.
struct HarnessTests {
  private struct Broken: Error, CustomStringConvertible {
    var description: String { "broken" }
  }

  /// Counts adapters that are made and disposed of.
  private actor Counter {
    var made = 0
    var disposed = 0

    func make() { made += 1 }
    func dispose() { disposed += 1 }
  }

  @Test(arguments: [Set<Flaw>(), [.lastArrivalWins]])
  func everyAdapterIsDisposedOf(flaws: Set<Flaw>) async {
    let counter = Counter()
    let conformance = AdapterConformance(
      makeAdapter: {
        await counter.make()
        return FlawedAdapter(flaws)
      },
      dispose: { _ in await counter.dispose() })
    let report = await conformance.run([.order, .lastWriterWins])
    #expect(report.isConforming == flaws.isEmpty)
    #expect(await counter.made > 10)
    #expect(await counter.made == counter.disposed)
  }

  @Test func anAdapterThatCannotBeMadeIsAFailure() async throws {
    let report = await AdapterConformance { () -> ReferenceAdapter in throw Broken() }
      .run([.order])
    let failure = try #require(report.failures.first)
    #expect(failure.expected == "a fresh adapter")
    #expect(failure.actual == "error: broken")
  }

  @Test func anAdapterThatCannotBeDisposedOfIsAFailure() async throws {
    let conformance = AdapterConformance(
      makeAdapter: { ReferenceAdapter() }, dispose: { _ in throw Broken() })
    let report = await conformance.run([.order])
    #expect(report.failures.first?.actual == "error: broken")
  }

  @Test func withoutNodesTheDefaultOnesAreTaken() async {
    var options = AdapterConformance.Options()
    options.nodes = []
    let conformance = AdapterConformance(options: options, makeAdapter: { ReferenceAdapter() })
    let report = await conformance.run([.order, .latest])
    #expect(report.isConforming, "\(report)")
  }

  @Test func anErrorOfACallIsAFailure() async throws {
    let report = await conformance(of: [.refusesEmptyBatches]).run([.empty])
    let failure = try #require(report.failures.first)
    #expect(failure.expected == "no error")
    #expect(failure.actual == "error: Refusal()")
  }

  /// Reads wait until they are let go.
  private actor StuckAdapter: AirDbAdapter {
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private var isReleased = false

    func getChangesSince(sinceHlcTimestamp: String?, limit: Int) async throws -> [ChangeRecord] {
      if !isReleased { await withCheckedContinuation { waiting.append($0) } }
      return []
    }

    func applyChanges(_ changes: [ChangeRecord]) {}
    func getLatestHlc() -> String? { nil }

    func release() {
      isReleased = true
      for continuation in waiting { continuation.resume() }
      waiting = []
    }
  }

  @Test func aCallThatDoesNotReturnIsAFailureAfterTheTimeLimit() async throws {
    let adapter = StuckAdapter()
    var options = AdapterConformance.Options()
    options.timeLimit = .milliseconds(20)
    let report = await AdapterConformance(options: options) { adapter }.run([.order, .deletions])
    #expect(report.failures.map(\.check) == [.order, .deletions])
    #expect(report.failures.first?.actual == "the adapter did not return")
    await adapter.release()
  }

  @Test func withinTheTimeLimitTheResultIsThatOfTheCheck() async {
    var options = AdapterConformance.Options()
    options.timeLimit = .seconds(3_600)
    let good = await AdapterConformance(options: options) { ReferenceAdapter() }.run([.order])
    #expect(good.isConforming)
    let bad = await conformance(of: [.ordersByArrival], options: options).run([.order])
    #expect(bad.failures.first?.input.isEmpty == false)
  }

  @Test func aCancelledRunSkipsWhatIsLeft() async {
    let report = await Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await AdapterConformance { ReferenceAdapter() }.run([.order, .limit])
    }.value
    #expect(report.isConforming)
    for outcome in report.outcomes {
      guard case .skipped = outcome.result else {
        Issue.record("\(outcome.check) was not skipped")
        continue
      }
    }
    #expect(report.outcomes.count == 2)
  }
}
