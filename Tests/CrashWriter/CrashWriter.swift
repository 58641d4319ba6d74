import AirDbLogStore
import Dispatch
import TestSupport

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// What tests need a process of their own for. Not for users.
@main
struct CrashWriter {
  static func main() throws {
    let arguments = Array(CommandLine.arguments.dropFirst())
    switch arguments.first {
    case "write":
      // path, seed, durability, writers, first batch of each writer
      try write(
        arguments[1], seed: UInt64(arguments[2])!,
        arguments[3] == "powerLoss" ? .powerLoss : .processCrash,
        first: arguments[4...].map { Int($0)! })
    case "replay": try replay(arguments[1], first: Int(arguments[2])!)
    case "open": try open(arguments[1], isReadOnly: arguments.count > 2)
    case "hold": try hold(arguments[1])
    case "deliver": try deliver(arguments[1])
    case "migrate": try migrate(arguments[1])
    case "synchronize":
      // directory, first and last batch of the stream, batches between exchanges
      try synchronize(
        arguments[1], first: Int(arguments[2])!, last: Int(arguments[3])!,
        every: Int(arguments[4])!)
    case "fork": try useAfterFork(arguments[1])
    case "stream": try measureStream(arguments[1])
    case "scale": try measureScale(arguments[1], order: arguments[2], count: Int(arguments[3])!)
    case "cache": try measureCache(arguments[1], kind: arguments[2])
    case "compact": try measureCompaction(arguments[1], preset: arguments[2])
    default:
      let names =
        "write|replay|open|hold|deliver|migrate|synchronize|fork|stream|scale|cache|compact"
      print("usage: CrashWriter \(names) <path> ...")
      exit(64)
    }
  }

  /// Writes a line at once; a process that is killed has said what it has said.
  static func say(_ line: String) {
    var bytes = Array((line + "\n").utf8)[...]
    while !bytes.isEmpty {
      let count = bytes.withUnsafeBytes { Self.writeBytes($0) }
      if count < 0 {
        if errno == EINTR { continue }
        exit(74)
      }
      bytes = bytes.dropFirst(count)
    }
  }

  private static func writeBytes(_ bytes: UnsafeRawBufferPointer) -> Int {
    #if canImport(Darwin)
      Darwin.write(1, bytes.baseAddress, bytes.count)
    #elseif canImport(Musl)
      Musl.write(1, bytes.baseAddress, bytes.count)
    #else
      Glibc.write(1, bytes.baseAddress, bytes.count)
    #endif
  }

  /// Applies the batches of as many writers as there are first numbers, for ever, and acknowledges
  /// each one with the writer and the number.
  private static func write(
    _ path: String, seed: UInt64, _ durability: Durability, first: [Int]
  ) throws {
    let store = try ChangeStore(at: path, configuration: CrashScript.configuration(durability))
    say("open")
    inThreads(first.count) { writer in
      let script = CrashScript(seed: seed, writer: writer)
      var number = first[writer]
      while true {
        do {
          try store.applyAndWait(script.batch(number))
        } catch {
          say("failed \(error)")
          exit(70)
        }
        say("\(writer) \(number)")
        number += 1
      }
    }
  }

  /// Applies the recorded stream from a batch on, and acknowledges each one with its number.
  private static func replay(_ path: String, first: Int) throws {
    let store = try ChangeStore(
      at: path, configuration: CrashScript.configuration(.processCrash))
    var number = 0
    try ChangeStream.forEachBatch { batch in
      if number >= first {
        try store.applyAndWait(batch)
        say("\(number)")
      }
      number += 1
      return true
    }
    try store.close()
  }

  /// Opens a store and says how that went.
  private static func open(_ path: String, isReadOnly: Bool) throws {
    var configuration = Configuration()
    configuration.isReadOnly = isReadOnly
    do throws(LogStoreError) {
      let store = try ChangeStore(at: path, configuration: configuration)
      say("open \(try store.changes(limit: .max).records.count)")
      try store.close()
    } catch {
      say(error.code.rawValue)
    }
  }

  /// Delivers to a consumer until there is nothing more, and says of each commit that it has arrived.
  private static func deliver(_ path: String) throws {
    let store = try ChangeStore(
      at: path, configuration: CrashScript.configuration(.processCrash))
    let consumer = try store.consumer(named: "killed", retaining: .history())
    say("open")
    let isDone = DispatchSemaphore(value: 0)
    Task {
      do {
        try await consumer.deliver(limit: 3) { page in
          for commit in page.commits { say("\(commit.position.sequence)") }
        }
        say("end")
      } catch {
        say("failed \(error)")
      }
      isDone.signal()
    }
    isDone.wait()
    try store.close()
  }

  /// Holds a store open until its standard input ends.
  private static func hold(_ path: String) throws {
    let store = try ChangeStore(at: path)
    say("open")
    while readLine() != nil {}
    try store.close()
    say("closed")
  }
}
