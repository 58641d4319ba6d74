import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// The examples about events and figures; see Examples.swift.
struct EventExamples {
  @Test func log() async throws {
    // example: Log
    enum LogLevel { case debug, notice, error }

    func eventHandler(
      log: @escaping @Sendable (LogLevel, String) -> Void
    ) -> @Sendable (StoreEvent) -> Void {
      { event in
        switch event {
        case .recovered(let discardedBytes, let lastSequence, let replayedRecords):
          log(
            .notice,
            "recovered to commit \(lastSequence): \(replayedRecords) records replayed, "
              + "\(discardedBytes) bytes discarded")
        case .repaired(let file, let reason):
          log(.error, "built \(file) again: \(reason)")
        case .failed(let error):
          log(.error, "\(error)")
        case .durabilityReduced:
          log(.notice, "commits do not survive a loss of power here")
        default:
          log(.debug, "\(event)")
        }
      }
    }

    var configuration = Configuration()
    configuration.eventHandler = eventHandler { level, message in
      print(level, message)
    }
    // end
    let (lines, continuation) = AsyncStream.makeStream(of: String.self)
    let handler = eventHandler { level, message in continuation.yield("\(level): \(message)") }
    handler(.recovered(discardedBytes: 3, lastSequence: 2, replayedRecords: 1))
    handler(.repaired(file: "F", reason: "a reason"))
    handler(.durabilityReduced)
    continuation.finish()
    var seen: [String] = []
    for await line in lines { seen.append(line) }
    #expect(
      seen == [
        "notice: recovered to commit 2: 1 records replayed, 3 bytes discarded",
        "error: built F again: a reason", "notice: commits do not survive a loss of power here",
      ])
    let store = try ChangeStore.inMemory(configuration: configuration)
    try store.close()
  }

  @Test func metrics() throws {
    let store = try ChangeStore.inMemory()
    _ = try store.consumer(named: "search")
    try store.applyAndWait([
      ChangeRecord(
        id: "1", collection: "notes", type: .insert, payload: Data(),
        hlcTimestamp: "1700000000000-0000-a")
    ])
    var gauges: [String: Double] = [:]
    func gauge(_ name: String, _ value: Double) { gauges[name] = value }
    // example: Metrics
    let statistics = try store.statistics()
    gauge("store.records.live", Double(statistics.liveRecords))
    gauge("store.records.superseded", Double(statistics.records - statistics.liveRecords))
    gauge(
      "store.bytes",
      Double(statistics.segmentBytes + statistics.indexBytes + statistics.unsealedBytes))
    for consumer in try store.consumers() {
      gauge("store.consumers.\(consumer.name).lag", Double(consumer.lag.commits))
    }
    // end
    #expect(gauges["store.records.live"] == 1 && gauges["store.records.superseded"] == 0)
    #expect(gauges["store.consumers.search.lag"] == 1)
    #expect(try #require(gauges["store.bytes"]) > 0)
  }
}
