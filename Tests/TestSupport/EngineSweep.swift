import AirDbLogStore

/// A script that was run once, and what a crash at each of its operations leaves: fault model F1.
package struct CrashSweep: Sendable {
  package let script: EngineScript
  package let examination: EngineExamination
  /// After losses of power.
  package private(set) var losses: CrashImages
  /// After the death of the process.
  package private(set) var deaths: CrashImages

  /// Runs the script. `faults` are in force all the time: for the tests that show that the sweep
  /// notices when something is missing.
  package init(
    _ script: EngineScript, _ effort: CrashImages.Effort = .standard, faults: [FaultPlan] = []
  ) throws {
    let images = Locked((losses: CrashImages(effort), deaths: CrashImages(effort)))
    let trace = Locked<@Sendable () -> EngineTrace>({ EngineTrace() })
    let add: @Sendable (SimulatedFileSystem, String) -> Void = { files, origin in
      let trace = trace.withLock { $0 }()
      images.withLock {
        $0.losses.add(files, trace, origin)
        $0.deaths.addProcessDeath(files, trace, origin)
      }
    }
    let files = SimulatedFileSystem()
    for fault in faults { files.inject(fault) }
    let run = ScriptRun(script, on: files) { files, call in
      if call.kind.changesDisk { add(files, "\(script.name), before \(call)") }
    }
    let runTrace = run.trace
    trace.withLock { $0 = { runTrace.withLock { $0 } } }
    try run.run()
    run.files.beforeEachCall(nil)
    add(run.files, "\(script.name), at the end")
    self.script = script
    examination = EngineExamination(script)
    (losses, deaths) = images.withLock { ($0.losses, $0.deaths) }
  }

  /// Examines everything, one in `thoroughness` thoroughly, until there are `most` violations.
  package func examine(thoroughness: Int = 8, most: Int = 10) -> [OracleViolation] {
    let every = isLongRun ? 1 : thoroughness
    let numbered = losses.images.enumerated().map { (number: $0, image: $1) }
    let examination = examination
    let found = forEachInThreads(numbered, most: most) {
      try examination.examine($0.image, isThorough: $0.number % every == 0)
    }
    guard found.count < most else { return found }
    return found
      + forEachInThreads(deaths.images, most: most) { try examination.examineDeath($0) }
  }
}
