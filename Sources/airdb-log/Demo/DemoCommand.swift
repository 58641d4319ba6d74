extension Command {
  static let demo = Command(
    name: "demo", operandCount: 0...0,
    options: [
      Option(
        name: "--repository", value: "PATH",
        meaning: "The repository; the one of the current folder by default."),
      Option(
        name: "--keep", value: "DIR",
        meaning: "A new or empty folder that gets the stores and keeps them."),
      Option(name: "--limit", value: "N", meaning: "Only the first N commits."),
    ],
    summary: "Replays a git repository's history through a store, and checks all.",
    details: """
      A commit is a batch, a changed file a record: its top folder is the collection, its path the
      id, its content the payload. Of merges the first parent is followed. The demo

        - replays the history into a new store, closes and reopens it, and compares the live
          records with git's own tree, byte for byte;
        - syncs it page by page through AirDbAdapter into a second store, and compares the two;
        - kills a process that writes a third one in the middle of its commits, three times, and
          checks that all that was acknowledged is there, and nothing by halves;
        - verifies every byte; and prints what it measured.

      The repository is only read, with git. The stores are in a temporary folder (TMPDIR) and are
      removed at the end, also after an interrupt.
      """,
    example: "airdb-log demo --repository ../project --limit 1000"
  ) { arguments, command in
    #if os(macOS) || os(Linux)
      try await Demo.run(arguments, command)
    #else
      throw ToolError(.refused, "The demo needs processes, which this platform does not have.")
    #endif
  }

  static var hidden: [Command] {
    #if os(macOS) || os(Linux)
      [.killedWriter]
    #else
      []
    #endif
  }
}
