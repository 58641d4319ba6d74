import AirDbLogStore
import Dispatch
import Foundation
import TestSupport

// Work between two stores, for tests that kill it.
extension CrashWriter {
  /// Migrates from a store, read in pages that split runs, into another one, and back into a third; says
  /// of each page that it is done, and keeps checkpoints in files beside them.
  static func migrate(_ directory: String) throws {
    let configuration = CrashScript.configuration(.powerLoss)
    let source = try ChangeStore(at: directory + "/source", configuration: configuration)
    let store = try ChangeStore(at: directory + "/store", configuration: configuration)
    let target = try ChangeStore(at: directory + "/target", configuration: configuration)
    say("open")
    try wait {
      let into = CheckpointFile(path: directory + "/into.json")
      let result = try await store.migrate(
        from: SplittingAdapter(source), pageSize: 20, resuming: into.checkpoint
      ) { progress in
        try into.keep(progress.checkpoint)
        say("into \(progress.records)")
      }
      say("into \(result.isVerified) \(result.copied) \(result.identical) \(result.late)")
      let back = CheckpointFile(path: directory + "/back.json")
      let second = try await store.migrate(
        to: SplittingAdapter(target), pageSize: 20, resuming: back.checkpoint
      ) { progress in
        try back.keep(progress.checkpoint)
        say("back \(progress.records)")
      }
      say("back \(second.isVerified) \(second.copied) \(second.identical) \(second.late)")
    }
    for store in [source, store, target] { try store.close() }
    say("end")
  }

  private struct CheckpointFile {
    let path: String

    var checkpoint: Migration.Checkpoint? {
      get throws {
        guard let bytes = FileManager.default.contents(atPath: path) else { return nil }
        return try JSONDecoder().decode(Migration.Checkpoint.self, from: bytes)
      }
    }

    func keep(_ checkpoint: Migration.Checkpoint) throws {
      try JSONEncoder().encode(checkpoint).write(
        to: URL(fileURLWithPath: path), options: .atomic)
    }
  }

  /// Applies the batches of the recorded stream, in turn to one of two stores, which exchange their
  /// changes now and then and at the end. Says of each step that it is done.
  static func synchronize(_ directory: String, first: Int, last: Int, every count: Int) throws {
    let configuration = CrashScript.configuration(.processCrash)
    let stores = try ["/one", "/other"].map {
      try ChangeStore(at: directory + $0, configuration: configuration)
    }
    func exchange() throws {
      try wait {
        let result = try await stores[0].converge(with: SplittingAdapter(stores[1]), pageSize: 100)
        say("exchanged \(result.isQuiet) \(result.sent) \(result.received)")
      }
    }
    say("open")
    var number = 0
    try ChangeStream.forEachBatch { batch in
      if number >= first {
        try stores[number % 2].applyAndWait(batch)
        say("\(number)")
        if number % count == count - 1 { try exchange() }
      }
      number += 1
      return number < last
    }
    try exchange()
    for store in stores { try store.close() }
    say("end")
  }

  /// Runs a task, and waits for its end.
  private static func wait(_ body: @escaping @Sendable () async throws -> Void) throws {
    let isDone = DispatchSemaphore(value: 0)
    Task {
      do {
        try await body()
      } catch {
        say("failed \(error)")
        exit(70)
      }
      isDone.signal()
    }
    isDone.wait()
  }
}
