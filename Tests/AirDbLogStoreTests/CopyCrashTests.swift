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

/// Copies and removals of whole stores that a crash or a failing call cuts short.
@Suite struct CopyCrashTests {
  private static let copyPath = "/copy"

  /// A store in every state of its files: sealed, superseded, unsealed, closed or not.
  private static func script(isClosed: Bool) -> EngineScript {
    var script = EngineScript(
      isClosed ? "closed" : "open",
      EngineScript.short(.powerLoss).steps + (isClosed ? [] : [.open(.powerLoss)])
        + (isClosed ? [] : [.apply([EngineScript.record("g", 9)])]))
    script.configuration.cleaning = .off
    return script
  }

  private static func images(
    isClosed: Bool, _ body: (ScriptRun) throws -> Void
  ) throws -> (images: [CrashImage], script: EngineScript) {
    let script = script(isClosed: isClosed)
    let run = ScriptRun(script, on: SimulatedFileSystem())
    try run.run()
    let trace = run.trace.withLock { $0 }
    let images = Locked((losses: CrashImages(.standard), deaths: CrashImages(.standard)))
    let add: @Sendable (SimulatedFileSystem, String) -> Void = { files, origin in
      images.withLock {
        $0.losses.add(files, trace, origin)
        $0.deaths.addProcessDeath(files, trace, origin)
      }
    }
    run.files.beforeEachCall { [files = run.files] call in
      if call.kind.changesDisk { add(files, "before \(call)") }
    }
    try body(run)
    run.files.beforeEachCall(nil)
    add(run.files, "at the end")
    return (images.withLock { $0.losses.images + $0.deaths.images }, script)
  }

  /// A segment that lost its end under an open store; of an index, the copy builds what is lacking.
  @Test(arguments: [false, true])
  func `A copy is whole or an error`(isIndex: Bool) throws {
    let system = SimulatedFileSystem(seed: 3)
    let configuration = Configuration.tiny
    let scheduler = ManualScheduler()
    let store = try ChangeStore(
      path: "/store", configuration, platform: system, scheduler: scheduler)
    for index in 0..<100 { try store.applyAndWait([change("\(index)", time(index))]) }
    scheduler.run()
    let segment = try #require(try store.engine.snapshot.sealed.first).segment.info
    let directory = StoreDirectory(path: "/store", platform: system)
    let name = isIndex ? directory.index(segment.fileId) : directory.segment(segment.fileId)
    let length = isIndex ? segment.indexLength : segment.length
    let file = try directory.open(name, .readWrite)
    try file.truncate(to: length - 1)
    if isIndex {
      try store.backUp(to: Self.copyPath)
      let copy = try ChangeStore(
        path: Self.copyPath, configuration, platform: system, scheduler: ManualScheduler())
      #expect(try copy.changes(limit: 1_000).records.count == 100)
    } else {
      let error = #expect(throws: LogStoreError.self) { try store.backUp(to: Self.copyPath) }
      #expect(error?.code == .corrupt && error?.file == name && error?.offset == length - 1)
    }
  }

  /// What a store in an image holds; nil if there is none, but at most the remains of one.
  private static func content(
    of path: String, _ files: SimulatedFileSystem, _ script: EngineScript
  ) throws -> [ChangeRecord]? {
    var configuration = script.configuration
    configuration.createsIfMissing = false
    do throws(LogStoreError) {
      let store = try ChangeStore(
        path: path, configuration, platform: files, scheduler: ManualScheduler())
      let records = try store.changes(limit: 1_000).records
      let problems = try store.verify().problems
      #expect(problems.isEmpty)
      try store.close()
      return records
    } catch {
      let isRemains = error.code == .corrupt && error.message.contains("manifest is missing")
      guard error.code == .storeNotFound || isRemains else { throw error }
      return nil
    }
  }

