import AirDbLogStore
import Foundation

extension Command {
  static let history = Command(
    name: "history", operands: "STORE", operandCount: 1...1,
    options: [
      Option(name: "--after", value: "POSITION", meaning: "Only commits behind this one."),
      Option(
        name: "--from", value: "DATE",
        meaning: "Only commits since then: 2026-03-01, or 2026-03-01T12:00:00Z."),
      Option(name: "--author", value: "NAME", meaning: "Only commits of this author."),
      Option(name: "--not-author", value: "NAME", meaning: "No commits of this author."),
      Option(name: "--collection", value: "NAME", meaning: "Only changes in this collection."),
      Option(name: "--limit", value: "N", meaning: "At most so many commits."),
      Option(name: "--json", meaning: "As JSON Lines, for programs."),
    ],
    summary: "Prints the commits in the order in which they were applied.",
    details: """
      For each commit its position, date and author, and its changes without their payloads; what
      was superseded is there until it is cleaned away. The last line says where to go on: it is
      behind all that was looked at, also behind what the options left out. Names are compared byte
      by byte. The fields of --json are position, sequence, date (milliseconds since 1970), author,
      changes (collection, id, type, hlc); of the last line next and isLast.
      """
  ) { arguments, command in
    let request = try HistoryRequest(arguments, command)
    let opened = try arguments.openStore()
    do {
      try request.run(opened.store)
    } catch {
      throw request.failure(error)
    }
  }
}

/// What a call of `history` asks for.
private struct HistoryRequest {
  private var after: Position?
  private var date: Int64?
  private var filter = CommitFilter()
  private var limit: Int
  private var isJson: Bool

  init(_ arguments: Arguments, _ command: Command) throws {
    limit = try arguments.count("--limit", of: command) ?? .max
    guard limit > 0 else { throw command.usageError("The option --limit needs at least 1.") }
    isJson = arguments.options["--json"] != nil
    if let text = arguments.options["--after"] {
      guard let position = Position(text) else {
        throw command.usageError(
          "The option --after needs a position as history prints it, not \"\(text)\".")
      }
      after = position
    }
    if let text = arguments.options["--from"] {
      guard after == nil else {
        throw command.usageError("The options --after and --from exclude each other.")
      }
      guard let date = Self.milliseconds(text) else {
        throw command.usageError(
          "The option --from needs a date as 2026-03-01 or 2026-03-01T12:00:00Z, not \"\(text)\".")
      }
      self.date = date
    }
    filter.authors = arguments.options["--author"].map { [$0] }
    if let author = arguments.options["--not-author"] { filter.excludedAuthors = [author] }
    filter.collections = arguments.options["--collection"].map { [$0] }
  }

  /// A date, or a time of a date in UTC.
  private static func milliseconds(_ text: String) -> Int64? {
    let formats: [ISO8601DateFormatter.Options] = [
      .withFullDate, .withInternetDateTime, [.withInternetDateTime, .withFractionalSeconds],
    ]
    for options in formats {
      let formatter = ISO8601DateFormatter()
      formatter.formatOptions = options
      // A formatter for dates would take the date of a time for all of it.
      guard let date = formatter.date(from: text),
        options != .withFullDate || text.utf8.count == 10
      else { continue }
      return Int64((date.timeIntervalSince1970 * 1_000).rounded())
    }
    return nil
  }

  func run(_ store: ChangeStore) throws {
    var position = after
    if let date { position = try store.position(before: date) }
    var count = 0
    var isLast = false
    while !isLast, count < limit, !Output.standard.isClosed {
      // Bytes bound a page as well, so that memory does not grow with the commits.
      let page = try store.commits(
        after: position, matching: filter, limit: min(limit - count, 256), byteLimit: 1 << 20)
      for commit in page.commits { try Output.standard.write(isJson ? json(commit) : text(commit)) }
      count += page.commits.count
      position = page.next
      isLast = page.isLast
    }
    try Output.standard.write(end(position, isLast: isLast))
  }

  // MARK: For people

  private func text(_ commit: Commit) -> [UInt8] {
    let author = commit.author.isEmpty ? "no author" : "by \"\(commit.author)\""
    let date = Figures.date(milliseconds: commit.date)
    var lines = ["\(commit.position)  \(date)  \(author)"]
    for change in commit.changes {
      lines.append(
        "    \(Self.name(of: change.type))  \(change.hlcTimestamp)  \"\(change.key.collection)\""
          + "  \"\(change.key.id)\"")
    }
    // Each for itself: a line feed in a name is none of the output's.
    return lines.flatMap { Array(escapingControls($0).utf8) + [0x0A] }
  }

  private static func name(of type: MutationType) -> String {
    switch type {
    case .insert: "insert"
    case .update: "update"
    case .delete: "delete"
    default: "type \(type.rawValue)"
    }
  }

  private func end(_ position: Position?, isLast: Bool) -> [UInt8] {
    if isJson {
      let next = position.map { "\"\($0)\"" } ?? "null"
      return Array("{\"next\":\(next),\"isLast\":\(isLast)}\n".utf8)
    }
    guard let position else { return Array("There is no commit.\n".utf8) }
    return Array("\(isLast ? "The end; next" : "Next"): --after \(position)\n".utf8)
  }

  // MARK: For programs

  private func json(_ commit: Commit) -> [UInt8] {
    var line = Array(
      "{\"position\":\"\(commit.position)\",\"sequence\":\(commit.position.sequence)".utf8)
    line += Array(",\"date\":\(commit.date),\"author\":".utf8)
    JsonLine.append(commit.author, to: &line)
    line += Array(",\"changes\":[".utf8)
    for (index, change) in commit.changes.enumerated() {
      line += Array("\(index > 0 ? "," : ""){\"collection\":".utf8)
      JsonLine.append(change.key.collection, to: &line)
      line += Array(",\"id\":".utf8)
      JsonLine.append(change.key.id, to: &line)
      line += Array(",\"type\":\(change.type.rawValue),\"hlc\":".utf8)
      JsonLine.append(change.hlcTimestamp, to: &line)
      line.append(UInt8(ascii: "}"))
    }
    return line + Array("]}\n".utf8)
  }

  // MARK: Failures

  /// A position that does not fit is the caller's to mend.
  func failure(_ error: any Error) -> any Error {
    guard let error = error as? LogStoreError else { return error }
    switch error.code {
    case .foreignPosition, .positionBeyondEnd, .positionDiverged, .historyPurged:
      return ToolError(
        .refused, error.message, advice: "Without --after it begins at the start of the log.")
    default: return error
    }
  }
}
