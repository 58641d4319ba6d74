/// The texts of `help`.
enum Help {
  static func print(_ names: some Collection<String>) throws {
    guard let name = names.first else { return try write(overview) }
    guard let command = Command.all.first(where: { $0.name == name }) else {
      throw ToolError(
        .usage, "There is no command \"\(name)\".", advice: "`airdb-log help` lists the commands.")
    }
    try write(text(of: command))
  }

  private static func write(_ text: String) throws {
    try Output.standard.write(Array(text.utf8) + [0x0A])
  }

  static var overview: String {
    let width = Command.all.map { synopsis($0).count }.max() ?? 0
    let commands = Command.all.map { command in
      let synopsis = synopsis(command)
      return "  \(synopsis)\(String(repeating: " ", count: width - synopsis.count))  "
        + command.summary
    }
    return """
      airdb-log looks into a store of AirDbLogStore, checks it, and shows it at work.

      \(commands.joined(separator: "\n"))

      A STORE is the directory of a store. All commands but import, compact, adopt, demo, and
      consumers if it is to change one, open it read-only, beside its writer if there is one, and
      write nothing to it.
      `airdb-log help COMMAND` lists the options.

      \(exitCodes)
      """
  }

  static let exitCodes = """
    Exit codes:
      0  all is well
      1  damage was found, a comparison failed, or what was to be imported is malformed
      2  the command was not called as the help says
      3  not found, or it cannot be opened, read or written
      4  refused: in use, or of a format that this version or these options do not fit
    A command that a signal ends has that signal's status.
    """

  private static func synopsis(_ command: Command) -> String {
    command.operands.isEmpty ? command.name : "\(command.name) \(command.operands)"
  }

  private static func text(of command: Command) -> String {
    var call = ["airdb-log \(synopsis(command))"]
    for option in command.options {
      let text = " [\(option.synopsis)]"
      if call[call.count - 1].count + text.count > 100 { call.append("   ") }
      call[call.count - 1] += text
    }
    var parts = [call.joined(separator: "\n"), command.summary]
    if !command.details.isEmpty { parts.append(command.details) }
    let width = command.options.map(\.synopsis.count).max() ?? 0
    let options = command.options.map { option in
      let space = String(repeating: " ", count: width - option.synopsis.count)
      return "  \(option.synopsis)\(space)  \(option.meaning)"
    }
    if !options.isEmpty { parts.append(options.joined(separator: "\n")) }
    parts.append("Example:\n  \(command.example)")
    parts.append(exitCodes)
    return parts.joined(separator: "\n\n")
  }
}
