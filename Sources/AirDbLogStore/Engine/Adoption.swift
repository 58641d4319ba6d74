/// Makes a copy of a store one of its own.
package enum Adoption {
  /// Gives the store in a directory another identity. Answers it.
  ///
  /// One manifest takes the place of another, so that a crash leaves the one identity or the other.
  package static func run(_ directory: StoreDirectory) throws(LogStoreError) -> StoreId {
    // Looked at before there is a lock file, which is for stores.
    guard try directory.readManifest() != nil else { throw notFound(directory) }
    let lock = try WriterLock(directory)
    defer { lock.release() }
    guard var manifest = try directory.readManifest() else { throw notFound(directory) }
    guard manifest.optionalFeatures == 0 else {
      throw LogStoreError(
        .unsupportedFormat, "The store has optional features that this version cannot keep up.",
        file: directory.manifest)
    }
    do throws(SystemError) {
      manifest.generation += 1
      manifest.adoption = try random(otherThan: manifest.adoption, directory.platform)
      try directory.replaceManifest(manifest)
    } catch {
      // What there is of the new one takes space, of which there may be none.
      try? directory.remove(directory.newManifest)
      throw LogStoreError(error, "give the store another identity", file: directory.manifest)
    }
    return manifest.identity
  }

  private static func notFound(_ directory: StoreDirectory) -> LogStoreError {
    LogStoreError(.storeNotFound, "There is no store.", file: directory.path)
  }

  /// A random number that is neither 0 nor the one that there is.
  private static func random(
    otherThan current: UInt64, _ platform: any Platform
  ) throws(SystemError) -> UInt64 {
    var number: UInt64 = 0
    while number == 0 || number == current {
      var failure: SystemError?
      withUnsafeMutableBytes(of: &number) { buffer in
        do throws(SystemError) {
          try platform.fillRandom(buffer)
        } catch {
          failure = error
        }
      }
      if let failure { throw failure }
    }
    return number
  }
}
