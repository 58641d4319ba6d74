import AirDbLogStore
import Foundation

// What the commands that look into a store have in common.

extension Command.Option {
  static let deletions = Command.Option(
    name: "--deletions", value: "LIST",
    meaning: "The store's deletion types, as in 2,7, if it was created with others than 2.")
}

extension Arguments {
  /// Opens the store that the first operand names, read-only.
  ///
  /// Which timestamp format a store has is recorded in it; the library wants it named. So the
  /// formats are tried.
  func openStore(for command: Command) throws -> OpenedStore {
    var configuration = Configuration()
    configuration.isReadOnly = true
    configuration.eventHandler = report
    if let list = options["--deletions"] {
      let values = list.split(separator: ",").map { Int($0) }
      guard !values.isEmpty, !values.contains(nil) else {
        throw command.usageError("The option --deletions needs numbers, not \"\(list)\".")
      }
      configuration.deletionValues = Set(values.compactMap(\.self))
    }
    let path = operands[0]
    do throws(LogStoreError) {
      return OpenedStore(
        path: path, store: try ChangeStore(at: path, configuration: configuration),
        format: .hybrid)
    } catch {
      guard error.code == .configurationMismatch else { throw error }
      configuration.timestampFormat = .utf8Order
      do throws(LogStoreError) {
        return OpenedStore(
          path: path, store: try ChangeStore(at: path, configuration: configuration),
          format: .utf8Order)
      } catch {
        guard error.code == .configurationMismatch, options["--deletions"] == nil else {
          throw error
        }
        var failure = ToolError(error)
        failure.advice = "Name the store's deletion values with --deletions."
        throw failure
      }
    }
  }

  /// Says what the engine had to do without, since it may explain what a command shows.
  @Sendable
  private func report(_ event: StoreEvent) {
    switch event {
    case .repaired(let file, let reason):
      Output.errors.writeLine("note: \(file) is not usable (\(reason)); built again in memory.")
    case .failed(let error):
      Output.errors.writeLine("note: \(error.message)")
    default: break
    }
  }
}

struct OpenedStore {
  var path: String
  var store: ChangeStore
  var format: TimestampFormat
}
