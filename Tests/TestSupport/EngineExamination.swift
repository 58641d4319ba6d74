package import AirDbLogStore

/// Opens what a crash left, and checks all that the guarantees say of it.
package struct EngineExamination: Sendable {
  package let script: EngineScript
  /// Whether derived data may have to be built again. Never after a mere crash: syncs see to that.
  package var allowsRepairs = false

  package init(_ script: EngineScript) { self.script = script }

  /// A store that is open, and what it reported.
  package struct Opened {
    package let store: ChangeStore
    package let scheduler: ManualScheduler
    package let events: Locked<[StoreEvent]>
  }

  /// Opens the store in an image.
  package func open(
    _ files: SimulatedFileSystem, _ durability: Durability = .powerLoss, isReadOnly: Bool = false
  ) throws -> Opened {
    let events = Locked<[StoreEvent]>([])
    let scheduler = ManualScheduler()
    var configuration = script.configuration
    configuration.durability = durability
    configuration.isReadOnly = isReadOnly
    configuration.eventHandler = { event in events.withLock { $0.append(event) } }
    let store = try ChangeStore(
      path: ScriptRun.path, configuration, platform: files, scheduler: scheduler)
    return Opened(store: store, scheduler: scheduler, events: events)
  }

  /// Checks an image, and answers how many commits it holds. `isThorough` adds what seldom differs
  /// from the rest: a read-only open, and a clean close after the commit that follows.
  @discardableResult
  package func examine(_ image: CrashImage, isThorough: Bool = true) throws -> Int {
    if isThorough { try lookReadOnly(image) }
    let count = try recover(image)
    try goOn(image, count, isThorough: isThorough)
    return count
  }

  /// A read-only open finds a prefix within the bounds, too, and writes nothing (G11).
  private func lookReadOnly(_ image: CrashImage) throws {
    guard image.files.content(of: ScriptRun.path + "/MANIFEST") != nil else { return }
    let before = image.files.operations.count
    let opened = try open(image.files, isReadOnly: true)
    _ = try EngineOracle(opened.store).prefix(of: image.trace, least: image.least)
    try opened.store.close()
    let writes = image.files.operations[before...].filter { $0.kind != .synchronize }
    try expect(writes.isEmpty, "a read-only open did \(writes)")
  }

  /// The first open finds a prefix within the bounds, by all ways of reading.
  private func recover(_ image: CrashImage) throws -> Int {
    let opened = try open(image.files)
    let count = try EngineOracle(opened.store).prefix(of: image.trace, least: image.least)
    try expect(
      count <= image.most, "\(count) commits are there, only \(image.most) had been handed over")
    try checkAll(opened, image.trace, count)
    if let storeId = image.trace.storeId {
      let found = try opened.store.engine.manifest.value.storeId.description
      try expect(found == storeId, "it is another store")
    }
    try opened.store.close()
    return count
  }

  private func checkAll(_ opened: Opened, _ trace: EngineTrace, _ count: Int) throws {
    let oracle = EngineOracle(opened.store)
    try oracle.check(oracle.model(of: trace, count), absent: Self.absent)
    try oracle.verify()
    try oracle.refusesResurrections(of: trace, count)
    if count > 0, let sequence = trace.commits[count - 1].sequence {
      let found = try opened.store.position?.sequence
      try expect(found == sequence, "the position is \(found ?? 0), not \(sequence)")
    }
    guard !allowsRepairs else { return }
    for event in opened.events.withLock({ $0 }) {
      switch event {
      case .repaired(let file, let reason):
        throw OracleViolation("\(file) had to be built again: \(reason)")
      case .failed(let error):
        throw OracleViolation("something failed in the background: \(error)")
      default: break
      }
    }
  }

  /// The second open finds the same (G7). A commit then has a new sequence, and survives a power
  /// loss, and a close and a reopening.
  private func goOn(_ image: CrashImage, _ count: Int, isThorough: Bool) throws {
    let opened = try open(image.files)
    let oracle = EngineOracle(opened.store)
    let found = try oracle.prefix(of: image.trace, least: 0)
    try expect(found == count, "the second open finds \(found) commits, the first \(count)")
    let trace = image.trace
    var model = try oracle.model(of: trace, count)
    let batch = [Self.fresh(trace.greatestSequence)]
    try model.apply(batch)
    let sequence = try opened.store.applyAndWait(batch).position?.sequence ?? 0
    let before = count > 0 ? trace.commits[count - 1].sequence ?? 0 : 0
    try expect(
      sequence > max(trace.greatestSequence, before),
      "sequence \(sequence) was given after \(max(trace.greatestSequence, before))")
    opened.scheduler.run()
    try checkAgain(image.files.image(.none), model, sequence)
    guard isThorough else { return }
    try oracle.check(model, absent: Self.absent)
    try opened.store.close()
    try checkAgain(image.files, model, sequence)
  }

  private func checkAgain(
    _ files: SimulatedFileSystem, _ model: ReferenceModel, _ sequence: UInt64
  ) throws {
    let opened = try open(files)
    let feed = try opened.store.engine.adapterPage(after: nil, limit: .max)
    try expect(feed == model.feed.records, "a commit after the recovery is not there, or not alone")
    try EngineOracle(opened.store).verify()
    let found = try opened.store.position?.sequence
    try expect(found == sequence, "the position is \(found ?? 0), not \(sequence)")
    try opened.store.close()
  }

  /// Checks what the death of the process left: all that was visible is there, and survives a loss
  /// of power as soon as an open shows it (G3).
  package func examineDeath(_ image: CrashImage) throws {
    let readOnly = image.files.afterProcessDeath()
    if image.least > 0 {
      let opened = try open(readOnly, isReadOnly: true)
      let shown = try EngineOracle(opened.store).prefix(of: image.trace, least: image.least)
      try opened.store.close()
      // A reader syncs only the commits that asked for it, which are not to be told here from
      // those that did not; so what survives is what the trace says.
      try expect(shown <= image.most, "a reader shows \(shown) commits")
    }
    let opened = try open(image.files)
    let count = try EngineOracle(opened.store).prefix(of: image.trace, least: image.least)
    try expect(count <= image.most, "\(count) commits are there")
    let survivors = image.files.image(.none)
    let again = try open(survivors)
    let left = try EngineOracle(again.store).prefix(of: image.trace, least: count)
    try expect(left == count, "\(left) commits survive of \(count) that an open showed")
    try EngineOracle(again.store).verify()
  }

  package static let absent = (collection: "notes", id: "never stored")

  /// A record that no script has.
  static func fresh(_ number: UInt64) -> ChangeRecord {
    ChangeRecord(
      id: "fresh \(number)", collection: "notes", type: .insert, payload: .init([1, 2, 3]),
      hlcTimestamp: "1900000000000-0000-fresh")
  }
}

/// Calls `body` for each element, on two threads. Answers the first violations, `most` or a few
/// more, each with the element that it belongs to.
package func forEachInThreads<Element: Sendable>(
  _ elements: [Element], most: Int = 10, _ body: @escaping @Sendable (Element) throws -> Void
) -> [OracleViolation] {
  let next = Locked(0)
  let violations = Locked<[OracleViolation]>([])
  inThreads(2) { _ in
    while true {
      let place = next.withLock { place in
        defer { place += 1 }
        return place
      }
      guard place < elements.count, violations.withLock({ $0.count < most }) else { return }
      do {
        try body(elements[place])
      } catch {
        let violation = OracleViolation("\(elements[place]): \(error)")
        violations.withLock { $0.append(violation) }
      }
    }
  }
  return violations.withLock { $0 }
}
