/// The files of which a sync has failed in this process.
///
/// Systems mark the pages of such a file clean, so that the next sync succeeds without writing them,
/// and what is read comes from the cache. Whoever goes on with such a file must therefore copy it to
/// another one first, and must know that he has to: hence this list, which outlives the handle.
package enum FailedSyncs {
  private static let files = Locked<Set<FileIdentity>>([])

  static func insert(_ file: FileIdentity) {
    _ = files.withLock { $0.insert(file) }
  }

  package static func contains(_ file: FileIdentity) -> Bool {
    files.withLock { $0.contains(file) }
  }
}
