import AirDbLogStore
import TestSupport
import Testing

/// Fault model F1 for compactions: power is lost, or the process killed, at every operation (G8).
@Suite("Crashes with compactions")
struct CompactionCrashTests {
  @Test(
    "A crash at any operation loses nothing, brings nothing back, and leaves no file behind",
    arguments: CompactionScript.all)
  func everyOperation(_ script: CompactionScript) throws {
    try sweep(script)
  }

  @Test(
    "After a crash amid a purge tombstones are there, or gone for good and the horizon says so",
    arguments: CompactionScript.allPurging)
  func everyOperationOfPurges(_ script: CompactionScript) throws {
    try sweep(script)
  }

  private func sweep(_ script: CompactionScript) throws {
    let sweep = try CompactionSweep(script)
    let images = sweep.examinable(sweep.losses)
    let examination = sweep.examination
    let violations =
      forEachInThreads(images.enumerated().map { (number: $0, image: $1) }) {
        try examination.examine($0.image, isThorough: $0.number % 12 == 0 || isLongRun)
        if $0.number % 8 == 1 { try examination.checkFiles($0.image.files) }
      }
      + forEachInThreads(sweep.examinable(sweep.deaths)) {
        try examination.examineDeath($0)
        try examination.checkFiles($0.files)
      }
    for violation in violations { Issue.record("\(violation)") }
    print(
      "Crashes, \(script.name): \(sweep.losses.points) crash points,",
      "\(sweep.losses.imageCount) images of which \(images.count) differ,",
      "\(sweep.deaths.images.count) process deaths; \(sweep.recordsDropped) records dropped,",
      "\(sweep.emptied) compactions to nothing, \(sweep.amid) commits amid compactions,",
      "\(sweep.tombstonesPurged) tombstones purged")
    #expect(sweep.recordsDropped > 0)
    #expect(sweep.emptied > 0 || !script.name.contains("to nothing"))
    #expect((sweep.tombstonesPurged > 0) == script.isPurging)
  }
}

extension CrashImages.Effort {
  /// Less than for the scripts without compactions, whose operations these have as well.
  fileprivate static var moderate: CrashImages.Effort {
    var effort = CrashImages.Effort.standard
    if isLongRun { return effort }
    effort.exhaustiveLimit = 3
    effort.seededSubsets = 4
    effort.losses = [.zeros, .mixed(seed: 2)]
    return effort
  }
}

/// What a crash at each operation of a script with compactions leaves.
private struct CompactionSweep {
  let examination: EngineExamination
  let losses: CrashImages
  let deaths: CrashImages
  let recordsDropped: UInt64
  let emptied: Int
  let amid: Int
  let tombstonesPurged: UInt64
  /// All purges of the run: a crash may come behind one that was not done yet.
  private let purges: [EngineTrace.Purge]

  func examinable(_ images: CrashImages) -> [CrashImage] {
    images.images.map { image in
      var image = image
      image.trace.purges = purges
      return image
    }
  }

  init(_ script: CompactionScript) throws {
    let images = Locked((losses: CrashImages(.moderate), deaths: CrashImages(.moderate)))
    let trace = Locked<@Sendable () -> EngineTrace>({ EngineTrace() })
    // What else purging scripts do, the others do as well.
    let isOfInterest = Locked<@Sendable () -> Bool>({ !script.isPurging || isLongRun })
    let add: @Sendable (SimulatedFileSystem, String) -> Void = { files, origin in
      let trace = trace.withLock { $0 }()
      images.withLock {
        $0.losses.add(files, trace, origin)
        $0.deaths.addProcessDeath(files, trace, origin)
      }
    }
    let run = CompactionRun(script, on: SimulatedFileSystem()) { files, call in
      if call.kind.changesDisk, isOfInterest.withLock({ $0 })() {
        add(files, "\(script.name), before \(call)")
      }
    }
    let runTrace = run.run.trace
    trace.withLock { $0 = { runTrace.withLock { $0 } } }
    if script.isPurging, !isLongRun {
      let isCompacting = run.isCompacting
      isOfInterest.withLock { $0 = { isCompacting.withLock { $0 } } }
    }
    try run.perform()
    run.run.files.beforeEachCall(nil)
    add(run.run.files, "\(script.name), at the end")
    examination = EngineExamination(script.engineScript)
    (losses, deaths) = images.withLock { ($0.losses, $0.deaths) }
    (recordsDropped, emptied, amid) = (run.recordsDropped, run.emptied, run.amid)
    tombstonesPurged = run.tombstonesPurged
    purges = runTrace.withLock { $0.purges }
  }
}

extension EngineExamination {
  /// After a writing open only files are there that the store uses.
  func checkFiles(_ files: SimulatedFileSystem) throws {
    let opened = try open(files)
    try expectOnlyUsedFiles(opened.store, files)
    try opened.store.close()
  }
}

/// Throws if there is a file of a segment or liveness that the open store does not use.
func expectOnlyUsedFiles(_ store: ChangeStore, _ platform: any Platform) throws {
  let engine = try store.engine
  let state = engine.snapshot
  var names: Set = ["LOCK", "MANIFEST"]
  for sealed in state.sealed {
    let id = sealed.segment.info.fileId
    names.insert(engine.directory.segment(id))
    names.insert(engine.directory.index(id))
  }
  for log in state.tail { names.insert(engine.directory.segment(log.fileId)) }
  if let id = try store.writerIfAny?.preparedId { names.insert(engine.directory.segment(id)) }
  let generation = engine.manifest.value.livenessGeneration
  if generation > 0 { names.insert(engine.directory.liveness(generation)) }
  let known = Set(names.map { String($0.split(separator: "/").last ?? "") })
  let found = Set(try platform.list(engine.directory.path))
  let stray = found.subtracting(known)
  try expect(stray.isEmpty, "files that nothing uses: \(stray.sorted())")
}

extension CompactionScript: CustomTestStringConvertible {
  var testDescription: String { name }
}
