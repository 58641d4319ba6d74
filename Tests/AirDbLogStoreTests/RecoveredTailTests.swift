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

  /// A record has a version in a sealed segment, in the full segment behind it, and in the active
  /// one. Sealing the full one must leave the first version superseded, by the second.
  @Test func sealingKeepsWhatItsOwnRowsSuperseded() throws {
    let system = SimulatedFileSystem(seed: 2)
    var configuration = Configuration()
    configuration.segmentRecords = 1
    let scheduler = ManualScheduler()
    let store = try ChangeStore(
      path: "/store", configuration, platform: system, scheduler: scheduler)
    let versions = (0..<3).map { number in
      ChangeRecord(
        id: "a", collection: "c", type: .update, payload: Data(),
        hlcTimestamp: "170000000000\(number)-0-n")
    }
    try store.applyAndWait([versions[0]])
    try store.applyAndWait([versions[1]])
    scheduler.run()
    try store.applyAndWait([versions[2]])
    #expect(try store.statistics().sealedSegments == 1)

    let dead = system.afterProcessDeath()
    let recovered = try ChangeStore(
      path: "/store", configuration, platform: dead, scheduler: scheduler)
    scheduler.run()
    #expect(try recovered.statistics().sealedSegments == 2)
    #expect(try recovered.changes(limit: 10).records == [versions[2]])

    let again = try ChangeStore(
      path: "/store", configuration, platform: dead.afterProcessDeath(),
      scheduler: ManualScheduler())
    #expect(try again.changes(limit: 10).records == [versions[2]])
    #expect(try again.verify().problems.map(\.reason) == [])
  }
}
