// How the output of a compaction takes the place of its inputs.
extension Compactor {
  /// Puts the output in the place of the inputs: in the manifest, then in what readers see.
  func replace(
    _ inputs: [Input], by output: Output?, _ purged: Purged
  ) throws(LogStoreError) {
    let exchange = Exchange(inputs, output)
    try engine.structure.withLock { () throws(LogStoreError) in
      let horizon = engine.snapshot.purgeHorizon
      try Checkpoint(engine).write(.compacting) { manifest, liveness in
        let place = manifest.segments.firstIndex { exchange.ids.contains($0.fileId) } ?? 0
        manifest.segments.removeAll { exchange.ids.contains($0.fileId) }
        if let output {
          manifest.requiredFeatures |= Manifest.packedFrames
          manifest.segments.insert(output.info, at: place)
          liveness[output.info.fileId] = exchange.dead(output) { liveness[$0] }
        }
        manifest.retentionHorizon = max(manifest.retentionHorizon, purged.sequence)
        if let new = purged.raised(horizon) { manifest.horizonHlc = Array(new.text.utf8) }
      }
      // The next commit looks keys up in it; what is not read here is read there. Not before the
      // manifest names it: the space of a file that is open is not given back.
      if let segment = exchange.segment { _ = try? engine.index(of: segment) }
      // By the leader, so that no batch is half way, and inside the lock, so that no checkpoint sees
      // the new manifest with the old state.
      let prepared = exchange.prepare(engine.snapshot)
      writer.queue.exclusivelyByAnyLeader {
        engine.published.withLock { state in
          exchange.swap(&state, prepared)
          if let new = purged.raised(state.purgeHorizon) { state.purgeHorizon = new }
        }
        writer.segmentsChanged()
      }
    }
    retire(inputs)
  }

  /// Has the inputs' files removed when the last reader is done with them.
  private func retire(_ inputs: [Input]) {
    for input in inputs {
      let id = input.segment.info.fileId
      let directory = engine.directory
      let files = engine.files
      let scheduler = engine.scheduler
      let lock = engine.writerLock
      input.segment.whenReleased {
        files.remove(.segment(id))
        files.remove(.index(id))
        scheduler.schedule {
          // Once the lock is given back the path may be another store's: the next open removes what
          // is left.
          lock?.whileHeld {
            try? directory.remove(directory.segment(id))
            try? directory.remove(directory.index(id))
          }
        }
      }
    }
  }
}

extension Compactor.Purged {
  /// The new greatest timestamp that was purged, if it is a new one.
  fileprivate func raised(_ old: Published.Greatest?) -> Published.Greatest? {
    guard let greatest else { return nil }
    return old.map { $0.key < greatest.key } ?? true ? greatest : nil
  }
}

/// What stands where after an exchange of segments.
private struct Exchange: Sendable {
  let ids: Set<UInt64>
  private let inputs: [Compactor.Input]
  private let output: Compactor.Output?
  let segment: SealedSegment?
  /// For each row of the output its rank, or `gone` if it has none.
  private let rankOfRow: [UInt32]

  init(_ inputs: [Compactor.Input], _ output: Compactor.Output?) {
    self.inputs = inputs
    self.output = output
    ids = Set(inputs.map(\.segment.info.fileId))
    segment = output.map { SealedSegment($0.info) }
    segment?.isPacked.withLock { $0 = true }
    var ranks = [UInt32](
      repeating: Compactor.Input.gone, count: Int(output?.info.recordCount ?? 0))
    for (rank, row) in (output?.rowOfRank ?? []).enumerated() { ranks[Int(row)] = UInt32(rank) }
    rankOfRow = ranks
  }

  /// Where an entry of an input is in the output.
  private func place(_ rank: UInt64, of input: Compactor.Input) -> UInt64? {
    let row = input.rowOfRank[Int(rank)]
    guard row != Compactor.Input.gone, rankOfRow[Int(row)] != Compactor.Input.gone else {
      return nil
    }
    return UInt64(rankOfRow[Int(row)])
  }

  /// The dead entries of the output, by those of the inputs.
  func dead(_ output: Compactor.Output, _ bits: (UInt64) -> DeadBits?) -> DeadBits {
    var result = DeadBits(entryCount: output.info.entryCount)
    for input in inputs {
      guard let dead = bits(input.segment.info.fileId), dead.count > 0 else { continue }
      for rank in 0..<input.segment.info.entryCount where dead[rank] {
        if let place = place(rank, of: input) { result.insert(place) }
      }
    }
    return result
  }

  /// The dead entries of the inputs at some moment, and those of the output by them.
  struct Prepared: Sendable {
    fileprivate var inputs: [UInt64: DeadBits]
    fileprivate var output: DeadBits?
  }

  /// Does what takes long of an exchange, before commits have to wait for it.
  func prepare(_ state: Published) -> Prepared {
    let inputs = deadEntries(state)
    return Prepared(inputs: inputs, output: output.map { dead($0) { inputs[$0] } })
  }

  private func deadEntries(_ state: Published) -> [UInt64: DeadBits] {
    Dictionary(uniqueKeysWithValues: state.sealed.map { ($0.segment.info.fileId, $0.dead) })
  }

  func swap(_ state: inout Published, _ prepared: Prepared) {
    let current = deadEntries(state)
    let start = state.sealed.firstIndex { ids.contains($0.segment.info.fileId) } ?? 0
    state.sealed.removeAll { ids.contains($0.segment.info.fileId) }
    if let segment, var dead = prepared.output {
      // With the marks that commits made on the inputs meanwhile.
      for input in inputs {
        let id = input.segment.info.fileId
        guard let now = current[id], let before = prepared.inputs[id] else { continue }
        now.forEachAdded(since: before) { rank in
          if let place = place(rank, of: input) { dead.insert(place) }
        }
      }
      state.sealed.insert(Published.Sealed(segment: segment, dead: dead), at: start)
    }
    // Marks of the tail name entries of the inputs.
    let byId = Dictionary(uniqueKeysWithValues: inputs.map { ($0.segment.info.fileId, $0) })
    for log in state.tail {
      log.moveMarks(from: ids) { mark in
        guard let output, let input = byId[mark.segment], let rank = place(mark.rank, of: input)
        else { return nil }
        return RowLog.Mark(row: mark.row, segment: output.info.fileId, rank: rank)
      }
    }
  }
}
