import AirDbLogStore
import TestSupport
import Testing

/// Each sync of the engine and each edge of its order is taken away in turn, at the seam: the crash
/// suite must notice. One that it does not miss is one that the engine does not need.
@Suite("Teeth of the crash suite")
struct TeethTests {
  /// One call that does not do what it says.
  struct Tooth: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let script: EngineScript
    let kind: SimulatedCall.Kind
    let suffix: String
    /// It is the first such call behind the so-and-so-many-th call of this kind.
    let marker: (kind: SimulatedCall.Kind, suffix: String, number: Int)
    let outcome: FaultPlan.Outcome

    init(
      _ name: String, _ kind: SimulatedCall.Kind, _ suffix: String,
      behind marker: (SimulatedCall.Kind, String, Int), in script: EngineScript,
      _ outcome: FaultPlan.Outcome = .ignored
    ) {
      testDescription = name
      self.script = script
      self.kind = kind
      self.suffix = suffix
      self.marker = marker
      self.outcome = outcome
    }

    private func matches(
      _ call: SimulatedCall, _ kind: SimulatedCall.Kind, _ suffix: String
    ) -> Bool {
      call.kind == kind && (call.path.hasSuffix(suffix) || call.target?.hasSuffix(suffix) == true)
    }

    func plan() throws -> FaultPlan {
      var markers = 0
      var number = 0
      for call in try FaultCase.calls(of: script) {
        if matches(call, kind, suffix) {
          number += 1
          if markers >= marker.number {
            return FaultPlan(outcome, kinds: [kind], pathSuffix: suffix, on: .only(number))
          }
        }
        if matches(call, marker.kind, marker.suffix) { markers += 1 }
      }
      throw OracleViolation("the script has no such call")
    }
  }

  private static let short = EngineScript.short(.powerLoss)
  /// The seal comes before the background sync.
  private static var sealing: EngineScript {
    var script = EngineScript(
      "sealing",
      [
        .open(.processCrash), .apply([EngineScript.record("a", 1, 2_100)]),
        .apply([EngineScript.record("b", 2)]), .pump,
      ])
    script.isEager = true
    return script
  }
  private static let flushing = EngineScript(
    "flushing", [.open(.processCrash), .apply([EngineScript.record("a", 1)]), .flush])
  private static let closing = EngineScript(
    "closing", [.open(.processCrash), .apply([EngineScript.record("a", 1)]), .close])
  private static let recovering = EngineScript(
    "recovering",
    [.open(.processCrash), .apply([EngineScript.record("a", 1)]), .leave, .open(.processCrash)])

  static let syncs: [Tooth] = [
    Tooth(
      "creating: the entry of the directory", .synchronizeDirectory, "/",
      behind: (.createDirectory, "/store", 1), in: short),
    Tooth(
      "creating: the manifest", .synchronize, "MANIFEST.new", behind: (.create, "MANIFEST.new", 1),
      in: short),
    Tooth(
      "creating: the manifest's entry", .synchronizeDirectory, "/store",
      behind: (.rename, "MANIFEST", 1), in: short),
    Tooth(
      "claiming an epoch: the manifest", .synchronize, "MANIFEST.new",
      behind: (.create, "MANIFEST.new", 2), in: short),
    Tooth(
      "claiming an epoch: its entry", .synchronizeDirectory, "/store",
      behind: (.rename, "MANIFEST", 2), in: short),
    Tooth(
      "a new segment: its entry", .synchronizeDirectory, "/store",
      behind: (.create, ".segment", 1), in: short),
    Tooth(
      "a new segment's entry, without a sync of each commit", .synchronizeDirectory, "/store",
      behind: (.create, ".segment", 1), in: flushing),
    Tooth("a commit", .synchronize, ".segment", behind: (.write, ".segment", 3), in: short),
    Tooth(
      "the first commit of a segment", .synchronize, ".segment",
      behind: (.write, ".segment", 2), in: short),
    Tooth("a flush", .synchronize, ".segment", behind: (.write, ".segment", 2), in: flushing),
    Tooth("a close", .synchronize, ".segment", behind: (.write, ".segment", 2), in: closing),
    Tooth(
      "sealing: the segment", .synchronize, "1.segment", behind: (.truncate, ".segment", 1),
      in: sealing),
    Tooth(
      "the background sync behind a seal", .synchronize, "2.segment",
      behind: (.truncate, ".segment", 1), in: sealing),
    Tooth(
      "sealing: the index", .synchronize, ".index.new", behind: (.create, ".index.new", 1),
      in: short),
    Tooth(
      "sealing: the liveness", .synchronize, ".liveness", behind: (.create, ".liveness", 1),
      in: short),
    Tooth(
      "sealing: the entry of the index", .synchronizeDirectory, "/store",
      behind: (.rename, ".index", 1), in: short),
    Tooth(
      "sealing: the entry of the liveness", .synchronizeDirectory, "/store",
      behind: (.create, ".liveness", 1), in: short),
    Tooth(
      "sealing: the manifest", .synchronize, "MANIFEST.new", behind: (.rename, ".index", 1),
      in: short),
    Tooth(
      "closing: the manifest's entry, before the old liveness goes", .synchronizeDirectory,
      "/store", behind: (.rename, "MANIFEST", 5), in: short),
    Tooth(
      "recovering: the tail", .synchronize, ".segment", behind: (.truncate, ".segment", 1),
      in: recovering),
  ]

  static let edges: [Tooth] = [
    Tooth(
      "a manifest is synced behind its rename", .synchronize, "MANIFEST.new",
      behind: (.create, "MANIFEST.new", 2), in: short, .delayed),
    Tooth(
      "a sealing manifest is synced behind its rename", .synchronize, "MANIFEST.new",
      behind: (.rename, ".index", 1), in: short, .delayed),
    Tooth(
      "a commit is synced behind its acknowledgement", .synchronize, ".segment",
      behind: (.write, ".segment", 3), in: short, .delayed),
  ]

  @Test("Without this sync, the crash suite fails", arguments: syncs)
  func sync(_ tooth: Tooth) throws { try expectNotice(tooth) }

  @Test("In another order, the crash suite fails", arguments: edges)
  func edge(_ tooth: Tooth) throws { try expectNotice(tooth) }

  @Test(
    "If a segment whose sync failed is not copied durably, the fault suite fails",
    arguments: [
      FaultPlan(.ignored, kinds: [.synchronize], pathSuffix: ".segment.new"),
      FaultPlan(.delayed, kinds: [.synchronize], pathSuffix: ".segment.new"),
    ])
  func copies(_ without: FaultPlan) throws {
    let script = EngineScript.short(.powerLoss)
    let calls = try FaultCase.calls(of: script)
    let cases = calls.enumerated().flatMap { number, call in
      call.kind == .synchronize ? FaultCase.cases(call, number + 1) : []
    }
    let examination = EngineExamination(script)
    let violations = forEachInThreads(cases, most: 1) { fault in
      for image in try FaultRun(script, .call(fault), without: without).run() {
        try examination.examine(image, isThorough: false)
      }
    }
    #expect(!violations.isEmpty)
  }

  private func expectNotice(_ tooth: Tooth) throws {
    var effort = CrashImages.Effort.standard
    effort.granularity = .operation
    effort.losses = [.garbage(seed: 1)]
    let plan = try tooth.plan()
    do {
      let sweep = try CrashSweep(tooth.script, effort, faults: [plan])
      #expect(!sweep.examine(most: 1).isEmpty)
    } catch {
      // The script itself comes upon it.
    }
  }
}
