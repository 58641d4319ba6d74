import AirDbLogStore
import Foundation

/// The store that records are imported into.
///
/// One that is to be made is made for the first batch that it will take: an import that fails before
/// leaves nothing behind.
struct ImportTarget {
  private let arguments: Arguments
  private let takesAny: Bool
  private var store: ChangeStore?
  /// Says what the store would refuse, as long as there is none.
  private var rehearsal: ChangeStore?

  private var path: String { arguments.operands[0] }

  /// - Parameters:
  ///   - isCreating: Whether a store is made if there is none.
  ///   - takesAny: Whether its timestamps are any texts.
  init(_ arguments: Arguments, isCreating: Bool, takesAny: Bool) throws {
    (self.arguments, self.takesAny) = (arguments, takesAny)
    do throws(LogStoreError) {
      store = try open(createsIfMissing: false)
    } catch {
      guard error.code == .storeNotFound else { throw error }
      guard isCreating else {
        throw ToolError(
          .notFound, "There is no store at \(path).", advice: "With --create, import makes one.")
      }
      let parent = URL(fileURLWithPath: path).deletingLastPathComponent().path
      guard FileManager.default.fileExists(atPath: parent) else {
        throw ToolError(
          .notFound, "There is no folder \(parent), in which the store would be made.",
          advice: "Make the folder first, or choose another path.")
      }
      var configuration = Configuration()
      configure(&configuration)
      rehearsal = try ChangeStore.inMemory(configuration: configuration)
    }
  }

  private func open(createsIfMissing: Bool) throws(LogStoreError) -> ChangeStore {
    try arguments.openStore(isReadOnly: false) { configuration in
      configuration.createsIfMissing = createsIfMissing
      configure(&configuration)
    }.store
  }

  private func configure(_ configuration: inout Configuration) {
    if takesAny { configuration.timestampFormat = .utf8Order }
  }

  /// What the store refuses of a batch.
  func validate(_ records: [ChangeRecord]) throws -> [LogStoreError] {
    try (store ?? rehearsal)?.validate(records) ?? []
  }

  /// Applies a batch, all of it or nothing. A store that was made for it goes again if that fails.
  mutating func apply(_ records: [ChangeRecord], author: String?) throws -> ApplyResult {
    if let store { return try store.applyAndWait(records, author: author) }
    let folderWasThere = FileManager.default.fileExists(atPath: path)
    let new = try open(createsIfMissing: true)
    do {
      let result = try new.applyAndWait(records, author: author)
      store = new
      return result
    } catch {
      try? new.close()
      try? remove(keepingFolder: folderWasThere)
      throw error
    }
  }

  /// Removes the store that was made, but nothing else. The folder goes with it if nothing else is in
  /// it: so if it was there before, something is put into it.
  private func remove(keepingFolder: Bool) throws {
    guard keepingFolder else { return try ChangeStore.destroy(at: path) }
    let occupant = URL(fileURLWithPath: path).appendingPathComponent(".import-\(UUID())")
    try Data().write(to: occupant, options: .withoutOverwriting)
    defer { try? FileManager.default.removeItem(at: occupant) }
    try ChangeStore.destroy(at: path)
  }

  /// Makes the store if there was nothing to import, and closes it.
  mutating func finish() throws {
    let store = try store ?? open(createsIfMissing: true)
    self.store = store
    try store.close()
  }

  /// Closes the store, if there is one, after an error.
  func close() { try? store?.close() }
}
