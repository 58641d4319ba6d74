import AirDbLogStore

/// Crashes inside a recovery: fault model F4.
extension EngineExamination {
  /// Crashes at every operation of the open that recovers an image, and of the first commit after
  /// it. What is left is recovered again, to the same commits (G7); down to `depth` recoveries that
  /// are cut short one after the other. Answers how many images there were.
  package func examineRecovery(_ image: CrashImage, depth: Int = 1) throws -> Int {
    let settled = try settledTrace(image)
    let trace = Locked(settled)
    let images = Locked((losses: CrashImages(.recovery), deaths: CrashImages(.recovery)))
    let files = image.files.copy()
    let add: @Sendable (String) -> Void = { [weak files] moment in
      guard let files else { return }
      let trace = trace.withLock { $0 }
      let origin = "\(image.origin); then \(moment)"
      images.withLock {
        $0.losses.add(files, trace, origin)
        $0.deaths.addProcessDeath(files, trace, origin)
      }
    }
    files.beforeEachCall { if $0.kind.changesDisk { add("before \($0)") } }
    let opened = try open(files)
    add("after the recovery")
    let batch = [Self.fresh(settled.greatestSequence)]
    _ = try trace.withLock { try $0.begin(batch) }
    let sequence = try opened.store.applyAndWait(batch).position?.sequence ?? 0
    try trace.withLock { try $0.acknowledge(sequence, durably: true) }
    add("after a commit")
    files.beforeEachCall(nil)
    return try examine(images.withLock { $0 }, depth)
  }

  /// The trace of a run that goes on after an image has been recovered.
  private func settledTrace(_ image: CrashImage) throws -> EngineTrace {
    let opened = try open(image.files.copy())
    var trace = image.trace
    let count = try EngineOracle(opened.store).prefix(of: trace, least: image.least)
    try trace.resolve(count, lastSequence: try opened.store.position?.sequence ?? 0)
    return trace
  }

  private func examine(
    _ images: (losses: CrashImages, deaths: CrashImages), _ depth: Int
  ) throws -> Int {
    var count = 0
    for image in images.losses.images {
      if depth > 1 { count += try examineRecovery(CrashImage(copying: image), depth: depth - 1) }
      do {
        try examine(image, isThorough: false)
      } catch {
        throw OracleViolation("\(image): \(error)")
      }
    }
    for image in images.deaths.images {
      do {
        try examineDeath(image)
      } catch {
        throw OracleViolation("\(image): \(error)")
      }
    }
    return count + images.losses.images.count + images.deaths.images.count
  }
}

extension CrashImage {
  fileprivate init(copying other: CrashImage) {
    self.init(
      files: other.files.copy(), trace: other.trace, least: other.least, most: other.most,
      origin: other.origin)
  }
}

extension CrashImages.Effort {
  /// Fewer subsets than a first crash gets, since each image of that is multiplied.
  static var recovery: CrashImages.Effort {
    var effort = CrashImages.Effort.standard
    guard !isLongRun else { return effort }
    effort.exhaustiveLimit = 4
    effort.seededSubsets = 4
    effort.losses = [.mixed(seed: 5)]
    return effort
  }
}
