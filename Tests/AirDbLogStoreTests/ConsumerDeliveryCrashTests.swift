import AirDbLogStore
import TestSupport
import Testing

/// Deliveries that a crash ends, at every operation.
struct ConsumerDeliveryCrashTests {
  /// What the receiver has, which survives: it is elsewhere.
  private final class Receiver: Sendable {
    let sequences = Locked<[UInt64]>([])
  }

  private static func open(
    _ files: SimulatedFileSystem, _ durability: Durability
  ) throws -> ChangeStore {
    var configuration = Configuration.tiny
    configuration.durability = durability
    return try ChangeStore(
      path: "/store", configuration, platform: files, scheduler: ManualScheduler())
  }

  private static func deliver(_ store: ChangeStore, _ receiver: Receiver) async throws {
    let filter = CommitFilter(excludedAuthors: ["other"])
    try await store.consumer(named: "x", retaining: .history()).deliver(matching: filter, limit: 3)
    {
      page in
      receiver.sequences.withLock { $0 += page.commits.map(\.position.sequence) }
    }
  }

  /// A store with commits, and then deliveries and commits in turn.
  private static func run(
    _ files: SimulatedFileSystem, _ durability: Durability, _ receiver: Receiver
  ) async throws {
    let store = try open(files, durability)
    for round in 0..<3 {
      for number in 0..<8 {
        try store.applyAndWait(
          [change("\(round) \(number)", time(round * 100 + number))],
          author: number > 4 ? "other" : "own")
      }
      try await deliver(store, receiver)
    }
  }

  @Test(
    "Killed or without power at any operation, a delivery goes on and leaves nothing out",
    arguments: [Durability.powerLoss, .processCrash])
  func everyOperation(_ durability: Durability) async throws {
    let whole = SimulatedFileSystem()
    let receiver = Receiver()
    try await Self.run(whole, durability, receiver)
    #expect(receiver.sequences.withLock { $0.count } == 15)
    let operations = whole.operations.count
    var repeated = 0
    for operation in 1...operations {
      let files = SimulatedFileSystem()
      let receiver = Receiver()
      files.losePower(at: operation)
      _ = try? await Self.run(files, durability, receiver)
      let had = receiver.sequences.withLock { $0 }
      for rule in [SurvivorRule.none, .all, .allButLast] {
        let image = files.image(rule, granularity: .sector)
        repeated += try await Self.goOn(image, durability, had, "operation \(operation), \(rule)")
      }
    }
    #expect(repeated > 0)
  }

  /// Answers how many commits come again.
  private static func goOn(
    _ files: SimulatedFileSystem, _ durability: Durability, _ had: [UInt64], _ comment: Comment
  ) async throws -> Int {
    let store = try open(files, durability)
    let consumer = try store.consumer(named: "x", retaining: .history())
    let position = try consumer.position()?.sequence ?? 0
    let end = try store.position?.sequence ?? 0
    #expect(position <= end, comment)
    let own = try store.commits(
      matching: CommitFilter(excludedAuthors: ["other"]), limit: .max
    ).commits.map(\.position.sequence)
    // Nothing was passed that the receiver does not have.
    #expect(own.filter { $0 <= position }.allSatisfy(had.contains), comment)
    let receiver = Receiver()
    try await deliver(store, receiver)
    let more = receiver.sequences.withLock { $0 }
    #expect(Set(had + more).isSuperset(of: own), comment)
    #expect(more == own.filter { $0 > position }, comment)
    #expect(try consumer.lag().commits == 0, comment)
    return more.count { had.contains($0) }
  }
}
