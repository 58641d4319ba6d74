#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Mutual exclusion for short stretches of code: `os_unfair_lock` on Apple platforms, a pthread
/// mutex elsewhere. Not recursive; nothing that blocks belongs under it.
///
/// The word that the system knows by its address lives on the heap, where it never moves.
///
/// `@unchecked Sendable`: the only stored property is a pointer that never changes, to memory that
/// only the lock calls of the system touch, and those may be called from any thread.
package final class Lock: @unchecked Sendable {
  #if canImport(Darwin)
    private let word: UnsafeMutablePointer<os_unfair_lock>
  #else
    private let word: UnsafeMutablePointer<pthread_mutex_t>
  #endif

  package init() {
    word = .allocate(capacity: 1)
    #if canImport(Darwin)
      word.initialize(to: os_unfair_lock())
    #else
      word.initialize(to: pthread_mutex_t())
      require(pthread_mutex_init(word, nil), "pthread_mutex_init")
    #endif
  }

  deinit {
    #if !canImport(Darwin)
      require(pthread_mutex_destroy(word), "pthread_mutex_destroy")
    #endif
    word.deinitialize(count: 1)
    word.deallocate()
  }

  /// Runs `body` while no other thread is inside this lock.
  package func withLock<Result: ~Copyable, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    lock()
    defer { unlock() }
    return try body()
  }

  fileprivate func lock() {
    #if canImport(Darwin)
      os_unfair_lock_lock(word)
    #else
      require(pthread_mutex_lock(word), "pthread_mutex_lock")
    #endif
  }

  fileprivate func unlock() {
    #if canImport(Darwin)
      os_unfair_lock_unlock(word)
    #else
      require(pthread_mutex_unlock(word), "pthread_mutex_unlock")
    #endif
  }
}

/// A value that is only reached under its own ``Lock``.
///
/// `@unchecked Sendable`: `value` is only touched in ``withLock(_:)``, by one thread at a time,
/// and being `Sendable` itself it may leave with a caller.
package final class Locked<Value: Sendable>: @unchecked Sendable {
  private let lock = Lock()
  private var value: Value

  package init(_ value: Value) {
    self.value = value
  }

  /// Runs `body` with the value while no other thread is inside this lock.
  package func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value)
  }
}

/// Mutual exclusion with waiting: a pthread mutex and one condition variable.
///
/// A thread that finds its condition false inside ``withLock(_:)`` calls ``wait()``, which lets
/// others in until ``signalAll()``. Waiting ends spuriously too, so it stands in a loop.
///
/// `@unchecked Sendable`: both stored properties are pointers that never change, to memory that
/// only pthread calls touch, and those may be called from any thread.
package final class Monitor: @unchecked Sendable {
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>

  package init() {
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    require(pthread_mutex_init(mutex, nil), "pthread_mutex_init")
    condition = .allocate(capacity: 1)
    condition.initialize(to: pthread_cond_t())
    require(pthread_cond_init(condition, nil), "pthread_cond_init")
  }

  deinit {
    require(pthread_cond_destroy(condition), "pthread_cond_destroy")
    condition.deinitialize(count: 1)
    condition.deallocate()
    require(pthread_mutex_destroy(mutex), "pthread_mutex_destroy")
    mutex.deinitialize(count: 1)
    mutex.deallocate()
  }

  /// Runs `body` while no other thread is inside this monitor, except for those that wait.
  package func withLock<Result: ~Copyable, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    require(pthread_mutex_lock(mutex), "pthread_mutex_lock")
    defer { require(pthread_mutex_unlock(mutex), "pthread_mutex_unlock") }
    return try body()
  }

  /// Lets other threads in until ``signalAll()``. Only inside ``withLock(_:)``.
  package func wait() {
    require(pthread_cond_wait(condition, mutex), "pthread_cond_wait")
  }

  /// Wakes every thread that waits. Inside ``withLock(_:)`` or after it.
  package func signalAll() {
    require(pthread_cond_broadcast(condition), "pthread_cond_broadcast")
  }
}

/// The calls above fail only when they are misused; going on without exclusion would be worse than
/// to stop.
private func require(_ status: CInt, _ call: StaticString) {
  precondition(status == 0, "\(call) failed with errno \(status)")
}
