extension Command {
  static let demo = Command(
    name: "demo", operandCount: 0...0,
    summary: "Replays the history of a git repository through a store, and checks the result."
  ) { _, _ in
    throw ToolError(.refused, "The demo is not part of this build.")
  }

  static let hidden: [Command] = []
}
