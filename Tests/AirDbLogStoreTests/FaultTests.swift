import AirDbLogStore
import TestSupport
import Testing

/// Fault model F2: calls fail, and the engine says truly what has become of a batch (G4).
@Suite("Failing calls")
struct FaultTests {
  @Test(
    "Whichever call fails, outcomes are told truly, and what is acknowledged afterwards survives",
    arguments: [Durability.powerLoss, .processCrash])
  func everyCall(_ durability: Durability) throws {
    let script = EngineScript.short(durability)
    let calls = try FaultCase.calls(of: script)
    let cases = calls.enumerated().flatMap { FaultCase.cases($1, $0 + 1) }
    let counts = Locked((refusals: 0, unknowns: 0, images: 0))
    let violations = forEachInThreads(cases) { fault in
      let run = FaultRun(script, fault)
      let images = try run.run()
      let examination = EngineExamination(script)
      for image in images {
        do {
          try examination.examine(image, isThorough: false)
        } catch {
          throw OracleViolation("\(image.origin): \(error)")
        }
      }
      counts.withLock {
        $0.refusals += run.refusals
        $0.unknowns += run.unknowns
        $0.images += images.count
      }
    }
    for violation in violations { Issue.record("\(violation)") }
    let found = counts.withLock { $0 }
    print(
      "Failing calls, \(script.name): \(calls.count) calls, \(cases.count) faults,",
      "\(found.refusals) refusals, \(found.unknowns) unknown outcomes, \(found.images) images")
  }
}
