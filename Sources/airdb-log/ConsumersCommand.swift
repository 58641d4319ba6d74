import AirDbLogStore
import Foundation

extension Command {
  static let consumers = Command(
    name: "consumers", operands: "STORE", operandCount: 1...1,
    options: [
      Option(name: "--json", meaning: "As JSON Lines, for programs."),
      Option(name: "--retire", value: "NAME", meaning: "Removes a consumer."),
      Option(name: "--reset", value: "NAME", meaning: "Moves a consumer; needs --to."),
      Option(
        name: "--to", value: "POSITION",
        meaning: "Where: a position as history prints it, or \"beginning\"."),
    ],
    summary: "Lists the consumers: how far they have come, what is kept for them.",
    details: """
      For each consumer its position, its lag, and what of the log is kept for it. Names are compared
      byte by byte. The fields of --json are name, position (null: at the beginning), sequence,
      retention ("latest versions" or "history"), maximumAge (milliseconds), maximumBytes, registered,
      lagCommits, lagBytes, pinnedBytes, pinnedUntil, isBeyondCap; dates are milliseconds since 1970.
      --retire and --reset open the store for writing: nobody else may have it open so.
      """,
    example: "airdb-log consumers notes.store --reset search --to beginning"
  ) { arguments, command in
    let change = try ConsumerChange(arguments, command)
    guard let change else {
      let store = try arguments.openStore().store
      let isJson = arguments.options["--json"] != nil
      return try list(try store.retentionReport(), isJson: isJson)
    }
    try change.carryOut(at: arguments.operands[0])
  }

  private static func list(_ report: RetentionReport, isJson: Bool) throws {
    if isJson {
      for consumer in report.consumers { try Output.standard.write(json(consumer)) }
      return
    }
    guard !report.consumers.isEmpty else {
      return try Output.standard.printLine("There is no consumer.")
    }
    for consumer in report.consumers {
      try Output.standard.printLine("\"\(consumer.name)\"")
      for line in lines(consumer) { try Output.standard.printLine("    \(line)") }
    }
    try Output.standard.printLine(
      "Kept for consumers: \(Figures.bytes(report.pinnedBytes)) of \(Figures.bytes(report.logBytes))."
    )
  }

  private static func lines(_ consumer: Consumer.Status) -> [String] {
    var lines = [
      "position  " + (consumer.position.map { "\($0)" } ?? "at the beginning"),
      "behind    \(Figures.count(consumer.lag.commits, "commit", "commits")), "
        + Figures.bytes(consumer.lag.bytes),
      "keeps     \(retention(consumer.retention))",
    ]
    if consumer.pinnedBytes > 0 {
      let until = consumer.pinnedUntil.map {
        ", the first of it until \(Figures.date($0))"
      }
      lines.append("pinned    \(Figures.bytes(consumer.pinnedBytes))\(until ?? "")")
    }
    if consumer.isBeyondCap {
      lines.append("It is so far behind that only the newest versions are kept of some of it.")
    }
    return lines
  }

  private static func retention(_ retention: Consumer.Retention) -> String {
    guard case .history(let age, let bytes) = retention else { return "the latest versions" }
    var text = "every version that it has not seen"
    if let age { text += ", up to \(Figures.count(age.components.seconds)) s old" }
    if let bytes { text += ", up to \(Figures.bytes(bytes))" }
    return text
  }

  private static func json(_ consumer: Consumer.Status) -> [UInt8] {
    var line = Array("{\"name\":".utf8)
    JsonLine.append(consumer.name, to: &line)
    var age: Int64?
    var bytes: UInt64?
    var retention = "latest versions"
    if case .history(let maximumAge, let maximumBytes) = consumer.retention {
      retention = "history"
      age = maximumAge.map {
        $0.components.seconds * 1_000 + $0.components.attoseconds / 1_000_000_000_000_000
      }
      bytes = maximumBytes
    }
    let fields: [(String, String)] = [
      ("position", consumer.position.map { "\"\($0)\"" } ?? "null"),
      ("sequence", "\(consumer.position?.sequence ?? 0)"),
      ("retention", "\"\(retention)\""), ("maximumAge", age.map { "\($0)" } ?? "null"),
      ("maximumBytes", bytes.map { "\($0)" } ?? "null"),
      ("registered", "\(Figures.milliseconds(consumer.registeredDate))"),
      ("lagCommits", "\(consumer.lag.commits)"),
      ("lagBytes", "\(consumer.lag.bytes)"), ("pinnedBytes", "\(consumer.pinnedBytes)"),
      ("pinnedUntil", consumer.pinnedUntil.map { "\(Figures.milliseconds($0))" } ?? "null"),
      ("isBeyondCap", "\(consumer.isBeyondCap)"),
    ]
    for (name, value) in fields { line += Array(",\"\(name)\":\(value)".utf8) }
    return line + Array("}\n".utf8)
  }
}

/// What is to be changed, if anything.
private enum ConsumerChange {
  case retire(String)
  case reset(String, to: Position?)

  init?(_ arguments: Arguments, _ command: Command) throws {
    let options = arguments.options
    switch (options["--retire"], options["--reset"], options["--to"]) {
    case (nil, nil, nil): return nil
    case (let name?, nil, nil): self = .retire(name)
    case (nil, let name?, "beginning"): self = .reset(name, to: nil)
    case (nil, let name?, let text?):
      guard let position = Position(text) else {
        throw command.usageError(
          "The option --to needs a position as history prints it, not \"\(text)\".")
      }
      self = .reset(name, to: position)
    default:
      throw command.usageError("Give --retire NAME, or --reset NAME with --to POSITION.")
    }
    guard options["--json"] == nil else {
      throw command.usageError("The option --json is for the list only.")
    }
  }

  func carryOut(at path: String) throws {
    var configuration = Configuration()
    configuration.createsIfMissing = false
    configuration.cleaning = .off
    let store = try ChangeStore(at: path, configuration: configuration)
    defer { try? store.close() }
    switch self {
    case .retire(let name):
      try consumer(name, store).retire()
      try Output.standard.printLine("The consumer \"\(name)\" has been removed.")
    case .reset(let name, let position):
      try consumer(name, store).reset(to: position)
      let place = position.map { "behind \($0)" } ?? "at the beginning"
      try Output.standard.printLine("The consumer \"\(name)\" is \(place) now.")
    }
  }

  /// The consumer of that name; none is registered for want of one.
  private func consumer(_ name: String, _ store: ChangeStore) throws -> Consumer {
    let known = try store.consumers().first { $0.name.utf8.elementsEqual(name.utf8) }
    guard let known else {
      throw ToolError(
        .notFound, "There is no consumer \"\(name)\".",
        advice: "Without options, `airdb-log consumers` lists all.")
    }
    return try store.consumer(named: known.name, retaining: known.retention)
  }
}
