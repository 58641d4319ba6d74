/// Open files of sealed segments and indexes, at most a fixed number of them: the one used longest
/// ago is closed, and opened again when it is needed (G10).
///
/// A file that is dropped while a reader still uses it is closed when that reader is done.
package final class FileTable: Sendable {
  private let directory: StoreDirectory
  private let capacity: Int
  private let state = Locked(State())

  private struct State {
    var files: [StoreDirectory.Name: Entry] = [:]
    var clock: UInt64 = 0
  }

  private struct Entry {
    var file: OpenFile
    var lastUse: UInt64
  }

  package init(directory: StoreDirectory, capacity: Int) {
    self.directory = directory
    self.capacity = max(capacity, 2)
  }

  /// The file, open for reading.
  package func file(_ name: StoreDirectory.Name) throws(SystemError) -> OpenFile {
    let known = state.withLock { state -> OpenFile? in
      state.clock += 1
      state.files[name]?.lastUse = state.clock
      return state.files[name]?.file
    }
    if let known { return known }
    let fresh = try open(name)
    // What falls out of the table is closed outside the lock.
    let (file, _) = state.withLock { state -> (OpenFile, OpenFile?) in
      if let other = state.files[name] { return (other.file, fresh) }
      var evicted: OpenFile?
      if state.files.count >= capacity,
        let oldest = state.files.min(by: { $0.value.lastUse < $1.value.lastUse })
      {
        evicted = oldest.value.file
        state.files[oldest.key] = nil
      }
      state.clock += 1
      state.files[name] = Entry(file: fresh, lastUse: state.clock)
      return (fresh, evicted)
    }
    return file
  }

  /// Opens a file; out of descriptors, it first gives back those that it holds.
  private func open(_ name: StoreDirectory.Name) throws(SystemError) -> OpenFile {
    do {
      return try directory.open(directory.path(of: name), .read)
    } catch {
      guard error.isTooManyFiles else { throw error }
      removeAll()
      return try directory.open(directory.path(of: name), .read)
    }
  }

  package func remove(_ name: StoreDirectory.Name) {
    _ = state.withLock { $0.files.removeValue(forKey: name) }
  }

  package func removeAll() {
    _ = state.withLock { state -> [StoreDirectory.Name: Entry] in
      defer { state.files = [:] }
      return state.files
    }
  }
}
