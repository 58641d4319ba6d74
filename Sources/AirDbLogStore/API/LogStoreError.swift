/// What went wrong, where, and what to do about it: the one error type of the library.
public struct LogStoreError: Error, Sendable {
  /// The kind of failure. Open: later versions may add codes, so a `switch` needs a default.
  public struct Code: RawRepresentable, Hashable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    /// There is no store at the path, and the configuration does not allow to create one.
    public static let storeNotFound = Code(rawValue: "storeNotFound")
    /// The directory in which a store, a copy or an installation id was to be made does not exist.
    public static let directoryNotFound = Code(rawValue: "directoryNotFound")
    /// Another process, or another `ChangeStore` of this process, has the store open for writing.
    public static let storeInUse = Code(rawValue: "storeInUse")
    /// Bytes that were durable are damaged. Nothing was changed.
    public static let corrupt = Code(rawValue: "corrupt")
    /// The store was written by a newer version, or needs a feature that this one lacks.
    public static let unsupportedFormat = Code(rawValue: "unsupportedFormat")
    /// The configuration contradicts what the store recorded when it was created, or what is recorded
    /// does not allow what was asked for.
    public static let configurationMismatch = Code(rawValue: "configurationMismatch")
    /// A timestamp or a cursor does not parse in the store's HLC format.
    public static let invalidTimestamp = Code(rawValue: "invalidTimestamp")
    /// A decimal timestamp or cursor in a store of ISO 8601 ones, or the other way round.
    public static let mixedTimestamps = Code(rawValue: "mixedTimestamps")
    /// A timestamp is further ahead of the time than a ``HybridLogicalClock`` may follow, or than the
    /// store's own clock does, so that a change would be older than what it is to replace.
    public static let clockDrift = Code(rawValue: "clockDrift")
    /// The store's own clock cannot stamp changes: timestamps of the store are of another format.
    public static let clockUnavailable = Code(rawValue: "clockUnavailable")
    /// The payload of a record is none of a value of the type that was asked for.
    public static let decodingFailed = Code(rawValue: "decodingFailed")
    /// A value cannot be encoded as a payload.
    public static let encodingFailed = Code(rawValue: "encodingFailed")
    /// A field or a batch is above a declared limit.
    public static let limitExceeded = Code(rawValue: "limitExceeded")
    /// A change was asked of a store that is open read-only.
    public static let readOnly = Code(rawValue: "readOnly")
    /// The disk or the quota is full. Nothing was committed; try again when there is space.
    public static let noSpace = Code(rawValue: "noSpace")
    /// The process has no file descriptor left. Nothing was committed; try again.
    public static let tooManyOpenFiles = Code(rawValue: "tooManyOpenFiles")
    /// The system does not allow it (`EACCES`, `EPERM`). On Apple platforms that may be so only while
    /// the device is locked, under ``Configuration/fileProtection``; elsewhere the permissions of the
    /// file or its directory forbid it. Nothing was committed; try again when it is allowed.
    public static let protectedDataUnavailable = Code(rawValue: "protectedDataUnavailable")
    /// A write or a sync failed, so that it is unknown whether the batch is durable. The store
    /// takes no more writes until ``ChangeStore/reopen()``; reads serve the last published state.
    public static let outcomeUnknown = Code(rawValue: "outcomeUnknown")
    /// An operation of the file system failed; nothing was committed.
    public static let inputOutput = Code(rawValue: "inputOutput")
    /// The store has been closed.
    public static let closed = Code(rawValue: "closed")
    /// The store is suspended; ``ChangeStore/resume()`` takes it up again.
    public static let suspended = Code(rawValue: "suspended")
    /// The handle was carried into a forked child process, where it must not be used.
    public static let forkedProcess = Code(rawValue: "forkedProcess")
    /// Something else is at the path, of a copy or of an installation id, and is left alone.
    public static let alreadyExists = Code(rawValue: "alreadyExists")
    /// The task was cancelled during a call that is not asynchronous, as ``ChangeStore/verify(progress:)``
    /// and ``ChangeStore/compact(progress:)``. Those that are throw `CancellationError`.
    public static let cancelled = Code(rawValue: "cancelled")
    /// Another adapter, that is read or written, breaks the contract in a way that leaves no way to go on.
    public static let brokenAdapter = Code(rawValue: "brokenAdapter")
    /// There is no consumer of that name, or it has been retired.
    public static let consumerNotFound = Code(rawValue: "consumerNotFound")
    /// The consumer's changes are being delivered by another call.
    public static let consumerBusy = Code(rawValue: "consumerBusy")
    /// A position is of another store.
    public static let foreignPosition = Code(rawValue: "foreignPosition")
    /// A position lies beyond the end of the log: the store was restored from an earlier state, or a
    /// power loss took commits that had not asked to survive it.
    public static let positionBeyondEnd = Code(rawValue: "positionBeyondEnd")
    /// A position names a commit that is another one now: the store was restored from an earlier
    /// state and has been written since.
    public static let positionDiverged = Code(rawValue: "positionDiverged")
    /// Deletions behind a position may have been purged, so that going on from there could miss them.
    public static let historyPurged = Code(rawValue: "historyPurged")
    /// What was fetched or begun before the store was suspended or reopened cannot go on.
    public static let expired = Code(rawValue: "expired")
    /// The files changed under a read-only store more often than it could follow, or a change that was
    /// fetched is in a file that its writer has removed.
    public static let staleReader = Code(rawValue: "staleReader")
  }

  /// The kind of failure, to decide by.
  public let code: Code
  /// What happened, as a sentence for a log.
  public let message: String
  /// The path of the file concerned, where there is one.
  public let file: String?
  /// The offset in that file, where there is one.
  public let offset: UInt64?
  /// The position in the batch of the record concerned, where there is one.
  public let recordIndex: Int?
  /// The `errno` of the system call that failed, where one did.
  public let errno: Int32?

  package init(
    _ code: Code, _ message: String, file: String? = nil, offset: UInt64? = nil,
    recordIndex: Int? = nil, errno: Int32? = nil
  ) {
    self.code = code
    self.message = message
    self.file = file
    self.offset = offset
    self.recordIndex = recordIndex
    self.errno = errno
  }

  #if canImport(Darwin)
    private static let permissionAdvice =
      "Try again after the device has been unlocked; else look at the file's permissions."
  #else
    private static let permissionAdvice =
      "Give this user permission for the file and its directory, then try again."
  #endif

  /// What to do about it, as a sentence.
  public var recoverySuggestion: String {
    switch code {
    case .storeNotFound: "Check the path, or open it for writing to create a store there."
    case .directoryNotFound: "Create it first; a store makes its own directory and no other."
    case .storeInUse: "Close the other handle, or open this one read-only."
    case .corrupt: "Keep a copy of the directory, run verify, and restore from a backup or a peer."
    case .unsupportedFormat: "Open it with the version that wrote it, or a newer one."
    case .configurationMismatch: "Open it with the format and deletion values it was created with."
    case .invalidTimestamp: "Mend or set aside the record; validate(_:) lists all such records."
    case .mixedTimestamps: "A store holds decimal or ISO 8601 clocks, not both; use two stores."
    case .clockDrift: "Check the clocks of both devices; the change can be stored all the same."
    case .clockUnavailable: "Stamp the changes yourself, and apply them with apply(_:author:)."
    case .decodingFailed: "Read the record itself with record(forKey:), and mend or delete it."
    case .encodingFailed: "Change the value, or encode it in another way."
    case .limitExceeded: "Make the field or the batch smaller."
    case .readOnly: "Open the store for writing."
    case .noSpace: "Free space, then try again; nothing was committed."
    case .tooManyOpenFiles: "Close files or raise the limit, then try again."
    case .protectedDataUnavailable: Self.permissionAdvice
    case .outcomeUnknown:
      "Call reopen(), then look whether the batch is there; applying it again is safe."
    case .inputOutput: "Look at the cause; the call can be tried again."
    case .closed: "Open the store again."
    case .suspended: "Call resume() first."
    case .forkedProcess: "Open the store in the child process itself."
    case .alreadyExists: "Choose a path where nothing is."
    case .cancelled: "Start it again when wanted."
    case .brokenAdapter: "Hold the adapter to the contract with AirDbAdapterTesting, and mend it."
    case .consumerNotFound: "Register it again with consumer(named:retaining:from:)."
    case .consumerBusy: "Wait until the other delivery has ended, or cancel it."
    case .foreignPosition: "Use a position of this store, or begin without one."
    case .positionBeyondEnd, .positionDiverged:
      "Begin without a position; a read-only store may only have to be refreshed."
    case .historyPurged:
      "Begin without a position, and drop what the newest versions do not have any more."
    case .expired: "Fetch it again."
    case .staleReader: "Call refresh() and try again."
    default: "See the message."
    }
  }
}

