#if os(macOS) || os(Linux)
  import Foundation

  /// The process was asked to end by a signal.
  struct Interrupted: Error {
    var signal: Int32
  }

  /// Signals that ask the tool to end, turned into an error at the next ``check()``, so that all that
  /// was begun is cleaned up on the way out.
  ///
  /// A signal ends the child processes at once, for whoever waits for their output. A second one does
  /// not wait for the clean-up of the first.
  ///
  /// `@unchecked Sendable`: the variables are only touched under the lock.
  final class Interruption: @unchecked Sendable {
    private let lock = NSLock()
    private var signal: Int32?
    private var children: [ObjectIdentifier: ChildProcess] = [:]
    private var sources: [any DispatchSourceSignal] = []
    private var lastResort: (@Sendable () -> Void)?

    /// Begins to listen. Call once a process.
    ///
    /// - Parameter lastResort: What a second signal does before the process ends.
    func watch(lastResort: @escaping @Sendable () -> Void) {
      lock.withLock { self.lastResort = lastResort }
      for signal in [SIGINT, SIGTERM, SIGHUP] {
        // The source hears the signal only if its own action does not come first. Who started us
        // with a signal ignored, as `nohup` does, wants it ignored.
        var action = sigaction()
        sigaction(signal, nil, &action)
        guard !isIgnored(action) else { continue }
        Foundation.signal(signal, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: signal, queue: .global())
        source.setEventHandler { self.receive(signal) }
        source.resume()
        sources.append(source)
      }
    }

    /// Whether a signal has come.
    var hasCome: Bool { lock.withLock { signal != nil } }

    /// Throws ``Interrupted`` if a signal has come.
    func check() throws {
      if let signal = lock.withLock({ signal }) { throw Interrupted(signal: signal) }
    }

    func add(_ child: ChildProcess) {
      let isLate = lock.withLock {
        children[ObjectIdentifier(child)] = child
        return signal != nil
      }
      if isLate { child.kill(SIGKILL) }
    }

    func remove(_ child: ChildProcess) {
      lock.withLock { _ = children.removeValue(forKey: ObjectIdentifier(child)) }
    }

    private func receive(_ signal: Int32) {
      let (isSecond, children, lastResort) = lock.withLock {
        defer { self.signal = self.signal ?? signal }
        return (self.signal != nil, self.children.values, self.lastResort)
      }
      for child in children { child.kill(SIGKILL) }
      if isSecond {
        lastResort?()
        Self.end(by: signal)
      }
    }

    /// Ends this process as the signal does by default.
    static func end(by signal: Int32) -> Never {
      Foundation.signal(signal, SIG_DFL)
      // Who listens to a signal may do so by blocking it.
      var signals = sigset_t()
      sigemptyset(&signals)
      sigaddset(&signals, signal)
      pthread_sigmask(SIG_UNBLOCK, &signals, nil)
      raise(signal)
      exit(128 + signal)
    }

    private func isIgnored(_ action: sigaction) -> Bool {
      #if canImport(Darwin)
        let handler = action.__sigaction_u.__sa_handler
      #else
        let handler = action.__sigaction_handler.sa_handler
      #endif
      return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }
  }
#endif
