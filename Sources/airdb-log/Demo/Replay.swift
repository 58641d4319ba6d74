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
      /// The part of it that the store took.
      var storeDuration = Duration.zero
    }

    let repository: Repository
    let interruption: Interruption
    let limit: Int?

    /// Payloads are in memory until they are committed; a commit with more of them becomes several
    /// batches.
    private static let batchBytes = 64 << 20
    /// Changed files whose names, not contents, are in memory ahead of what is stored.
    private static let changesAhead = 256

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
        while let commits = try readAhead(&history, limit.map { $0 - result.commits } ?? .max) {
          try blobs.expect(commits.lazy.flatMap(\.changes).filter(\.hasContent).map(\.file))
          for commit in commits {
            try interruption.check()
            try apply(commit, from: blobs, to: store, &clock, &result)
            progress.show(
              Double(result.commits) / Double(max(total, 1)),
              Figures.count(result.records, "record", "records"))
          }
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

    /// The next commits, so many of them that git has contents to look for while others are stored;
    /// nil at the end.
    private func readAhead(
      _ history: inout GitHistory, _ limit: Int
    ) throws -> [GitHistory.Commit]? {
      var commits: [GitHistory.Commit] = []
      var changes = 0
      while commits.count < limit, changes < Self.changesAhead, let commit = try history.next() {
        commits.append(commit)
        changes += commit.changes.count
      }
      return commits.isEmpty ? nil : commits
    }

    private func apply(
      _ commit: GitHistory.Commit, from blobs: BlobReader, to store: ChangeStore,
      _ clock: inout ReplayClock, _ result: inout Result
    ) throws {
      var batch: [ChangeRecord] = []
      var bytes = 0
      func flush() throws {
        guard !batch.isEmpty else { return }
        let start = ContinuousClock.now
        let outcome = try store.applyAndWait(batch)
        result.storeDuration += ContinuousClock.now - start
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
      for change in commit.changes {
        let content = change.hasContent ? try blobs.next() : Data()
        batch.append(record(change, content, commit, &clock))
        bytes += content.count
        if bytes >= Self.batchBytes { try flush() }
      }
      try flush()
      result.commits += 1
      result.lastCommit = commit.id
    }

    private func record(
      _ change: GitHistory.Change, _ payload: Data, _ commit: GitHistory.Commit,
      _ clock: inout ReplayClock
    ) -> ChangeRecord {
      ChangeRecord(
        id: change.file.key.id, collection: change.file.key.collection, type: change.type,
        payload: payload,
        hlcTimestamp: clock.stamp(seconds: commit.time, author: commit.author),
        authorPublicKey: nil, signature: nil)
    }
  }
#endif
