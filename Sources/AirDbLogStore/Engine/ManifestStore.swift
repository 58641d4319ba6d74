/// The current manifest and the one way to replace it.
package final class ManifestStore: Sendable {
  private let directory: StoreDirectory
  private let current: Locked<Manifest>
  /// Held while a manifest is written; readers of ``value`` do not wait for it.
  private let writing = Monitor()

  package init(_ manifest: Manifest, in directory: StoreDirectory) {
    current = Locked(manifest)
    self.directory = directory
  }

  package var value: Manifest { current.withLock { $0 } }

  /// Why a manifest was not replaced.
  package enum Failure: Error {
    /// The old manifest is in force, and another attempt may succeed.
    case notWritten(SystemError)
    /// The new manifest is in force, but its entry in the directory could not be synced for want of
    /// a descriptor: a crash may find either. Another attempt may succeed.
    case notDurable(SystemError)
    /// A sync or the rename failed: which manifest will be found is unknown.
    case unknown(SystemError)
  }

  /// Writes the next generation: `change` gets a copy of the current manifest with its generation
  /// already raised.
  package func update<Refusal: Error>(
    _ change: (inout Manifest) throws(Refusal) -> Void,
    orElse convert: (Failure) -> Refusal
  ) throws(Refusal) {
    try writing.withLock { () throws(Refusal) in
      var next = value
      next.generation += 1
      try change(&next)
      let failure = write(next)
      if let failure { throw convert(failure) }
      current.withLock { $0 = next }
    }
  }

  private func write(_ manifest: Manifest) -> Failure? {
    do throws(SystemError) {
      try withBytes(of: manifest.encode()) { (bytes) throws(SystemError) in
        try directory.writeSynced(bytes, to: directory.newManifest)
      }
    } catch {
      // What there is of it takes space, of which there may be none.
      try? directory.remove(directory.newManifest)
      return .notWritten(error)
    }
    do throws(SystemError) {
      try directory.rename(directory.newManifest, to: directory.manifest)
    } catch {
      // Without space or permission the call has not even begun.
      guard error.isRefusal else { return .unknown(error) }
      try? directory.remove(directory.newManifest)
      return .notWritten(error)
    }
    do throws(SystemError) {
      try directory.synchronizeDirectory()
    } catch {
      return error.isTooManyFiles ? .notDurable(error) : .unknown(error)
    }
    return nil
  }
}
