import AirDbLogStore
import TestSupport
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Fault model F2: calls fail, and the engine says truly what has become of a batch (G4). F4: then it
/// crashes, and crashes again while it recovers.
@Suite("Failing calls")
struct FaultTests {
  @Test(
    "Whichever call fails, outcomes are told truly, and what is acknowledged afterwards survives",
    arguments: [EngineScript.short(.powerLoss), .short(.processCrash), .background])
  func everyCall(_ script: EngineScript) throws {
    let calls = try FaultCase.calls(of: script)
    let cases = calls.enumerated().flatMap { FaultCase.cases($1, $0 + 1) }
    let counts = examine(script, cases.map { .call($0) })
    print("Failing calls, \(script): \(calls.count) calls, \(cases.count) faults, \(counts)")
  }

  @Test("A disk of any size: batches are refused until there is space, and reads go on")
  func fullDisk() throws {
    let script = EngineScript.short(.powerLoss)
    let run = ScriptRun(script, on: SimulatedFileSystem())
    try run.run()
    let step: UInt64 = isLongRun ? 64 : 2_048
    let sizes = stride(from: 0, through: run.files.usedBytes + (128 << 10), by: Int(step))
    let counts = examine(script, sizes.map { .capacity($0) })
    print("Full disks: \(Array(sizes).count) sizes, \(counts)")
  }

  @Test("Any number of descriptors: what needs more is refused until there are more")
  func descriptors() throws {
    let counts = examine(.short(.powerLoss), (0...12).map { .descriptors($0) })
    print("Out of descriptors: 13 limits, \(counts)")
  }

  @Test(
    "What a failed sync hid stays discarded, also by another process",
    arguments: [(FaultPlan?.none, true), (FaultPlan(.ignored, kinds: [.truncate]), false)])
  func hiddenFrame(without: FaultPlan?, isHeld: Bool) throws {
    let script = EngineScript("hidden frame", [])
    let run = ScriptRun(script, on: SimulatedFileSystem())
    try run.open(.powerLoss)
    try run.apply([EngineScript.record("a", 1)])
    run.files.inject(
      FaultPlan(.failing(EIO), kinds: [.synchronize], on: .only(1), failedSync: .dropped))
    #expect(throws: LogStoreError.self) { try run.apply([EngineScript.record("b", 2)]) }

    // Another process reads zeros where the second commit was. On the medium it may be.
    let files = run.files.afterProcessDeath()
    if let without { files.inject(without) }
    let examination = EngineExamination(script)
    let trace = run.trace.withLock { $0 }
    let opened = try examination.open(files)
    #expect(try EngineOracle(opened.store).prefix(of: trace, least: 1) == 1)
    let counts = try files.survivorRules().map { rule in
      let store = try examination.open(files.image(rule)).store
      return try EngineOracle(store).prefix(of: trace, least: 1)
    }
    #expect(Set(counts) == (isHeld ? [1] : [1, 2]), "the test notices if nothing is cut")
  }

  private struct Counts: CustomStringConvertible {
    var refusals = 0
    var unknowns = 0
    var images = 0
    var recoveries = 0

    var description: String {
      "\(refusals) refusals, \(unknowns) unknown outcomes, \(images) images, \(recoveries) in recoveries"
    }
  }

  private func examine(_ script: EngineScript, _ troubles: [Trouble]) -> Counts {
    let counts = Locked(Counts())
    let numbered = Array(troubles.enumerated())
    record(
      forEachInThreads(numbered) { number, trouble in
        let run = FaultRun(script, trouble)
        let images = try run.run()
        var examination = EngineExamination(script)
        // A failed sync of the directory may leave the manifest of before, whose liveness is gone.
        examination.allowsRepairs = true
        var recoveries = 0
        // The last crash of some runs is followed by crashes in its recovery.
        if let last = images.last, isLongRun || number % 64 == 0 {
          recoveries = try examination.examineRecovery(last)
        }
        for image in images {
          do {
            try examination.examine(image, isThorough: false)
          } catch {
            throw OracleViolation("\(image): \(error)")
          }
        }
        counts.withLock {
          $0.refusals += run.refusals
          $0.unknowns += run.unknowns
          $0.images += images.count
          $0.recoveries += recoveries
        }
      })
    return counts.withLock { $0 }
  }
}
