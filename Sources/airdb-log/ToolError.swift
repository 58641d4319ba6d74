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

/// The process was asked to end by a signal, and has cleaned up.
struct Interrupted: Error {
  var signal: Int32
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
    self.init(
      ExitCode(error.code), error.message + place, advice: error.recoverySuggestion)
  }
}

extension ExitCode {
  init(_ code: LogStoreError.Code) {
    switch code {
    case .corrupt: self = .damage
    case .invalidTimestamp, .mixedTimestamps: self = .usage
    case .storeInUse, .unsupportedFormat, .configurationMismatch, .staleReader, .alreadyExists:
      self = .refused
    default: self = .notFound
    }
  }
}
