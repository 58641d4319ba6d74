import AirDbLogStore

/// The arguments of one command: operands in order, and options by name.
struct Arguments {
  private(set) var operands: [String] = []
  private(set) var options: [String: String] = [:]

  /// Reads `--name VALUE` and `--name=VALUE`, and `--name` alone where it has no value, which is then
  /// an empty one; behind `--` all are operands.
  init(_ arguments: some Sequence<String>, of command: Command) throws(ToolError) {
    var rest = Array(arguments)[...]
    var onlyOperands = false
    while let argument = rest.popFirst() {
      if onlyOperands || !argument.hasPrefix("-") || argument == "-" {
        operands.append(argument)
      } else if argument == "--" {
        onlyOperands = true
      } else {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts[0])
        guard let option = command.options.first(where: { $0.name == name }) else {
          throw command.usageError("There is no option \(name).")
        }
        guard options[name] == nil else {
          throw command.usageError("The option \(name) is given twice.")
        }
        guard option.value != nil else {
          guard parts.count == 1 else {
            throw command.usageError("The option \(name) has no value.")
          }
          options[name] = ""
          continue
        }
        guard let value = parts.count > 1 ? String(parts[1]) : rest.popFirst() else {
          throw command.usageError("The option \(name) needs a value.")
        }
        options[name] = value
      }
    }
    guard command.operandCount.contains(operands.count) else {
      throw command.usageError(
        operands.count < command.operandCount.lowerBound
          ? "An argument is missing." : "There are too many arguments.")
    }
  }

  /// The value of an option that is a count.
  func count(_ name: String, of command: Command) throws(ToolError) -> Int? {
    guard let text = options[name] else { return nil }
    guard let count = Int(text), count >= 0 else {
      throw command.usageError("The option \(name) needs a number, not \"\(text)\".")
    }
    return count
  }

  /// The value of an option that is a position.
  func position(_ name: String, of command: Command) throws(ToolError) -> Position? {
    guard let text = options[name] else { return nil }
    guard let position = Position(text) else {
      throw command.usageError(
        "The option \(name) needs a position as history prints it, not \"\(text)\".")
    }
    return position
  }

  /// What --author, --not-author and --collection ask for.
  var commitFilter: CommitFilter {
    CommitFilter(
      authors: options["--author"].map { [$0] },
      excludedAuthors: options["--not-author"].map { [$0] } ?? [],
      collections: options["--collection"].map { [$0] })
  }
}
