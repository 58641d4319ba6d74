internal import HlcText

/// Brings the liveness file and the manifest up to date: the one way in which the list of sealed
/// segments, and what of them is superseded, becomes durable.
///
/// Whoever writes one holds ``Engine/structure``, so that seals and compactions do not mix.
struct Checkpoint {
  private let engine: Engine

  init(_ engine: Engine) { self.engine = engine }

  /// What a checkpoint is for, and so which marks of unsealed segments go into the liveness: commits
  /// that might still be lost must not take with them what they superseded.
  enum Occasion {
    /// The segment with this id is sealed; its marks count.
    case sealing(UInt64)
    /// No mark of an unsealed segment counts.
    case compacting
    /// The log is durable to its end: all count.
    case closing
  }

  /// The dead entries of the sealed segments by file id.
  typealias Liveness = [UInt64: DeadBits]

  /// Writes liveness and manifest. `change` puts in what is new; a segment for which there are no bits
  /// afterwards has no superseded entry.
  func write(
    _ occasion: Occasion, _ change: (inout Manifest, inout Liveness) -> Void
  ) throws(LogStoreError) {
    // Before anything is added: what was superseded in earlier sessions must be known.
    try engine.loadLiveness()
    let path = engine.directory.manifest
    var old: UInt64 = 0
    var new: UInt64 = 0
    try engine.manifest.update(
      { (manifest) throws(LogStoreError) in
        old = manifest.livenessGeneration
        var liveness = collect(occasion, manifest)
        change(&manifest, &liveness)
        new = manifest.generation
        do throws(LogStoreError) {
          try writeLiveness(liveness, &manifest)
        } catch {
          removeLiveness(new)
          throw error
        }
        try Self.attempt("sync the store's directory", engine.directory.path) {
          () throws(SystemError) in try engine.directory.synchronizeDirectory()
        }
      },
      orElse: { failure in
        switch failure {
        case .notWritten(let error):
          removeLiveness(new)
          return Self.failure(error, "write the manifest", path)
        // The new manifest names new files, so that which of them are needed is unknown.
        case .unknown(let error), .notDurable(let error):
          return LogStoreError(
            .outcomeUnknown, "Could not replace the manifest: \(error.description).", file: path,
            errno: error.errno)
        }
      })
    if old > 0 { try? engine.directory.remove(engine.directory.liveness(old)) }
  }

  /// Gives back the space of a liveness file that no manifest names.
  private func removeLiveness(_ generation: UInt64) {
    try? engine.directory.remove(engine.directory.liveness(generation))
  }

  private func collect(_ occasion: Occasion, _ manifest: Manifest) -> Liveness {
    let state = engine.snapshot
    var liveness = Liveness()
    for sealed in state.sealed { liveness[sealed.segment.info.fileId] = sealed.dead }
    var counted = Set(manifest.segments.map(\.fileId))
    switch occasion {
    case .sealing(let id): counted.insert(id)
    case .compacting: break
    case .closing: return liveness
    }
    for log in state.tail where !counted.contains(log.fileId) {
      for mark in log.supersededEntries { liveness[mark.segment]?.remove(mark.rank) }
    }
    return liveness
  }

  private func writeLiveness(
    _ liveness: Liveness, _ manifest: inout Manifest
  ) throws(LogStoreError) {
    var hasDead = false
    for index in manifest.segments.indices {
      manifest.segments[index].deadCount = liveness[manifest.segments[index].fileId]?.count ?? 0
      hasDead = hasDead || manifest.segments[index].deadCount > 0
    }
    manifest.livenessGeneration = 0
    manifest.livenessLength = 0
    manifest.livenessChecksum = 0
    guard hasDead else { return }
    let (bytes, checksum) = LivenessFile.encode(
      generation: manifest.generation, sequence: manifest.livenessSequence,
      storeId: manifest.storeId,
      segments: manifest.segments.map {
        ($0.fileId, liveness[$0.fileId] ?? DeadBits(entryCount: $0.entryCount))
      })
    manifest.livenessGeneration = manifest.generation
    manifest.livenessLength = UInt64(bytes.count)
    manifest.livenessChecksum = checksum
    let file = engine.directory.liveness(manifest.generation)
    try Self.attempt("write the liveness", file) { () throws(SystemError) in
      try withBytes(of: bytes) { (bytes) throws(SystemError) in
        try engine.directory.writeSynced(bytes, to: file)
      }
    }
  }

  /// Runs system calls of work in the background.
  static func attempt<Result>(
    _ action: String, _ path: String, _ body: () throws(SystemError) -> Result
  ) throws(LogStoreError) -> Result {
    do throws(SystemError) {
      return try body()
    } catch {
      throw failure(error, action, path)
    }
  }

  /// For want of space, descriptors or permission nothing has happened that another attempt would
  /// not put right: it begins with new files. Anything else may be a failed sync.
  static func failure(_ error: SystemError, _ action: String, _ path: String) -> LogStoreError {
    if error.isRefusal {
      return LogStoreError(error, action, file: path)
    }
    return LogStoreError(
      .outcomeUnknown, "Could not \(action): \(error.description).", file: path,
      errno: error.errno)
  }
}
