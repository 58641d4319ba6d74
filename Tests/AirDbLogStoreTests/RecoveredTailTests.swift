import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// What a writer takes up after a kill that left more than one unsealed segment.
struct RecoveredTailTests {
  @Test func eachSegmentIsSealedWithTheDateOfItsOwnLastCommit() throws {
    let system = SimulatedFileSystem(seed: 1)
    var configuration = Configuration()
    configuration.segmentRecords = 2
    // Its jobs are never run, so that the first segment is still unsealed when the writer dies.
    let store = try ChangeStore(
      path: "/store", configuration, platform: system, scheduler: ManualScheduler())
    var dates: [Int64] = []
    for number in 0..<3 {
      try store.applyAndWait([
        ChangeRecord(
          id: "\(number)", collection: "c", type: .insert, payload: Data(),
          hlcTimestamp: "170000000000\(number)-0-n")
      ])
      dates.append(system.clock.milliseconds)
      system.clock.advance(by: 1000)
    }

    let scheduler = ManualScheduler()
    let recovered = try ChangeStore(
      path: "/store", configuration, platform: system.afterProcessDeath(), scheduler: scheduler)
    scheduler.run()
    let manifest = try recovered.engine.manifest.value
    #expect(manifest.segments.map(\.lastCommitDate) == [dates[1]])
    #expect(manifest.lastCommitDate == dates[1])
  }
}
