import AirDbLogStore
import TestSupport
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// How far a compaction has come, how it is ended, how fast it goes, and what is left of one that
/// failed half way.
@Suite struct CompactionControlTests {
  /// A store of which several steps of a compaction are needed: what one may write is little.
  private static func home(
    _ change: (inout Configuration) -> Void = { _ in }
  ) throws -> CleaningTests.Home {
    let home = try CleaningTests.Home(change)
    for round in 0..<24 {
      // Of each two keys one is updated in the next round, and so superseded.
      let letters = (0..<6).map { String(UnicodeScalar(UInt8(65 + round * 2 + $0 % 4))) }
      try home.write(Set(letters).sorted().joined())
    }
    try home.reopen()
    return home
  }

  // MARK: Progress and cancellation

  @Test func `Progress grows from above 0 to 1`() throws {
    let home = try Self.home()
    let values = Locked<[Double]>([])
    let result = try home.store.compact { value in values.withLock { $0.append(value) } }
    let found = values.withLock { $0 }
    #expect(result.segments > 4)
    #expect(found.count > result.segments, "each input is told of, and the end")
    #expect(found == found.sorted())
    #expect(found.first.map { $0 > 0 && $0 < 0.5 } == true && found.last == 1)
    #expect(found.allSatisfy { (0...1).contains($0) })
    #expect(found.dropLast().last.map { $0 > 0.5 } == true, "\(found)")
    // Where nothing is to be done it is over at once.
    values.withLock { $0 = [] }
    #expect(try home.store.compact { value in values.withLock { $0.append(value) } }.segments == 0)
    #expect(values.withLock { $0 } == [1])
  }

