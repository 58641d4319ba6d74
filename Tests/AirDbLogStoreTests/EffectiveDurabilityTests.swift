import AirDbLogStore
import Testing

/// A platform that cannot make content stable, as Apple's cannot on some file systems, is told.
struct EffectiveDurabilityTests {
  /// Memory whose syncs reach the device only.
  struct DevicePlatform: WrappedPlatform {
    let wrapped = MemoryPlatform()

    func synchronize(
      _ file: FileDescriptor, to level: SyncLevel
    ) throws(SystemError) -> SyncLevel {
      min(try wrapped.synchronize(file, to: level), .device)
    }
  }

  private func open(
    _ platform: any Platform, _ durability: Durability, _ reductions: Locked<Int>
  ) throws -> ChangeStore {
    var configuration = Configuration()
    configuration.durability = durability
    configuration.eventHandler = { event in
      if case .durabilityReduced = event { reductions.withLock { $0 += 1 } }
    }
    return try ChangeStore(path: "/store", configuration, platform: platform)
  }

  @Test func aReducedDurabilityIsToldOnce() throws {
    let reductions = Locked(0)
    let store = try open(DevicePlatform(), .powerLoss, reductions)
    for number in 0..<3 { try store.applyAndWait([change("a", time(number))]) }
    #expect(try store.effectiveDurability == .processCrash)
    #expect(reductions.withLock { $0 } == 1)
    try store.close()
  }

  @Test func soIsAFlushThatReachesLessThanItWasAskedFor() throws {
    let reductions = Locked(0)
    let store = try open(DevicePlatform(), .processCrash, reductions)
    try store.applyAndWait([change("a", time(0))])
    #expect(reductions.withLock { $0 } == 0)
    try store.flush(to: .powerLoss)
    #expect(reductions.withLock { $0 } == 1)
    #expect(try store.effectiveDurability == .processCrash)
    try store.close()
  }

  @Test(arguments: [Durability.powerLoss, .processCrash])
  func aPlatformThatDoesAsAskedIsNot(_ durability: Durability) throws {
    let reductions = Locked(0)
    let store = try open(MemoryPlatform(), durability, reductions)
    try store.applyAndWait([change("a", time(0))])
    try store.flush(to: .powerLoss)
    #expect(try store.effectiveDurability == durability)
    #expect(reductions.withLock { $0 } == 0)
    try store.close()
  }
}
