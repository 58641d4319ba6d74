#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation

  /// Replays a history into a store: a commit is a batch, a changed file a record.
  struct Replay {
    /// What was replayed.
    struct Result {
      var commits = 0
      var records = 0
      var payloadBytes: UInt64 = 0
      var standIns = 0
      /// The commit in whose tree the replay ended.
      var lastCommit = ""
      var duration = Duration.zero
    }

    let repository: Repository
    let interruption: Interruption
    let limit: Int?

    /// Payloads are in memory until they are committed; a commit with more of them becomes several
    /// batches.
    private static let batchBytes = 64 << 20

    func run(into store: ChangeStore) throws -> Result {
      let total = min(try GitHistory.count(repository), limit ?? .max)
      let progress = Progress("Replaying")
      defer { progress.finish() }
      var history = try GitHistory(repository)
      let blobs: BlobReader
      do {
        blobs = try BlobReader(repository)
      } catch {
        history.stop()
        throw error
      }
      var result = Result()
      do {
        let start = ContinuousClock.now
        var clock = ReplayClock()
        while result.commits < limit ?? .max, let commit = try history.next() {
          try interruption.check()
          try apply(commit, from: blobs, to: store, &clock, &result)
          progress.show(
            Double(result.commits) / Double(total), "\(Figures.count(result.records)) records")
        }
        result.duration = ContinuousClock.now - start
        result.standIns = blobs.standIns
      } catch {
        history.stop()
        blobs.stop()
        // A process that a signal ended explains an error of reading from it.
        try interruption.check()
        throw error
      }
      history.stop()
      try blobs.finish()
      return result
    }

    private func apply(
      _ commit: GitHistory.Commit, from blobs: BlobReader, to store: ChangeStore,
      _ clock: inout ReplayClock, _ result: inout Result
    ) throws {
      var batch: [ChangeRecord] = []
      var bytes = 0
      func flush() throws {
        guard !batch.isEmpty else { return }
        let outcome = try store.applyAndWait(batch)
        guard outcome.accepted == batch.count else {
          throw ToolError(
            .damage,
            "The store took \(outcome.accepted) of the \(batch.count) records of commit \(commit.id)."
          )
        }
        result.records += batch.count
        result.payloadBytes += UInt64(bytes)
        batch = []
        bytes = 0
      }
      // Deletions first: they have no content to read.
      for change in commit.changes where change.type == .delete {
        batch.append(record(change.file, .delete, Data(), commit, &clock))
      }
      let written = commit.changes.filter { $0.type != .delete }
      var types = written.lazy.map(\.type).makeIterator()
      try blobs.read(written.map(\.file)) { file, content in
        batch.append(record(file, types.next() ?? .update, content, commit, &clock))
        bytes += content.count
        if bytes >= Self.batchBytes { try flush() }
      }
      try flush()
      result.commits += 1
      result.lastCommit = commit.id
    }

    private func record(
      _ file: GitFile, _ type: MutationType, _ payload: Data, _ commit: GitHistory.Commit,
      _ clock: inout ReplayClock
    ) -> ChangeRecord {
      ChangeRecord(
        id: file.key.id, collection: file.key.collection, type: type, payload: payload,
        hlcTimestamp: clock.stamp(seconds: commit.time, author: commit.author),
        authorPublicKey: nil, signature: nil)
    }
  }
#endif
