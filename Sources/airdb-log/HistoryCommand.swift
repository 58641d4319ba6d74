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
      """,
    example: "airdb-log history notes.store --from 2026-03-01 --collection notes"
  ) { arguments, command in
    let request = try HistoryRequest(arguments, command)
    let opened = try arguments.openStore()
    do {
      try request.run(opened.store)
    } catch {
      throw positionFailure(error)
    }
  }
}

/// What a call of `history` asks for.
private struct HistoryRequest {
  private var after: Position?
  private var date: Date?
  private let filter: CommitFilter
  private var limit: Int
  private let lines: CommitLines

  init(_ arguments: Arguments, _ command: Command) throws {
    limit = try arguments.count("--limit", of: command) ?? .max
    guard limit > 0 else { throw command.usageError("The option --limit needs at least 1.") }
    lines = CommitLines(isJson: arguments.options["--json"] != nil)
    after = try arguments.position("--after", of: command)
    if let text = arguments.options["--from"] {
      guard after == nil else {
        throw command.usageError("The options --after and --from exclude each other.")
      }
      guard let date = Self.date(text) else {
        throw command.usageError(
          "The option --from needs a date as 2026-03-01 or 2026-03-01T12:00:00Z, not \"\(text)\".")
      }
      self.date = date
    }
    filter = arguments.commitFilter
  }

  /// A date, or a time of a date in UTC.
  private static func date(_ text: String) -> Date? {
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
      return date
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
      for commit in page.commits { try Output.standard.write(lines.line(commit)) }
      count += page.commits.count
      position = page.next
      isLast = page.isLast
    }
    try Output.standard.write(lines.end(position, isLast: isLast))
  }
}