extension LogStoreError: CustomStringConvertible {
  public var description: String {
    var text = "\(code.rawValue): \(message)"
    if let file { text += " [\(file)" + (offset.map { " at offset \($0)" } ?? "") + "]" }
    return text + " " + recoverySuggestion
  }
}

extension LogStoreError {
  /// A failed system call in the terms of a caller. `action` is what was being done, as in
  /// "open the segment".
  package init(_ error: SystemError, _ action: String, file: String? = nil) {
    let code: Code =
      error.isNoSpace
      ? .noSpace
      : error.isTooManyFiles
        ? .tooManyOpenFiles : error.isPermission ? .protectedDataUnavailable : .inputOutput
    self.init(
      code, "Could not \(action): \(error.description).", file: file, errno: error.errno)
  }

  /// A directory could not be made, in a parent that may not exist.
  package init(
    _ error: SystemError, creating directory: StoreDirectory, of owner: String
  ) {
    guard error.isNotFound else {
      self.init(error, "create the \(owner)'s directory", file: directory.path)
      return
    }
    self.init(
      .directoryNotFound, "The directory in which the \(owner) would be made does not exist.",
      file: directory.parent, errno: error.errno)
  }

  /// Damage found at `base + error.offset` of a file.
  package static func corrupt(_ error: FormatError, file: String, base: UInt64 = 0) -> LogStoreError
  {
    LogStoreError(
      .corrupt, "The file is damaged: \(error.reason).", file: file,
      offset: base &+ UInt64(error.offset))
  }

  package static func corrupt(_ reason: String, file: String, offset: UInt64 = 0) -> LogStoreError {
    LogStoreError(.corrupt, "The file is damaged: \(reason).", file: file, offset: offset)
  }
}
