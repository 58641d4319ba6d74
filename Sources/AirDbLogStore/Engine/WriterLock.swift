/// Holds a store for one writing engine: `flock` on the `LOCK` file, and a registry of the process
/// for file systems on which a second lock of the same process succeeds.
///
/// The file's content and age mean nothing, so that a lock left by a crash never blocks (G10). A
/// forked child shares the lock: it must not release it, nor write.
package final class WriterLock: Sendable {
  private let file: OpenFile
  private let identity: FileIdentity
  private let platform: any Platform
  private let process: Int32
  private let isHeld = Locked(false)

  private static let registry = Locked(Set<FileIdentity>())

  /// Takes the lock, or throws `storeInUse`.
  package init(_ directory: StoreDirectory) throws(LogStoreError) {
    platform = directory.platform
    process = platform.processIdentifier()
    let path = directory.lock
    do throws(SystemError) {
      file = try directory.open(path, .createIfAbsent)
      identity = try file.identity()
    } catch {
      throw LogStoreError(error, "open the lock file", file: path)
    }
    let identity = identity
    let inUse = LogStoreError(
      .storeInUse, "The store is open for writing elsewhere.", file: path)
    guard Self.registry.withLock({ $0.insert(identity).inserted }) else { throw inUse }
    let isTaken: Bool
    do throws(SystemError) {
      isTaken = try file.tryLock()
    } catch {
      _ = Self.registry.withLock { $0.remove(identity) }
      throw LogStoreError(error, "lock the store", file: path)
    }
    guard isTaken else {
      _ = Self.registry.withLock { $0.remove(identity) }
      throw inUse
    }
    // Only now: the initializer of a refused open runs `deinit` too, which must not release what
    // another one holds.
    isHeld.withLock { $0 = true }
  }

  deinit { release() }

  /// Whether this process is the one that took the lock.
  package var isOwnProcess: Bool { platform.processIdentifier() == process }

  /// Runs `body` if the lock is still held, which it is until that returns.
  package func whileHeld(_ body: () -> Void) {
    isHeld.withLock { held in
      if held { body() }
    }
  }

  /// Gives the lock back. In a forked child this does nothing: the parent holds it.
  package func release() {
    guard isOwnProcess,
      isHeld.withLock({ held in
        defer { held = false }
        return held
      })
    else { return }
    _ = Self.registry.withLock { $0.remove(identity) }
    // Closing releases too; doing both keeps a failing close from holding the lock.
    try? file.unlock()
    try? file.close()
  }
}
