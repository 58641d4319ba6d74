import AirDbLogStore
import TestSupport
import Testing

/// Failure 14 of other engines: many segments under a small limit of descriptors.
@Suite("Few descriptors")
struct FaultDescriptorTests {
  @Test("14: a store of many more segments than descriptors is written, read and checked")
  func manySegments() throws {
    let count = isLongRun ? 5_000 : 300
    let files = SimulatedFileSystem()
    files.descriptorLimit = 64
    let scheduler = ManualScheduler()
    var configuration = EngineScript.smallSegments
    configuration.segmentRecords = 1
    let store = try ChangeStore(
      path: "/store", configuration, platform: files, scheduler: scheduler)
    var model = ReferenceModel()
    for number in 0..<count {
      // Every tenth supersedes the one ten before it.
      let id = number % 10 == 0 ? "often" : "id \(number)"
      let batch = [EngineScript.record(id, number)]
      try store.applyAndWait(batch)
      try model.apply(batch)
      scheduler.run()
      #expect(files.openDescriptorCount <= 64)
    }
    try store.close()
    #expect(files.openDescriptorCount == 0)

    let again = try ChangeStore(
      path: "/store", configuration, platform: files, scheduler: scheduler)
    #expect(try again.statistics().sealedSegments >= count - 1)
    let oracle = EngineOracle(again)
    try oracle.check(model, absent: EngineExamination.absent)
    if !isLongRun { try oracle.verify() }
    #expect(files.openDescriptorCount <= 64)
    print("Few descriptors: \(count) segments under a limit of 64")
  }
}
