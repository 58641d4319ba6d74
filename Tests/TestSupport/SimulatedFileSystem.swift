package import AirDbLogStore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A file system that can lose power at any operation, fail any call, and do it again from the
/// same seed: the fault model F1 and F2.
///
/// Running code sees a live view. Syncing a file makes its content and size durable, not its
/// entry; syncing a directory makes its entries durable. ``image(_:granularity:lost:)`` is what a
/// power loss leaves at this moment, and may be asked for any number of times.
///
/// Calls from several threads are carried out one after the other.
package final class SimulatedFileSystem: Sendable {
  struct State {
    var disk: SimulatedDisk
    var paths: [FileDescriptor: String] = [:]
    var callCount = 0
    var operations: [SimulatedCall] = []
    var faults: [FaultPlan] = []
    var crash: (operation: Int, moment: CrashMoment)?
    var isPowerLost = false
    var capacity: UInt64?
    var descriptorLimit: Int?
    var processIdentifier: Int32 = 1
    var generator: SeededGenerator
    var hook: (@Sendable (SimulatedCall) -> Void)?
  }

  /// How a call is carried out.
  enum Manner {
    case whole
    case partial(Int)
    case failing(FailedSync)
    case delayed
  }

  package let clock: SimulatedClock
  let seed: UInt64
  let device: UInt64
  let state: Locked<State>

  /// A new device each, with the highest bit set, so that no file of two file systems, real ones
  /// included, is ever taken for the same.
  private static let nextDevice = Locked<UInt64>(1 << 63)

  /// An empty file system. The seed decides the random bytes and the order of listings.
  package convenience init(clock: SimulatedClock = SimulatedClock(), seed: UInt64 = 0) {
    self.init(SimulatedDisk(), clock: clock, seed: seed, capacity: nil)
  }

  init(_ disk: SimulatedDisk, clock: SimulatedClock, seed: UInt64, capacity: UInt64?) {
    self.clock = clock
    self.seed = seed
    device = Self.nextDevice.withLock { device in
      defer { device += 1 }
      return device
    }
    state = Locked(
      State(disk: disk, capacity: capacity, generator: SeededGenerator(seed: seed)))
  }

  // MARK: Carrying out calls

  /// Every call on the seam comes through here. `success` is what a call answers that claims to
  /// have done its work, if it can.
  func perform<Result>(
    _ call: SimulatedCall, claiming success: Result?,
    _ body: (inout State, Manner) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    state.withLock { $0.hook }?(call)
    return try state.withLock { (state) throws(SystemError) in
      guard !state.isPowerLost else { throw Self.powerLoss }
      state.callCount += 1
      if call.kind.changesDisk {
        state.operations.append(call)
        if let crash = state.crash, crash.operation == state.operations.count {
          if case .inside(let bytes) = crash.moment, call.kind == .write || call.kind == .reserve {
            _ = try? body(&state, .partial(bytes))
          } else if crash.moment == .after {
            _ = try? body(&state, .whole)
          }
          state.isPowerLost = true
          throw Self.powerLoss
        }
      }
      return try Self.perform(call, claiming: success, Self.strike(call, &state), &state, body)
    }
  }

  private static func perform<Result>(
    _ call: SimulatedCall, claiming success: Result?, _ fault: FaultPlan?, _ state: inout State,
    _ body: (inout State, Manner) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    let isSync = call.kind == .synchronize || call.kind == .synchronizeDirectory
    switch fault?.outcome {
    case .failing(let errno):
      if call.kind == .close { _ = try body(&state, .whole) }
      if isSync && errno != EINTR, let fault { _ = try body(&state, .failing(fault.failedSync)) }
      throw SystemError(errno: errno, call: "\(call.kind)")
    case .short(let count) where call.kind == .read || call.kind == .write:
      return try body(&state, .partial(count))
    case .ignored:
      if let success { return success }
    case .delayed where isSync:
      return try body(&state, .delayed)
    default: break
    }
    return try body(&state, .whole)
  }

  /// The first plan that strikes decides; all of them count.
  private static func strike(_ call: SimulatedCall, _ state: inout State) -> FaultPlan? {
    var struck: FaultPlan?
    for index in state.faults.indices where state.faults[index].strikes(call) {
      struck = struck ?? state.faults[index]
    }
    return struck
  }

  /// What every call fails with once the power is lost.
  package static let powerLoss = SystemError(errno: EIO, call: "power lost")

  /// The path under which a descriptor was opened.
  func path(of file: FileDescriptor) -> String {
    state.withLock { $0.paths[file] ?? "" }
  }
}

// MARK: - Watching

extension SimulatedFileSystem {
  /// The calls so far, of every kind, faults included.
  package var callCount: Int { state.withLock { $0.callCount } }