  @Test func `A cancelled task ends its compaction, and each step is done or has changed nothing`()
    async throws
  {
    let whole = try Self.home()
    let steps = Locked(0)
    try whole.store.compact { _ in steps.withLock { $0 += 1 } }
    let count = steps.withLock { $0 }
    var states = Set<Int>()
    for last in 1..<count {
      let compacted = Locked(0)
      let home = try Self.home { configuration in
        configuration.eventHandler = { event in
          if case .compacted(let segments, _, _) = event { compacted.withLock { $0 += segments } }
        }
      }
      let store = home.store
      let before = try store.statistics()
      let records = try store.changes(limit: .max).records
      let task = Task { () -> LogStoreError? in
        let calls = Locked(0)
        do throws(LogStoreError) {
          try store.compact { _ in
            let call = calls.withLock { calls in
              calls += 1
              return calls
            }
            if call == last { withUnsafeCurrentTask { $0?.cancel() } }
          }
          return nil
        } catch {
          return error
        }
      }
      let error = await task.value
      home.scheduler.run()
      // The last input of the last step may be done by then.
      #expect(error?.code == .cancelled, "after \(last) of \(count)")
      #expect(try store.changes(limit: .max).records == records)
      try expectOnlyUsedFiles(store, home.files)
      let done = compacted.withLock { $0 }
      states.insert(done)
      if done == 0 { #expect(try store.statistics().records == before.records) }
      try home.compact()
      #expect(try store.changes(limit: .max).records == records)
    }
    #expect(states.contains(0) && states.count > 1, "\(states)")
  }

  // MARK: Pace

  /// Two sealed segments of which half is superseded.
  private static func paced(
    _ change: (inout Configuration) -> Void
  ) throws -> AutomaticCleaningTests.Home {
    let home = try AutomaticCleaningTests.Home {
      $0.segmentRecords = 200
      change(&$0)
    }
    for _ in 0..<2 {
      try home.write(0..<200)
      try home.write(0..<100)
      try home.write(300..<400)
    }
    return home
  }

  @Test func `In the background it takes the time that the limit asks for, on demand none`() throws
  {
    for limit in [100_000, 1_000_000, nil] {
      let home = try Self.paced { $0.cleaning.bytesPerSecond = limit }
      let inputs = try home.store.engine.snapshot.sealed
      let bytes = inputs.reduce(UInt64(0)) { sum, sealed in
        let info = sealed.segment.info
        return sum + info.length - UInt64(SegmentHeader.size) + info.indexLength
      }
      let before = home.platform.clock.uptimeNanoseconds
      let outcome = try home.store.cleaner.run(.idle, isCancelled: { false })
      #expect(outcome.segments == inputs.count)
      let slept = home.platform.clock.uptimeNanoseconds - before
      let expected = limit.map { Double(bytes) / Double($0) * 1e9 } ?? 0
      #expect(abs(Double(slept) - expected) <= 1_000, "\(limit ?? 0): \(slept), not \(expected)")
    }
    let home = try Self.paced { $0.cleaning.bytesPerSecond = 1 }
    #expect(try home.store.compact().segments > 0)
    #expect(home.platform.clock.uptimeNanoseconds == 0)
  }

  @Test func `Where garbage outruns it, the limit is lifted and writers are held back meanwhile`()
    throws
  {
    let home = try Self.paced {
      $0.cleaning.bytesPerSecond = 1
      $0.segmentBytes = 4_096
    }
    for _ in 0..<20 { try home.write(0..<100) }
    let writer = try home.store.writer
    let clock = home.platform.clock
    let looks = Locked<[(brake: Double, uptime: UInt64)]>([])
    let look: @Sendable (Double) -> Void = { _ in
      let brake = writer.brake.withLock { $0 }
      looks.withLock { $0.append((brake, clock.uptimeNanoseconds)) }
    }
    _ = try home.store.cleaner.run(.busy, isCancelled: { false }, progress: look)
    let found = looks.withLock { $0 }
    try #require(found.count > 2)
    #expect(found[0].brake == 1 && found[1].brake == 1)
    #expect(found[1].uptime == 0, "a byte a second is lifted")
    #expect(writer.brake.withLock { $0 } == 0, "nobody waits for a cleaner that does nothing")
  }

  @Test func `What somebody keeps is no garbage that writers would wait for`() throws {
    var state = Published()
    func segment(_ id: UInt64, live: UInt64) -> Published.Sealed {
      let info = Manifest.Segment(
        fileId: id, length: 100_000, firstSequence: id, lastSequence: id, lastChecksum: 0,
        indexChecksum: 0, recordCount: 1_000, entryCount: live, deadCount: 0, indexLength: 25_000,
        lastCommitDate: 0)
      return Published.Sealed(
        segment: SealedSegment(info), dead: DeadBits(entryCount: live))
    }
    func candidate(_ id: UInt64, live: UInt64) -> CompactionPlan.Candidate {
      CompactionPlan.Candidate(id: id, bytes: 125_000, records: 1_000, live: live)
    }
    for id in 1...10 as ClosedRange<UInt64> { state.sealed.append(segment(id, live: 500)) }
    func level(_ live: UInt64, segmentBytes: UInt64 = 0) -> Double {
      CleaningPressure(
        (1...10).map { candidate($0, live: live) }, in: state, segmentBytes: segmentBytes
      ).level(in: state)
    }
    #expect(level(500) == 1, "all that is superseded can go")
    #expect(level(1_000) == 0, "all of it is kept")
    // 250,000 of garbage beside 1,000,000 of the rest: a fourth.
    #expect(abs(level(800) - 0.375) < 0.01)
    #expect(level(800, segmentBytes: 1_000_000) == 0)
    #expect(abs(level(800, segmentBytes: 400_000) - 0.375) < 0.01)
    // What is superseded since the look counts.
    let pressure = CleaningPressure(
      (1...10).map { candidate($0, live: 1_000) }, in: state, segmentBytes: 0)
    for id in 11...20 as ClosedRange<UInt64> { state.sealed.append(segment(id, live: 600)) }
    #expect(pressure.level(in: state) > 0.1)
  }

  /// A clock that goes on by a millisecond whenever it is looked at.
  private struct TickingPlatform: WrappedPlatform {
    let wrapped = ClockedPlatform()
    let slept = Locked<UInt64>(0)

    func uptimeNanoseconds() -> UInt64 {
      wrapped.sleep(nanoseconds: 1_000_000)
      return wrapped.uptimeNanoseconds()
    }

    func sleep(nanoseconds: UInt64) { slept.withLock { $0 += nanoseconds } }
  }

  @Test func `A writer that is held back waits as long as it works, and no longer`() throws {
    let platform = TickingPlatform()
    let store = try ChangeStore(
      path: "/store", .tiny, platform: platform, scheduler: ManualScheduler())
    let writer = try store.writer
    for (brake, expected) in [(0.0, 0.0), (1.0, 100.0), (0.5, 50.0)] {
      writer.brake.withLock { $0 = brake }
      let before = platform.slept.withLock { $0 }
      for number in 0..<100 {
        let id = Int(brake * 1_000) + number
        #expect(try store.applyAndWait([change("\(id)", time(id))]).accepted == 1)
      }
      let slept = Double(platform.slept.withLock { $0 } - before) / 1e6
      #expect(abs(slept - expected) <= 2, "\(slept) ms in 100 ms at \(brake)")
    }
  }

  // MARK: Failing half way

  @Test func `A step that fails leaves the steps before it done, and their purges`() throws {
    func home() throws -> (CleaningTests.Home, Locked<Int>) {
      let steps = Locked(0)
      let home = try CleaningTests.Home { configuration in
        configuration.tombstoneRetention = .zero
        configuration.eventHandler = { event in
          if case .compacted = event { steps.withLock { $0 += 1 } }
        }
      }
      for round in 0..<12 {
        let keys = (0..<6).map { String(UnicodeScalar(UInt8(40 + round * 6 + $0))) }.joined()
        try home.write(keys)
        try home.write(String(keys.prefix(3)), .delete)
      }
      home.age(seconds: 10)
      try home.reopen()
      return (home, steps)
    }
    let (whole, wholeSteps) = try home()
    _ = try whole.store.changes(limit: .max)
    let calls = Locked<[SimulatedCall]>([])
    whole.files.beforeEachCall { call in calls.withLock { $0.append(call) } }
    let purged = try whole.compact().tombstonesPurged
    whole.files.beforeEachCall(nil)
    #expect(wholeSteps.withLock { $0 } > 1 && purged == 36)
    let creations = calls.withLock { calls in
      calls.indices.filter {
        calls[$0].kind == .create && calls[$0].path.hasSuffix(".segment")
      }
    }
    #expect(creations.count > 1)
    for (step, call) in creations.enumerated() {
      for (errno, code) in [
        (ENOSPC, .noSpace), (EMFILE, .tooManyOpenFiles), (EIO, .outcomeUnknown),
      ] as [(CInt, LogStoreError.Code)] {
        let (home, steps) = try home()
        let records = try home.store.changes(limit: .max).records.filter { $0.type != .delete }
        home.files.inject(FaultPlan(.failing(errno), on: .from(call + 1)))
        #expect {
          try home.store.compact()
        } throws: { error in
          (error as? LogStoreError)?.code == code
        }
        home.files.clearFaults()
        home.scheduler.run()
        #expect(steps.withLock { $0 } == step)
        let horizon = try home.store.retentionReport().horizon
        #expect((horizon > 0) == (step > 0))
        func check(_ store: ChangeStore) throws {
          let found = try store.changes(limit: .max).records
          #expect(found.filter { $0.type != .delete } == records)
          let left = found.count { $0.type == .delete }
          #expect(step == 0 ? left == 36 : left < 36)
          #expect(try store.retentionReport().horizon == horizon)
          // What was forgotten is refused all the same, once anything is taken.
          if try store.writer.refusal != nil { return }
          let stale = try store.applyAndWait(
            (0..<3).map { CleaningTests.record(String(UnicodeScalar(UInt8(40 + $0))), 0) })
          #expect(stale.accepted == 0)
        }
        try check(home.store)
        try home.store.reopen()
        try check(home.store)
        try expectOnlyUsedFiles(home.store, home.files)
        try home.compact()
        #expect(try home.store.changes(limit: .max).records == records)
      }
    }
  }
}
