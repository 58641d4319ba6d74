package import AirDbLogStore

/// A small store at rest, and what is known of it, to be damaged in every way: fault model F3.
package struct RotStore: Sendable {
  /// Where a commit is.
  package struct Frame: Sendable {
    package let path: String
    package let range: Range<UInt64>
  }

  package let name: String
  package let files: SimulatedFileSystem
  package let examination: EngineExamination
  package let trace: EngineTrace
  /// By commit.
  package let frames: [Frame]
  /// How many commits the manifest calls durable.
  package let listed: Int
  /// Earlier contents of the files, each once.
  package let versions: [String: [FileBytes]]

  /// Builds a store. One that is not closed is left as a loss of power behind the last sync leaves
  /// it.
  package init(_ script: EngineScript) throws {
    let versions = Locked<[String: [FileBytes]]>([:])
    let run = ScriptRun(script, on: SimulatedFileSystem()) { files, call in
      guard call.kind.changesDisk else { return }
      versions.withLock { Self.collect(files, into: &$0) }
    }
    var frames: [Frame] = []
    for step in script.steps {
      try run.perform(step)
      guard case .apply = step, let store = run.store else { continue }
      let end = try store.engine.snapshot.end
      let path = try store.engine.directory.segment(end.segment)
      let last = frames.last { $0.path == path }?.range.upperBound
      if last != end.length {
        frames.append(Frame(path: path, range: (last ?? 64)..<end.length))
      }
    }
    run.files.beforeEachCall(nil)
    run.leave()
    name = script.name
    files = run.files.image(.all)
    examination = EngineExamination(script)
    trace = run.trace.withLock { $0 }
    self.frames = frames
    let directory = StoreDirectory(path: ScriptRun.path, platform: files)
    let end = try directory.readManifest()?.end ?? LogEnd()
    let known = trace
    listed = known.commits.count { $0.sequence ?? 0 <= end.sequence }
    self.versions = versions.withLock { $0 }
  }

  private static func collect(
    _ files: SimulatedFileSystem, into versions: inout [String: [FileBytes]]
  ) {
    for name in files.names(in: ScriptRun.path) {
      guard let content = files.content(of: "\(ScriptRun.path)/\(name)"), content.size > 0
      else { continue }
      guard versions[name]?.last?.bytes != content.bytes else { continue }
      versions[name, default: []].append(content)
    }
  }

  /// The names of the files that matter.
  package var names: [String] {
    files.names(in: ScriptRun.path).filter { $0 != "LOCK" }
  }

  package func content(_ name: String) -> FileBytes {
    files.content(of: "\(ScriptRun.path)/\(name)") ?? FileBytes()
  }

  /// The bytes of a file that mean something: of a segment those up to its last frame.
  package func meaningfulSize(_ name: String) -> UInt64 {
    let size = content(name).size
    guard name.hasSuffix(".segment") else { return size }
    let path = "\(ScriptRun.path)/\(name)"
    return frames.last { $0.path == path }?.range.upperBound ?? size
  }
}

/// Damage to one file of a store.
package struct Damage: Sendable, CustomStringConvertible {
  package enum Kind: Sendable {
    case rot([Rot])
    case remove
    case replace(FileBytes)
  }

  package let name: String
  package let kind: Kind
  package let description: String

  package init(_ name: String, _ rot: Rot) {
    self.name = name
    kind = .rot([rot])
    description = "\(name): \(rot)"
  }

  package init(_ name: String, _ kind: Kind, _ what: String) {
    self.name = name
    self.kind = kind
    description = "\(name): \(what)"
  }

  func apply(to files: SimulatedFileSystem) throws {
    let path = "\(ScriptRun.path)/\(name)"
    switch kind {
    case .rot(let rots):
      for rot in rots { files.damage(path, rot) }
    case .remove:
      try files.remove(path)
      try files.synchronizeDirectory(ScriptRun.path)
    case .replace(let content):
      try files.install(content, at: path)
    }
  }
}

/// How a damage came to light.
package enum RotOutcome: Sendable, Hashable, CaseIterable {
  /// It changed nothing: zeros that were zero before.
  case none
  /// The store was not opened, and not changed.
  case refused
  /// Commits that no watermark called durable were cut, and that was reported.
  case discarded
  /// A read failed, and the full check names the file.
  case unreadable
  /// Everything reads right, and the full check names the file.
  case named
  /// Derived data was built again, and that was reported.
  case repaired
  /// Bytes behind the log were cut, and that was reported.
  case cleared
  case unnoticed
}

extension RotStore {
  /// Opens and reads the store with a damage, and answers how that came to light. Throws if it did
  /// not, and something was lost or wrong.
  package func examine(_ damage: Damage) throws -> RotOutcome {
    let files = files.copy()
    try damage.apply(to: files)
    let before = files.digest
    guard before != self.files.digest else { return .none }
    let opened: EngineExamination.Opened
    do {
      opened = try examination.open(files)
    } catch let error as LogStoreError {
      try expect(
        [.corrupt, .unsupportedFormat].contains(error.code) && error.file != nil, "\(error)")
      try expect(files.digest == before, "a refused open has changed something")
      return .refused
    }
    let oracle = EngineOracle(opened.store)
    do {
      let count = try oracle.prefix(of: trace, least: 0)
      try expect(
        isExcused(count, files), "\(count) commits are left of \(trace.commits.count), silently")
      try oracle.check(trace.models[count], absent: EngineExamination.absent)
      return try outcome(opened, damage, lost: count < trace.commits.count)
    } catch let error as LogStoreError {
      try expect(error.code == .corrupt && error.file != nil, "\(error)")
      try expect(try isNamed(damage, opened.store), "a read fails, but the check finds nothing")
      return .unreadable
    }
  }

  private func isNamed(_ damage: Damage, _ store: ChangeStore) throws -> Bool {
    try store.verify().problems.contains { $0.file == "\(ScriptRun.path)/\(damage.name)" }
  }

  private func outcome(
    _ opened: EngineExamination.Opened, _ damage: Damage, lost: Bool
  ) throws -> RotOutcome {
    let problems = try opened.store.verify().problems
    if try isNamed(damage, opened.store) { return .named }
    try expect(problems.isEmpty, "the check names another file: \(problems)")
    if lost { return .discarded }
    for event in opened.events.withLock({ $0 }) {
      if case .repaired = event { return .repaired }
      if case .recovered(let bytes, _, _) = event, bytes > 0 { return .cleared }
    }
    return .unnoticed
  }

  /// Whether a store may have lost the commits after so many: only if nothing that is left of it
  /// says that the first of them was durable.
  private func isExcused(_ count: Int, _ files: SimulatedFileSystem) -> Bool {
    guard count < trace.commits.count else { return true }
    guard count >= listed else { return false }
    // Each frame says that all those before it were durable.
    let witnesses = frames.indices.filter { place in
      let (path, start) = (frames[place].path, frames[place].range.lowerBound)
      let header = self.files.content(of: path)?.bytes(start..<start + 64)
      return files.content(of: path)?.bytes(start..<start + 64) == header
    }
    return (witnesses.last ?? -1) <= count
  }
}
