import AirDbLogStore
import Foundation

/// The engine of this package, through its public API, with the configuration it has by default:
/// a cache of 16 MiB, and cleaning in the background.
final class LogStoreEngine: StorageEngine {
  let store: ChangeStore

  init(at path: String, level: Level) throws {
    var configuration = Configuration()
    configuration.durability = level == .full ? .powerLoss : .processCrash
    store = try ChangeStore(at: path, configuration: configuration)
  }

  func apply(_ batch: [ChangeRecord]) throws {
    try store.applyAndWait(batch)
  }

  func page(after cursor: String?, limit: Int) throws -> [ChangeRecord] {
    try store.changes(after: cursor.map { ChangeCursor(behind: $0) }, limit: limit).records
  }

  func sweep(pageSize: Int, _ body: ([ChangeRecord]) throws -> Void) throws {
    var cursor: ChangeCursor?
    while true {
      let page = try store.changes(after: cursor, limit: pageSize)
      if !page.records.isEmpty { try body(page.records) }
      if page.isLast { return }
      cursor = page.next
    }
  }

  func latestTimestamp() throws -> String? { try store.latestTimestamp }

  func record(collection: String, id: String) throws -> ChangeRecord? {
    try store.record(forKey: RecordKey(collection: collection, id: id))
  }

  func settle() throws { try store.compact() }

  func close() throws { try store.close() }

  var version: String { "draft" }
}
