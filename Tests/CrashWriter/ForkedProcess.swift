import AirDbLogStore
import TestSupport

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

extension CrashWriter {
  /// Forks with an open store, and says what each call on it in the child comes to.
  ///
  /// Darwin does not let Swift fork; there a child is always another program, which inherits nothing.
  static func useAfterFork(_ path: String) throws {
    #if !canImport(Darwin)
      let script = CrashScript(seed: 1, writer: 0)
      var configuration = CrashScript.configuration(.processCrash)
      // No job runs in the background while the process is copied.
      configuration.segmentRecords = 1_000
      configuration.segmentBytes = 1 << 20
      let store = try ChangeStore(at: path, configuration: configuration)
      for number in 1...5 { try store.applyAndWait(script.batch(number)) }
      let child = fork()
      if child == 0 {
        useInChild(store, path, configuration)
        _exit(0)
      }
      var status: CInt = 0
      waitpid(child, &status, 0)
      say("child ended with \(status)")
      for number in 6...20 { try store.applyAndWait(script.batch(number)) }
      say("verified \(try store.verify().isClean)")
      try store.close()
    #endif
  }

  private static func useInChild(
    _ store: ChangeStore, _ path: String, _ configuration: Configuration
  ) {
    let script = CrashScript(seed: 1, writer: 0)
    let calls: [(String, () throws(LogStoreError) -> Void)] = [
      ("apply", { () throws(LogStoreError) in try store.applyAndWait(script.batch(100)) }),
      ("flush", { () throws(LogStoreError) in try store.flush(to: .powerLoss) }),
      ("reopen", { () throws(LogStoreError) in try store.reopen() }),
      (
        "open",
        { () throws(LogStoreError) in
          _ = try ChangeStore(at: path, configuration: configuration)
        }
      ),
      ("suspend", { () throws(LogStoreError) in try store.suspend() }),
      ("resume", { () throws(LogStoreError) in try store.resume() }),
      ("close", { () throws(LogStoreError) in try store.close() }),
    ]
    for (name, call) in calls {
      do throws(LogStoreError) {
        try call()
        say("\(name) done")
      } catch {
        say("\(name) \(error.code.rawValue)")
      }
    }
  }
}
