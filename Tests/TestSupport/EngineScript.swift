package import AirDbLogStore

/// A run of a store as data, so that it can be repeated with another fault each time.
package struct EngineScript: Sendable, CustomStringConvertible {
  package enum Step: Sendable {
    /// Opens the store, creating it the first time. The one before must be closed or left.
    case open(Durability)
    case apply([ChangeRecord])
    case flush
    /// Runs the work that the store has put off: sealing, background syncs.
    case pump
    case close
    /// Gives the lock back, as an app does that goes into the background, and takes it again.
    case suspend
    case resume
    /// Copies the store to a place of its own.
    case backUp(String)
    /// Drops the store without closing it, as a process does that is killed.
    case leave
    /// Power is lost; the script goes on with what the rule leaves of each sector.
    case losePower(SurvivorRule, LostContent)
  }

  package var name: String
  package var description: String { name }
  package var steps: [Step]
  /// Small segments, so that a few commits roll over, seal and supersede.
  package var configuration: Configuration
  /// Whether work that the store hands to another thread is done before it goes on itself, instead
  /// of at the next `pump`: the extremes of what threads do.
  package var isEager = false

  package init(_ name: String, _ steps: [Step]) {
    self.name = name
    self.steps = steps
    configuration = Self.smallSegments
  }

  package static var smallSegments: Configuration {
    var configuration = Configuration()
    configuration.segmentBytes = 2_048
    configuration.segmentRecords = 6
    configuration.replayBytes = 512
    configuration.cacheBytes = 1 << 20
    return configuration
  }
}

/// Does work when it is told to, or at once.
private final class ScriptScheduler: Scheduler {
  private let later = ManualScheduler()
  private let isEager: Bool

  init(isEager: Bool) { self.isEager = isEager }

  func schedule(_ job: @escaping @Sendable () -> Void) {
    if isEager { job() } else { later.schedule(job) }
  }

  func schedule(afterMilliseconds delay: Int, _ job: @escaping @Sendable () -> Void) {
    later.schedule(afterMilliseconds: delay, job)
  }

  func help() -> Bool { later.help() }

  func run() { later.run() }
}

/// Carries a script out on a platform and keeps the trace.
///
/// `trace` may be read from a hook of the platform, in the middle of a step.
package final class ScriptRun {
  package static let path = "/store"

  /// Another one after each loss of power.
  package private(set) var files: SimulatedFileSystem
  package let script: EngineScript
  /// Called before each call on the file system of the moment.
  private let watch: (@Sendable (SimulatedFileSystem, SimulatedCall) -> Void)?
  package let trace = Locked(EngineTrace())
  package private(set) var store: ChangeStore?
  /// Whether a failed sync takes back what was only visible.
  package var syncsMayDrop = false
  /// What the store reported.
  package let events = Locked<[StoreEvent]>([])
  private var scheduler = ScriptScheduler(isEager: false)
  private var durability = Durability.powerLoss
  private var wasClosed = false
  /// Whether it was told to suspend: it is then, even if that failed.
  private var isSuspended = false

  package init(
    _ script: EngineScript, on files: SimulatedFileSystem,
    watch: (@Sendable (SimulatedFileSystem, SimulatedCall) -> Void)? = nil
  ) {
    self.script = script
    self.files = files
    self.watch = watch
    observe()
  }

  private func observe() {
    guard let watch else { return }
    files.beforeEachCall { [weak files] call in
      if let files { watch(files, call) }
    }
  }

  package func run() throws {
    for step in script.steps { try perform(step) }
  }

  package func perform(_ step: EngineScript.Step) throws {
    switch step {
    case .open(let durability):
      try open(durability)
    case .apply(let batch):
      try apply(batch)
    case .flush:
      try store?.flush(to: .powerLoss)
      trace.withLock { $0.makeDurable() }
    case .pump:
      try pump()
    case .close:
      try store?.close()
      store = nil
      wasClosed = true
      trace.withLock { $0.makeDurable() }
    case .suspend:
      let wasSuspended = isSuspended
      isSuspended = true
      try store?.suspend()
      if !wasSuspended { trace.withLock { $0.makeDurable() } }
    case .resume:
      try store?.resume()
      isSuspended = false
      try resolve()
    case .backUp(let path):
      // Everything that is visible is synced first.
      try store?.backUp(to: path)
      trace.withLock { $0.makeDurable() }
    case .leave:
      leave()
    case .losePower(let rule, let lost):
      let survivors = files.image(rule, granularity: .sector, lost: lost)
      // What the old store does from now on, it does to a disk that is no more.
      files.beforeEachCall(nil)
      store = nil
      files = survivors
      trace.withLock { $0.losePower() }
      observe()
    }
  }

  package func leave() { store = nil }

  package func open(_ durability: Durability) throws {
    self.durability = durability
    var configuration = script.configuration
    configuration.durability = durability
    configuration.eventHandler = { [events] event in events.withLock { $0.append(event) } }
    scheduler = ScriptScheduler(isEager: script.isEager)
    let store = try ChangeStore(
      path: Self.path, configuration, platform: files, scheduler: scheduler)
    self.store = store
    let storeId = try store.engine.manifest.value.storeId.description
    trace.withLock { $0.storeId = storeId }
    // A store that was closed is not read, so that what it loads on first use is not there yet.
    if !wasClosed { try resolve() }
    wasClosed = false
  }

  /// Takes note of what the store holds now that it has been opened.
  package func resolve() throws {
    guard let store else { return }
    let known = trace.withLock { $0 }
    let least = syncsMayDrop ? known.durable : known.visible
    let count = try EngineOracle(store).prefix(of: known, least: least)
    let sequence = try store.position?.sequence ?? 0
    let purges = try EngineOracle(store).purges(of: known)
    try trace.withLock {
      try $0.resolve(count, lastSequence: sequence)
      $0.purgesDone = purges
    }
  }

  package func apply(_ batch: [ChangeRecord]) throws {
    guard let store else { return }
    let expected = try trace.withLock { try $0.begin(batch) }
    let result = try store.applyAndWait(batch)
    try expect(
      result.accepted == expected.accepted && result.superseded == expected.superseded
        && result.conflictingTies == expected.conflictingTies,
      "a batch had the outcome \(result), not \(expected)")
    guard let position = result.position else { return }
    try trace.withLock {
      try $0.acknowledge(position.sequence, durably: durability == .powerLoss)
    }
  }

  /// Runs what was put off. All of it done, everything visible is durable: the background sync of a
  /// store that does not sync its commits is among it.
  package func pump() throws {
    let before = events.withLock { $0.count }
    scheduler.run()
    let hasFailed = events.withLock { events in
      events[before...].contains { event in
        if case .failed = event { true } else { false }
      }
    }
    if !hasFailed, !files.isPowerLost { trace.withLock { $0.makeDurable() } }
  }
}
