import AirDbLogStore
import Foundation

extension Command {
  static let export = Command(
    name: "export", operands: "STORE [FILE]", operandCount: 1...2,
    options: [
      Option(name: "--collection", value: "NAME", meaning: "Only records of this collection.")
    ],
    summary: "Writes the newest versions of all records to a file, as JSON Lines.",
    details: """
      Ascending by timestamp, deletions included, as of the moment when the store was opened, in the
      fields of dump; import reads them back byte for byte. Without FILE, or for "-", to standard
      output. FILE must not exist; it is there when it is complete and durable.

      History, consumers and the identity of the store are not in it. To copy a store as it is, copy
      its directory while nobody writes it, or have the app make a backup.
      """,
    example: "airdb-log export notes.store all-notes.jsonl"
  ) { arguments, _ in
    let store = try arguments.openStore().store
    var selection = RecordSelection()
    selection.collection = arguments.options["--collection"]
    let path = arguments.operands.count > 1 ? arguments.operands[1] : "-"
    guard path != "-" else {
      _ = try selection.write(
        store, showing: Progress("Exporting"), isDone: { Output.standard.isClosed },
        to: { try Output.standard.write($0) })
      return
    }
    let count = try NewFile.write(path) { file in
      try selection.write(store, showing: Progress("Exporting")) { try file.write($0) }
    }
    try Output.standard.printLine("\(Figures.count(count, "record", "records")) exported.")
  }
}

/// Which records of a store are written, in the order of their timestamps.
struct RecordSelection {
  var after: ChangeCursor?
  var collection: String?
  var limit = Int.max

  /// Writes the lines of the records, and answers how many.
  ///
  /// - Parameter isDone: Whether nobody wants more.
  func write(
    _ store: ChangeStore, showing progress: Progress? = nil,
    isDone: () -> Bool = { false }, to output: ([UInt8]) throws -> Void
  ) throws -> Int {
    defer { progress?.finish() }
    let total = progress == nil ? 0 : Double(try store.statistics().liveRecords)
    var cursor = after
    var (count, looked) = (0, 0)
    while count < limit, !isDone() {
      // Bytes bound a page as well, so that memory does not grow with the payloads.
      let page = try store.changes(
        after: cursor, limit: min(limit - count, 256), byteLimit: 1 << 20)
      for record in page.records {
        if let collection, !collection.utf8.elementsEqual(record.collection.utf8) { continue }
        var line: [UInt8] = []
        JsonLine.append(record, to: &line)
        try output(line)
        count += 1
      }
      looked += page.records.count
      progress?.show(Double(looked) / max(total, 1), Figures.count(looked))
      if page.isLast { break }
      cursor = page.next
    }
    return count
  }
}

/// A file that appears under its name when it is complete.
final class NewFile {
  private let path: String
  private let partialPath: String
  private var descriptor: Int32
  private var buffer: [UInt8] = []
  #if os(macOS) || os(Linux)
    private let interruption = Interruption()
  #endif

  /// Makes a file with what `body` writes. When that fails, or a signal asks for the end, nothing is left.
  static func write<Result>(_ path: String, _ body: (NewFile) throws -> Result) throws -> Result {
    let file = try NewFile(path)
    do {
      let result = try body(file)
      try file.complete()
      return result
    } catch {
      file.discard()
      #if os(macOS) || os(Linux)
        if let interrupted = error as? Interrupted { Interruption.end(by: interrupted.signal) }
      #endif
      throw error
    }
  }

  private init(_ path: String) throws(ToolError) {
    self.path = path
    partialPath = "\(path).\(getpid()).partial"
    guard access(path, F_OK) != 0 else {
      throw ToolError(.refused, "There is something at \(path).", advice: "Choose another name.")
    }
    #if os(macOS) || os(Linux)
      interruption.watch {}
    #endif
    descriptor = open(partialPath, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.failure("create \(partialPath)") }
  }

  func write(_ bytes: [UInt8]) throws {
    #if os(macOS) || os(Linux)
      try interruption.check()
    #endif
    buffer.append(contentsOf: bytes)
    if buffer.count >= 256 << 10 { try drain() }
  }

  private func drain() throws(ToolError) {
    var rest = buffer[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { systemWrite(descriptor, $0.baseAddress, $0.count) }
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno != EINTR {
        throw Self.failure("write \(partialPath)")
      }
    }
    buffer.removeAll(keepingCapacity: true)
  }

  /// Makes it durable, and gives it its name if nobody else has taken that meanwhile.
  private func complete() throws(ToolError) {
    try drain()
    guard fsync(descriptor) == 0 else { throw Self.failure("make \(partialPath) durable") }
    guard link(partialPath, path) == 0 || hasNoLinks && rename(partialPath, path) == 0 else {
      throw Self.failure("give the file the name \(path)")
    }
    discard()
    let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
    let directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard directory >= 0 else { return }
    defer { close(directory) }
    guard fsync(directory) == 0 else { throw Self.failure("make \(path) durable") }
  }

  /// Whether the last call failed as the file system knows one name of a file only.
  private var hasNoLinks: Bool { [EPERM, EOPNOTSUPP, ENOTSUP].contains(errno) }

  /// Takes away what is not under its name.
  private func discard() {
    guard descriptor >= 0 else { return }
    close(descriptor)
    unlink(partialPath)
    descriptor = -1
  }

  private static func failure(_ action: String) -> ToolError {
    ToolError(.notFound, "Could not \(action): \(systemErrorText()).")
  }
}
