import AirDbLogStore
import TestSupport
import Testing

/// Migrations into a store that lose power, at every operation, and go on from the last checkpoint.
struct MigrationCrashTests {
  private static func open(
    _ files: SimulatedFileSystem, _ durability: Durability
  ) throws -> ChangeStore {
    var configuration = Configuration.tiny
    configuration.durability = durability
    return try ChangeStore(
      path: "/store", configuration, platform: files, scheduler: ManualScheduler())
  }

  private static let count = 24

  /// Runs of three equal timestamps, in pages that split them.
  private static func makeSource() throws -> SplittingAdapter {
    let source = try ChangeStore.inMemory()
    try source.applyAndWait((0..<count).map { change("id \($0)", time($0 / 3)) })
    return SplittingAdapter(source)
  }

  private static func migrate(
    _ files: SimulatedFileSystem, _ durability: Durability, from source: SplittingAdapter,
    _ checkpoint: Locked<Migration.Checkpoint?>
  ) async throws -> Migration {
    let known = checkpoint.withLock { $0 }
    return try await open(files, durability).migrate(from: source, pageSize: 7, resuming: known) {
      progress in
      checkpoint.withLock { $0 = progress.checkpoint }
    }
  }

  /// All before a checkpoint is there: the comparison has nothing to bring, though the store itself
  /// promises its commits no more than to survive the process.
  @Test(
    "What a checkpoint speaks of survives a loss of power",
    arguments: [Durability.powerLoss, .processCrash])
  func everyOperation(_ durability: Durability) async throws {
    let source = try Self.makeSource()
    let whole = SimulatedFileSystem()
    let result = try await Self.migrate(whole, durability, from: source, Locked(nil))
    #expect(result.isVerified && result.copied == Self.count)
    var resumed = 0
    for operation in 1...whole.operations.count {
      let files = SimulatedFileSystem()
      let checkpoint = Locked<Migration.Checkpoint?>(nil)
      files.losePower(at: operation)
      _ = try? await Self.migrate(files, durability, from: source, checkpoint)
      if (checkpoint.withLock { $0 }) != nil { resumed += 1 }
      for rule in [SurvivorRule.none, .allButLast] {
        let known = Locked(checkpoint.withLock { $0 })
        let image = files.image(rule, granularity: .sector)
        let result = try await Self.migrate(image, durability, from: source, known)
        #expect(
          result.isVerified && result.late == 0 && result.copied == Self.count,
          "operation \(operation), \(rule): \(result)")
      }
    }
    #expect(resumed > 5)
  }
}
