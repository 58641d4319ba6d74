import AirDbLogStore
import Foundation

extension Command {
  static let importing = Command(
    name: "import", operands: "STORE [FILE]", operandCount: 1...2,
    options: [
      Option(name: "--create", meaning: "Makes the store if there is none."),
      Option(
        name: "--any-timestamps",
        meaning: "With --create: timestamps are any texts, in the order of their bytes."),
      Option(name: "--author", value: "NAME", meaning: "The author of the commits."),
      Option(name: "--batch", value: "N", meaning: "Records of a commit; 1000 by default."),
    ],
    summary: "Applies records from JSON Lines, as export and dump write them.",
    details: """
      Reads FILE, or standard input without one or for "-". The last writer wins: a record that is
      older than the store's is passed over, and importing a file again changes nothing.

      The fields are those of dump. What is no such line, or what the store refuses, is reported with
      its line number. Then nothing of its batch is applied and nothing behind it; what came before
      stays. Correct the file, and import it again. The exit code is 1. A store that --create asks
      for is made with the first batch that is sound; its folder must be there.

      The store must not be open for writing.
      """,
    example: "airdb-log import --create notes.store notes.jsonl"
  ) { arguments, command in
    var request = try ImportRequest(arguments, command)
    try request.run()
  }
}

/// What a call of `import` asks for, and how far it is.
private struct ImportRequest {
  private var lines: InputLines
  private let source: String
  private var target: ImportTarget
  private let author: String?
  private let batchCount: Int

  private var batch: [(record: ChangeRecord, line: Int)] = []
  private var batchBytes = 0
  private var problems: [(line: Int, text: String)] = []
  private var firstOfBatch = 1
  private var accepted = 0
  private var superseded = 0

  /// Bytes of payload after which a batch ends, whatever the count.
  private static let batchBytes = 16 << 20
  private static let shownProblems = 20

  init(_ arguments: Arguments, _ command: Command) throws {
    batchCount = try arguments.count("--batch", of: command) ?? 1_000
    guard batchCount > 0 else { throw command.usageError("The option --batch needs at least 1.") }
    author = arguments.options["--author"]
    let isCreating = arguments.options["--create"] != nil
    let takesAny = arguments.options["--any-timestamps"] != nil
    guard isCreating || !takesAny else {
      throw command.usageError("The option --any-timestamps is for --create.")
    }
    source = arguments.operands.count > 1 ? arguments.operands[1] : "-"
    lines = try InputLines(source)
    target = try ImportTarget(arguments, isCreating: isCreating, takesAny: takesAny)
  }

  mutating func run() throws {
    defer { lines.close() }
    defer { target.close() }
    do {
      let progress = Progress("Importing")
      defer { progress.finish() }
      while let line = try lines.next() {
        take(line)
        guard batch.count + problems.count >= batchCount || batchBytes >= Self.batchBytes
        else { continue }
        try apply()
        if let count = lines.byteCount, count > 0 {
          progress.show(Double(lines.bytesRead) / Double(count), "\(Figures.count(accepted))")
        }
      }
      try apply()
    }
    try target.finish()
    let passedOver = superseded > 0 ? "; \(Figures.count(superseded)) passed over" : ""
    try Output.standard.printLine(
      "\(Figures.count(accepted, "record", "records")) imported\(passedOver).")
  }

  private mutating func take(_ line: ArraySlice<UInt8>) {
    if line.allSatisfy({ [0x20, 0x09, 0x0D].contains($0) }) { return }
    do throws(JsonProblem) {
      let record = try JsonLine.record(line)
      batchBytes += record.payload.count
      batch.append((record, lines.number))
    } catch {
      problems.append((lines.number, "column \(error.column): \(error.reason)"))
    }
  }

  /// Applies the batch, or refuses it with all that is wrong in it.
  private mutating func apply() throws {
    let records = batch.map(\.record)
    for problem in try target.validate(records) {
      problems.append((batch[problem.recordIndex ?? 0].line, problem.message))
    }
    guard problems.isEmpty else { throw refusal() }
    guard !records.isEmpty else { return }
    let result = try target.apply(records, author: author)
    accepted += result.accepted
    superseded += result.superseded
    firstOfBatch = lines.number + 1
    batch = []
    batchBytes = 0
  }

  private func refusal() -> ToolError {
    for problem in problems.sorted(by: { $0.line < $1.line }).prefix(Self.shownProblems) {
      Output.errors.writeLine("line \(problem.line): \(problem.text)")
    }
    if problems.count > Self.shownProblems {
      Output.errors.writeLine(
        "and \(Figures.count(problems.count - Self.shownProblems)) more in this batch")
    }
    let before =
      firstOfBatch > 1
      ? "The lines before \(firstOfBatch) have been imported." : "Nothing has been imported."
    return ToolError(
      .damage,
      "\(Figures.count(problems.count, "line is", "lines are")) not a record of this store.",
      advice: "\(before) Correct the file, and import it again.")
  }
}
