import AirDbLogStore

/// What the tool tells its caller. Listed in the help.
enum ExitCode: Int32 {
  case success = 0
  case damage = 1
  case usage = 2
  case notFound = 3
  case refused = 4
}

/// Why a command did not succeed: what happened, and what to do about it.
struct ToolError: Error {
  var exitCode: ExitCode
  var message: String
  var advice: String?

  init(_ exitCode: ExitCode, _ message: String, advice: String? = nil) {
    self.exitCode = exitCode
    self.message = message
    self.advice = advice
  }
}

extension ToolError {
  /// Any error in the terms of the tool.
  init(_ error: any Error) {
    switch error {
    case let error as ToolError: self = error
    case let error as LogStoreError: self.init(error)
    default: self.init(.notFound, "\(error)")
    }
  }

  init(_ error: LogStoreError) {
    var place = error.file.map { " [\($0)" } ?? ""
    if !place.isEmpty { place += (error.offset.map { " at offset \($0)" } ?? "") + "]" }
    self.init(ExitCode(error.code), error.message + place, advice: Self.advice(for: error))
  }

  /// The library's advice, but for what it says to programs only.
  private static func advice(for error: LogStoreError) -> String {
    switch error.code {
    case .storeNotFound: "Check the path: a store is a folder with a file MANIFEST."
    case .staleReader: "Run the command again."
    case .invalidTimestamp, .mixedTimestamps:
      "Give a timestamp as `airdb-log dump` prints them for this store."
    default: error.recoverySuggestion
    }
  }
}

extension ExitCode {
  init(_ code: LogStoreError.Code) {
    switch code {
    case .corrupt: self = .damage
    case .invalidTimestamp, .mixedTimestamps: self = .usage
    case .storeInUse, .unsupportedFormat, .configurationMismatch, .staleReader, .alreadyExists,
      .foreignPosition, .positionBeyondEnd, .positionDiverged, .historyPurged:
      self = .refused
    default: self = .notFound
    }
  }
}
