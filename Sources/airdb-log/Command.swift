/// One command of the tool: how it is called, what the help says, and what it does.
struct Command: Sendable {
  struct Option: Sendable {
    var name: String
    /// What stands for its value in the help; nil if it has none.
    var value: String?
    var meaning: String

    /// As the help shows it.
    var synopsis: String { value.map { "\(name) \($0)" } ?? name }
  }

  var name: String
  var operands = ""
  var operandCount: ClosedRange<Int>
  var options: [Option] = []
  var summary: String
  var details = ""
  /// A call that shows what it is for.
  var example = ""
  var run: @MainActor @Sendable (Arguments, Command) async throws -> Void

  static let all: [Command] = [
    .help, .info, .get, .dump, .history, .tail, .consumers, .export, .importing, .verify, .compact,
    .adopt, .demo,
  ]

  /// Runs the command that the arguments name.
  @MainActor
  static func run(_ arguments: [String]) async throws {
    guard let name = arguments.first else {
      throw ToolError(.usage, "No command is given.", advice: "\n\(Help.overview)")
    }
    let rest = arguments.dropFirst()
    if ["--help", "-h"].contains(name) { return try Help.print(rest) }
    guard let command = (all + hidden).first(where: { $0.name == name }) else {
      throw ToolError(
        .usage, "There is no command \"\(name)\".", advice: "`airdb-log help` lists the commands.")
    }
    if rest.prefix(while: { $0 != "--" }).contains(where: { ["--help", "-h"].contains($0) }) {
      return try Help.print([name])
    }
    try await command.run(Arguments(rest, of: command), command)
  }

  func usageError(_ message: String) -> ToolError {
    ToolError(.usage, message, advice: "`airdb-log help \(name)` says how it is called.")
  }

  static let help = Command(
    name: "help", operands: "[COMMAND]", operandCount: 0...1,
    summary: "Explains the tool, or a command.",
    example: "airdb-log help history"
  ) { arguments, _ in
    try Help.print(arguments.operands)
  }
}
