// Runs the branches for Apple platforms on Linux, over stand-ins for Darwin and Compression. Built
// and run by Tests/apple-check.sh; a program rather than tests, because a module named Darwin breaks
// the test runner of the package manager on Linux.
import AirDbLogStore
import Darwin
import Dispatch
import Foundation

let check = Checks()
check.lockExcludes()
try check.fullSyncIsAskedFor()
try check.fullSyncFallsBack()
try check.failedFullSyncIsNoFallback()
try check.storeKeepsRecords()
try check.storeTellsReducedDurability()
try check.attributesAreSet()
check.finish()

final class Checks {
  private var passed = 0
  private var failed = 0

  func expect(_ condition: Bool, _ what: String) {
    if condition {
      passed += 1
    } else {
      failed += 1
      print("apple-exercise: failed: \(what)")
    }
  }

  func finish() -> Never {
    print("apple-exercise: \(passed) checks passed, \(failed) failed")
    exit(failed == 0 && passed > 0 ? 0 : 1)
  }

  // MARK: Lock.swift: os_unfair_lock

  func lockExcludes() {
    let count = Locked(0)
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      for _ in 0..<10_000 { count.withLock { $0 += 1 } }
    }
    expect(count.withLock { $0 } == 80_000, "increments under a lock are lost")
  }

  // MARK: SystemPlatform.swift: F_FULLFSYNC

  func fullSyncIsAskedFor() throws {
    try withDirectory { directory in
      let file = try OpenFile(directory + "/a", .createNew, on: SystemPlatform())
      fullSync = FullSync()
      expect(try file.synchronize(to: .stable) == .stable, "F_FULLFSYNC is not stable storage")
      expect(fullSync.calls == 1, "a file is synced without F_FULLFSYNC")
      expect(try file.synchronize(to: .device) == .device, "fsync is taken for more than it is")
      expect(fullSync.calls == 1, "a sync to the device uses F_FULLFSYNC")
      try SystemPlatform().synchronizeDirectory(directory)
      expect(fullSync.calls == 2, "a directory is synced without F_FULLFSYNC")
    }
  }

  func fullSyncFallsBack() throws {
    try withDirectory { directory in
      let file = try OpenFile(directory + "/a", .createNew, on: SystemPlatform())
      for failure in [ENOTSUP, ENOTTY] {
        fullSync = FullSync(failure: failure)
        expect(try file.synchronize(to: .stable) == .device, "no fallback from errno \(failure)")
        try SystemPlatform().synchronizeDirectory(directory)
      }
      fullSync = FullSync()
    }
  }

  func failedFullSyncIsNoFallback() throws {
    try withDirectory { directory in
      let file = try OpenFile(directory + "/a", .createNew, on: SystemPlatform())
      fullSync = FullSync(failure: EIO)
      do {
        _ = try file.synchronize(to: .stable)
        expect(false, "a failed F_FULLFSYNC is hidden")
      } catch {
        let expected = SystemError(errno: EIO, call: "fcntl(F_FULLFSYNC)")
        expect(error as? SystemError == expected, "\(error)")
      }
      fullSync = FullSync()
    }
  }

  // MARK: The whole engine

  func storeKeepsRecords() throws {
    try withDirectory { directory in
      let store = try ChangeStore(at: directory + "/store")
      for batch in 0..<4 { try store.applyAndWait(records(batch)) }
      let written = try store.changes(limit: .max).records
      try store.close()

      let reopened = try ChangeStore(at: URL(fileURLWithPath: directory + "/store"))
      expect(written.count == 400, "\(written.count) records")
      expect(try reopened.changes(limit: .max).records == written, "records changed by a reopen")
      expect(try reopened.verify().isClean, "a store just written is not clean")
      try reopened.close()
    }
  }

  /// Compressible text, of several blocks a batch.
  private func records(_ batch: Int) -> [ChangeRecord] {
    (0..<100).map { index in
      ChangeRecord(
        id: "\(batch)-\(index)", collection: "notes", type: .insert,
        payload: Data(String(repeating: "line \(index)\n", count: 100).utf8),
        hlcTimestamp: "170000000000\(batch)-\(index)-node", authorPublicKey: nil, signature: nil)
    }
  }

  func storeTellsReducedDurability() throws {
    try withDirectory { directory in
      let events = Locked<[String]>([])
      var configuration = Configuration()
      configuration.eventHandler = { event in events.withLock { $0.append("\(event)") } }
      fullSync = FullSync(failure: ENOTSUP)
      let store = try ChangeStore(at: directory + "/store", configuration: configuration)
      try store.applyAndWait(records(0))
      expect(try store.effectiveDurability == .processCrash, "a weaker sync is not told")
      expect(events.withLock { $0 } == ["durabilityReduced"], "\(events.withLock { $0 })")
      try store.close()
      fullSync = FullSync()
    }
  }

  // MARK: DirectoryAttributes.swift

  /// Foundation on Linux takes the attributes and forgets them: this shows that the calls are made
  /// and do no harm, not what they do.
  func attributesAreSet() throws {
    try withDirectory { directory in
      var configuration = Configuration()
      configuration.isExcludedFromBackup = true
      for protection in [
        FileProtection.complete, .completeUnlessOpen, .completeUntilFirstUserAuthentication,
        .unprotected,
      ] {
        configuration.fileProtection = protection
        let path = "\(directory)/\(protection)"
        let store = try ChangeStore(at: path, configuration: configuration)
        _ = try store.isExcludedFromBackup
        try store.close()
        expect(FileManager.default.fileExists(atPath: path + "/MANIFEST"), "no store")
      }
    }
  }

  private func withDirectory(_ body: (_ path: String) throws -> Void) throws {
    let parent = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
    let path = "\(parent)/apple-exercise-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(atPath: path) }
    try body(path)
  }
}
