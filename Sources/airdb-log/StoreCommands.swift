import AirDbLogStore
import Foundation

// What the commands that look into a store have in common.

extension Arguments {
  /// Opens the store that the first operand names.
  func openStore(
    isReadOnly: Bool = true, configure: (inout Configuration) -> Void = { _ in }
  ) throws(LogStoreError) -> OpenedStore {
    var configuration = Configuration()
    configuration.isReadOnly = isReadOnly
    configuration.createsIfMissing = false
    configuration.cleaning = .off
    configuration.eventHandler = report
    configure(&configuration)
    let path = operands[0]
    return OpenedStore(path: path, store: try ChangeStore(at: path, configuration: configuration))
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
}
