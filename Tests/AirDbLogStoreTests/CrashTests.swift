import AirDbLogStore
import TestSupport
import Testing

/// Fault models F1 and F4: power is lost, or the process killed, at every operation of scripted runs,
/// and again in the recovery.
@Suite("Crashes")
struct CrashTests {
  @Test(
    "A crash at any operation leaves a prefix with every commit that was to survive it",
    arguments: EngineScript.all)
  func everyOperation(_ script: EngineScript) throws {
    let sweep = try CrashSweep(script)
    record(sweep.examine())
    print(
      "Crashes, \(script): \(sweep.losses.points) crash points,",
      "\(sweep.losses.imageCount) images of which \(sweep.losses.images.count) differ,",
      "\(sweep.deaths.images.count) process deaths")
  }

  @Test("A crash inside a write leaves a prefix, whichever byte was the last")
  func insideWrites() throws {
    let script = EngineScript.short(.powerLoss)
    let sweep = TornSweep(script)
    let points = try sweep.points(byteLimit: 300)
    let examination = EngineExamination(script)
    let count = Locked(0)
    record(
      forEachInThreads(points) { point in
        let images = try sweep.images(point)
        for image in images { try examination.examine(image, isThorough: false) }
        count.withLock { $0 += images.count }
      })
    print("Crashes inside writes: \(points.count) crash points, \(count.withLock { $0 }) images")
  }

  @Test(
    "A crash in the recovery from a crash loses nothing more, however often it happens",
    arguments: [EngineScript.life(.processCrash), .losses(.garbage(seed: 4))])
  func insideRecoveries(_ script: EngineScript) throws {
    let sweep = try CrashSweep(script, .least)
    let images = sweep.losses.images + sweep.deaths.images
    // Of all images one in some, and of those one in some to the second depth.
    let step = isLongRun ? 1 : 8
    let chosen = images.enumerated().filter { $0.offset % step == 0 }
    let count = Locked(0)
    record(
      forEachInThreads(chosen) { number, image in
        let depth = number % (step * 8) == 0 ? 2 : 1
        let found = try sweep.examination.examineRecovery(image, depth: depth)
        count.withLock { $0 += found }
      })
    print(
      "Crashes in recoveries, \(script): \(chosen.count) recoveries,",
      "\(count.withLock { $0 }) images")
  }
}

/// Records violations as issues.
func record(_ violations: [OracleViolation]) {
  for violation in violations { Issue.record("\(violation)") }
}

extension EngineScript: CustomTestStringConvertible {
  public var testDescription: String { name }
}