  /// The calls so far that may change the disk; the crash points, numbered from 1.
  package var operations: [SimulatedCall] { state.withLock { $0.operations } }

  package var openDescriptorCount: Int { state.withLock { $0.disk.live.openDescriptorCount } }

  package var pendingOperations: [PendingOperation] { state.withLock { $0.disk.pending } }

  /// Calls `hook` before each call, on the calling thread and outside every lock, so that it may
  /// wait, call this file system, or cut the power.
  package func beforeEachCall(_ hook: (@Sendable (SimulatedCall) -> Void)?) {
    state.withLock { $0.hook = hook }
  }
}

// MARK: - Setting up

extension SimulatedFileSystem {
  /// Adds a plan. Several may be in force; the first that strikes decides.
  package func inject(_ fault: FaultPlan) {
    state.withLock { $0.faults.append(fault) }
  }

  package func clearFaults() {
    state.withLock { $0.faults = [] }
  }

  /// The bytes that all files together may hold, reserved ones included. Growing beyond fails with
  /// `ENOSPC`. Nil for no limit.
  package var capacity: UInt64? {
    get { state.withLock { $0.capacity } }
    set { state.withLock { $0.capacity = newValue } }
  }

  /// The bytes that all files hold, those that are removed but open included.
  package var usedBytes: UInt64 { state.withLock { $0.usedBytes } }

  /// How many descriptors may be open at once. Opening one more fails with `EMFILE`, and so do
  /// listing and syncing a directory, which need one for a moment. Nil for no limit.
  package var descriptorLimit: Int? {
    get { state.withLock { $0.descriptorLimit } }
    set { state.withLock { $0.descriptorLimit = newValue } }
  }

  /// What the engine takes for its process; changing it is a fork, for the engine's part.
  package func setProcessIdentifier(_ identifier: Int32) {
    state.withLock { $0.processIdentifier = identifier }
  }
}

extension SimulatedFileSystem.State {
  var usedBytes: UInt64 { disk.live.files.values.reduce(0) { $0 + $1.size } }

  /// Fails if no descriptor is left.
  func checkDescriptors(_ call: String) throws(SystemError) {
    guard let descriptorLimit, disk.live.openDescriptorCount >= descriptorLimit else { return }
    throw SystemError(errno: EMFILE, call: call)
  }

  /// Fails if the file cannot grow to this end.
  func checkSpace(
    _ file: FileDescriptor, end: UInt64, _ call: String
  ) throws(SystemError) {
    guard let capacity else { return }
    let size = try disk.live.size(of: file)
    guard end <= size || usedBytes + (end - size) <= capacity else {
      throw SystemError(errno: ENOSPC, call: call)
    }
  }
}

// MARK: - Crashes

extension SimulatedFileSystem {
  /// Loses power at an operation, numbered from 1 as in ``operations``. The call under way and all
  /// later ones fail with ``powerLoss``, so that the caller unwinds; then ask for images.
  package func losePower(at operation: Int, _ moment: CrashMoment = .before) {
    state.withLock { $0.crash = (operation, moment) }
  }

  /// Loses power now.
  package func losePower() {
    state.withLock { $0.isPowerLost = true }
  }

  package var isPowerLost: Bool { state.withLock { $0.isPowerLost } }

  /// The number of units that a crash now would decide about.
  package func pendingCount(_ granularity: Granularity = .operation) -> Int {
    state.withLock { $0.disk.pendingCount(granularity) }
  }

  /// The rules to try for a crash now.
  package func survivorRules(
    _ granularity: Granularity = .operation,
    exhaustiveLimit: Int = SurvivorRule.exhaustiveLimit, seededSubsets: Int = 200
  ) -> [SurvivorRule] {
    SurvivorRule.rules(
      pendingCount: pendingCount(granularity), exhaustiveLimit: exhaustiveLimit,
      seededSubsets: seededSubsets, seed: seed)
  }

  /// The file system after a power loss now, of which these units survived: without descriptors,
  /// locks and faults, and with nothing pending. Shares its bytes with this one until they differ.
  package func image(
    _ rule: SurvivorRule, granularity: Granularity = .operation, lost: LostContent = .old
  ) -> SimulatedFileSystem {
    let (disk, capacity) = state.withLock { ($0.disk, $0.capacity) }
    return SimulatedFileSystem(
      disk.afterPowerLoss(rule, granularity, lost), clock: clock, seed: seed &+ 1,
      capacity: capacity)
  }

  /// The file system after the process was killed but not the system: descriptors and locks are
  /// gone, everything written is there, and what was pending still is.
  package func afterProcessDeath() -> SimulatedFileSystem {
    let (disk, capacity) = state.withLock { ($0.disk, $0.capacity) }
    return SimulatedFileSystem(
      disk.afterProcessDeath(), clock: clock, seed: seed &+ 1, capacity: capacity)
  }
}
