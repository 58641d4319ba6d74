// Moving from another adapter into a store, and back.
extension ChangeStore {
  /// Copies all records of another adapter into this store, deletions included, and then compares each
  /// of them with what is here.
  ///
  /// ```swift
  /// let file = directory.appendingPathComponent("migration.json")
  /// let saved = try? JSONDecoder().decode(
  ///   Migration.Checkpoint.self, from: Data(contentsOf: file))
  /// let result = try await store.migrate(from: old, resuming: saved) { progress in
  ///   try JSONEncoder().encode(progress.checkpoint).write(to: file, options: .atomic)
  /// }
  /// if !result.isVerified { print("\(result.differenceCount) records differ") }
  /// ```
  ///
  /// The source is only read, and through the three methods of the contract only. A call that ends
  /// early, by an error, a cancellation or the death of the process, leaves a store that has a part of
  /// the records; another call with the last checkpoint goes on from there.
  ///
  /// Both sides may be written meanwhile. The newer version of each record wins here. What the source
  /// receives behind the reader, with a timestamp before it, only the comparison brings over, and what
  /// it receives behind that, nothing: before the app turns to the store for good it stops writing to
  /// the source, and calls this once more. Then ``Migration/late`` is zero.
  ///
  /// A source whose pages end among changes of equal timestamps loses nothing here; <doc:MigratingAdapters>
  /// says how, and what no reader can see.
  ///
  /// - Parameters:
  ///   - source: The adapter to copy from. It must give the same order in all its pages; that need not
  ///     be the one of `HlcComparator`.
  ///   - pageSize: How many records are read, and applied as one batch, at a time, at most; fewer while
  ///     payloads are large. The comparison reads other pages, of half as many again.
  ///   - author: The author label of the commits; the configuration's by default.
  ///   - checkpoint: How far an earlier call has come.
  ///   - progress: Called after each page. An error that it throws ends the migration.
  ///   - settingAside: Called in the comparison with each record that ``validate(_:)`` refuses, and
  ///     the reason. Without it, the first such record ends the migration with that error.
  /// - Throws: The errors of the source; ``LogStoreError``; `CancellationError` when the task is
  ///   cancelled.
  /// - Complexity: Reads all records of the source twice, or once if a checkpoint says that they were
  ///   copied, and looks up each. Memory for a page, or for the longest run of equal timestamps.
  @concurrent
  public func migrate(
    from source: any AirDbAdapter & Sendable, pageSize: Int = 500, author: String? = nil,
    resuming checkpoint: Migration.Checkpoint? = nil,
    progress: (@Sendable (Migration.Progress) async throws -> Void)? = nil,
    settingAside: (@Sendable (ChangeRecord, LogStoreError) async throws -> Void)? = nil
  ) async throws -> Migration {
    var run = try MigrationIntoStore(
      store: self, source: source, pageSize: max(1, pageSize), author: author,
      settingAside: settingAside, progress: progress,
      checkpoint: try usable(checkpoint, isIntoStore: true))
    return try await run.run()
  }

  /// Copies all records of this store into another adapter, deletions included, and then compares all
  /// that the two give: the way back.
  ///
  /// It is the counterpart of ``migrate(from:pageSize:author:resuming:progress:settingAside:)``, and
  /// what is said there of checkpoints, of early ends and of writers at the same time is true here.
  /// The target is compared by all that it gives, and so it is known what it hides.
  ///
  /// - Parameters:
  ///   - target: The adapter to copy into. It need not be empty; the newer version of each record wins.
  ///   - pageSize: How many records are read, and applied as one batch, at a time, at most; fewer while
  ///     payloads are large. The comparison reads other pages, of half as many again.
  ///   - checkpoint: How far an earlier call has come.
  ///   - progress: Called after each page. An error that it throws ends the migration.
  /// - Throws: The errors of the target; ``LogStoreError``; `CancellationError` when the task is
  ///   cancelled.
  /// - Complexity: Reads all records of the store twice and those of the target once, and once more
  ///   for each time that something was late, at most three times. Memory for a page, or for the
  ///   longest run of equal timestamps, and about 32 bytes a record.
  @concurrent
  public func migrate(
    to target: any AirDbAdapter & Sendable, pageSize: Int = 500,
    resuming checkpoint: Migration.Checkpoint? = nil,
    progress: (@Sendable (Migration.Progress) async throws -> Void)? = nil
  ) async throws -> Migration {
    var run = try MigrationOutOfStore(
      store: self, target: target, pageSize: max(1, pageSize), progress: progress,
      checkpoint: try usable(checkpoint, isIntoStore: false))
    return try await run.run()
  }

  private func usable(
    _ checkpoint: Migration.Checkpoint?, isIntoStore: Bool
  ) throws(LogStoreError) -> Migration.Checkpoint {
    let storeId = try engine.storeId
    if let checkpoint, checkpoint.storeId == storeId, checkpoint.isIntoStore == isIntoStore {
      return checkpoint
    }
    return Migration.Checkpoint(storeId: storeId, isIntoStore: isIntoStore)
  }
}
