import AirDbLogStore
import TestSupport
import Testing

/// Fault model F1: power is lost, or the process killed, at every operation of scripted runs.
@Suite("Crashes")
struct CrashTests {
  @Test(
    "A crash at any operation leaves a prefix with every commit that was to survive it",
    arguments: EngineScript.all)
  func everyOperation(_ script: EngineScript) throws {
    let sweep = try CrashSweep(script)
    for violation in sweep.examine() { Issue.record("\(violation)") }
    print(
      "Crashes, \(script.name): \(sweep.losses.points) crash points,",
      "\(sweep.losses.imageCount) images of which \(sweep.losses.images.count) differ,",
      "\(sweep.deaths.images.count) process deaths")
  }
}

extension EngineScript: CustomTestStringConvertible {
  public var testDescription: String { name }
}