  @Test(arguments: [true, false])
  func `A crash in a copy leaves no store or all of it, and the source as it was`(
    isClosed: Bool
  ) throws {
    let (images, script) = try Self.images(isClosed: isClosed) { run in
      if isClosed { try run.perform(.open(.powerLoss)) }
      try run.perform(.backUp(Self.copyPath))
    }
    let counts = Locked((none: 0, whole: 0))
    record(
      forEachInThreads(images) { image in
        let model = image.trace.models[image.trace.visible].feed.records
        let source = try Self.content(of: ScriptRun.path, image.files.copy(), script)
        try expect(source == model, "the source has changed")
        let copy = try Self.content(of: Self.copyPath, image.files.copy(), script)
        try expect(copy == nil || copy == model, "half a copy passes for a store")
        counts.withLock { if copy == nil { $0.none += 1 } else { $0.whole += 1 } }
        // Whatever is there can be removed.
        do throws(LogStoreError) {
          try ChangeStore.destroy(at: Self.copyPath, on: image.files)
        } catch {
          try expect(error.code == .storeNotFound, "\(error)")
        }
      })
    #expect(counts.withLock { $0.none > 10 && $0.whole > 0 })
  }

  @Test(arguments: [true, false])
  func `A crash in a removal leaves all of the store or none`(isClosed: Bool) throws {
    let (images, script) = try Self.images(isClosed: isClosed) { run in
      run.leave()
      try ChangeStore.destroy(at: ScriptRun.path, on: run.files)
    }
    let counts = Locked((none: 0, whole: 0))
    record(
      forEachInThreads(images) { image in
        let model = image.trace.models[image.trace.visible].feed.records
        let left = try Self.content(of: ScriptRun.path, image.files.copy(), script)
        try expect(left == nil || left == model, "a part of the store passes for it")
        counts.withLock { if left == nil { $0.none += 1 } else { $0.whole += 1 } }
        // Removing goes on where it ended, and then there is room for a new store.
        do throws(LogStoreError) {
          try ChangeStore.destroy(at: ScriptRun.path, on: image.files)
        } catch {
          try expect(error.code == .storeNotFound, "\(error)")
        }
        let store = try ChangeStore(
          path: ScriptRun.path, script.configuration, platform: image.files,
          scheduler: ManualScheduler())
        try expect(try store.latestTimestamp == nil, "a new store is not empty")
        try store.close()
      })
    #expect(counts.withLock { $0.none > 10 && $0.whole > 0 })
  }

  @Test func `Whichever call of a copy or a removal fails, nothing half is left that passes`()
    throws
  {
    let script = Self.script(isClosed: false)
    for isCopy in [true, false] {
      var number = 0
      var failures = 0
      while true {
        number += 1
        let run = ScriptRun(script, on: SimulatedFileSystem())
        try run.run()
        let trace = run.trace.withLock { $0 }
        let model = trace.models[trace.visible].feed.records
        if !isCopy { run.leave() }
        let errno = [EIO, ENOSPC, EMFILE, EPERM][number % 4]
        run.files.inject(FaultPlan(.failing(errno), on: .only(number)))
        var error: LogStoreError?
        let start = run.files.callCount
        do throws(LogStoreError) {
          if isCopy {
            try run.store?.backUp(to: Self.copyPath)
          } else {
            try ChangeStore.destroy(at: ScriptRun.path, on: run.files)
          }
        } catch let failure {
          error = failure
        }
        let isOver = run.files.callCount - start < number
        run.files.clearFaults()
        if error != nil { failures += 1 }
        let path = isCopy ? Self.copyPath : ScriptRun.path
        let left = try Self.content(of: path, run.files.afterProcessDeath(), script)
        #expect(left == nil || left == model, "call \(number)")
        if isCopy {
          // A copy that failed may be whole; one that succeeded is.
          #expect(error != nil || left == model, "call \(number)")
          let source = try Self.content(
            of: ScriptRun.path, run.files.afterProcessDeath(), script)
          #expect(source == model, "call \(number)")
        } else {
          // Another attempt ends what this one began.
          let next = run.files.afterProcessDeath()
          if error != nil || left != nil {
            do throws(LogStoreError) {
              try ChangeStore.destroy(at: ScriptRun.path, on: next)
            } catch let again {
              #expect(again.code == .storeNotFound, "call \(number)")
            }
          }
          #expect(try Self.content(of: ScriptRun.path, next, script) == nil)
        }
        if isOver { break }
      }
      #expect(failures > 10, "\(number) calls")
    }
  }
}
