import AirDbLogStore

/// Crashes inside writes, where a file ends in the middle: the script is run anew for each of them.
package struct TornSweep: Sendable {
  /// A write that is cut short by a loss of power.
  package struct Point: Sendable, CustomStringConvertible {
    /// Its number among the operations of the script.
    package let operation: Int
    package let moment: CrashMoment
    package let description: String
  }

  package let script: EngineScript

  package init(_ script: EngineScript) { self.script = script }

  /// Every byte of the first writes of each kind of file, if they are no longer than `byteLimit`;
  /// of the others every sector. In a long run every byte of all of them.
  package func points(byteLimit: Int) throws -> [Point] {
    let run = ScriptRun(script, on: SimulatedFileSystem())
    try run.run()
    var seen: [String: Int] = [:]
    return run.files.operations.enumerated().flatMap { number, call -> [Point] in
      guard call.kind == .write else { return [] }
      let suffix = call.path.split(separator: ".").last.map(String.init) ?? ""
      let kind = "\(suffix) \(call.offset == 0)"
      seen[kind, default: 0] += 1
      let isBytewise = isLongRun || seen[kind, default: 0] <= 2
      return call.crashMoments(byteLimit: isBytewise ? byteLimit : 0).compactMap { moment in
        guard case .inside = moment else { return nil }
        return Point(
          operation: number + 1, moment: moment, description: "\(script.name), \(moment) of \(call)"
        )
      }
    }
  }

  /// The images that one of them leaves.
  package func images(_ point: Point) throws -> [CrashImage] {
    let run = ScriptRun(script, on: SimulatedFileSystem())
    run.files.losePower(at: point.operation, point.moment)
    do {
      for step in script.steps where !run.files.isPowerLost { try run.perform(step) }
    } catch is LogStoreError {
      try expect(run.files.isPowerLost, "the script failed before the crash")
    }
    var images = CrashImages(.least)
    images.add(run.files, run.trace.withLock { $0 }, point.description)
    return images.images
  }
}
