import AirDbLogStore
import Foundation

extension Command {
  static let tail = Command(
    name: "tail", operands: "STORE", operandCount: 1...1,
    options: [
      Option(
        name: "--after", value: "POSITION",
        meaning: "From behind this commit on; from now on by default."),
      Option(name: "--author", value: "NAME", meaning: "Only commits of this author."),
      Option(name: "--not-author", value: "NAME", meaning: "No commits of this author."),
      Option(name: "--collection", value: "NAME", meaning: "Only changes in this collection."),
      Option(name: "--json", meaning: "As JSON Lines, for programs."),
      Option(
        name: "--records", meaning: "The changed records, payloads included, as lines of dump."),
    ],
    summary: "Prints commits as a writer makes them, until it is interrupted.",
    details: """
      Looks into the store several times a second, beside its writer, and prints what is new as
      history does. The interrupt key, SIGTERM or a reader that goes away end it, with the exit code
      0. The last line then says where to go on, but not with --records, whose lines import reads.
      With --records it prints the versions that are still there.
      """,
    example: "airdb-log tail notes.store --collection notes"
  ) { arguments, command in
    #if os(macOS) || os(Linux)
      try await TailRequest(arguments, command).run(try arguments.openStore().store)
    #else
      throw ToolError(.refused, "There is nothing that could interrupt it on this platform.")
    #endif
  }
}

#if os(macOS) || os(Linux)
  /// What a call of `tail` asks for.
  private struct TailRequest {
    private let after: Position?
    private let filter: CommitFilter
    private let lines: CommitLines
    private let printsRecords: Bool

    /// Between two looks.
    private static let interval = Duration.milliseconds(100)

    init(_ arguments: Arguments, _ command: Command) throws(ToolError) {
      after = try arguments.position("--after", of: command)
      filter = arguments.commitFilter
      lines = CommitLines(isJson: arguments.options["--json"] != nil)
      printsRecords = arguments.options["--records"] != nil
      guard !printsRecords || !lines.isJson else {
        throw command.usageError("The options --json and --records exclude each other.")
      }
    }

    func run(_ store: ChangeStore) async throws {
      let interruption = Interruption()
      interruption.watch {}
      var position = try after ?? store.position
      while !Output.standard.isClosed, !interruption.hasCome {
        do {
          try print(store, behind: &position)
        } catch {
          throw positionFailure(error)
        }
        try Output.standard.flush()
        try await Task.sleep(for: Self.interval)
        try Self.refresh(store)
      }
      if !printsRecords { try Output.standard.write(lines.end(position, isLast: true)) }
    }

    private static func refresh(_ store: ChangeStore) throws(LogStoreError) {
      do throws(LogStoreError) {
        try store.refresh()
      } catch {
        // The writer replaces files faster than this could follow; it looks again soon.
        guard error.code == .staleReader else { throw error }
      }
    }

    /// Prints all that is there behind a position, and moves it on with each page.
    private func print(_ store: ChangeStore, behind position: inout Position?) throws {
      while !Output.standard.isClosed {
        let page = try store.commits(
          after: position, matching: filter, limit: 256, byteLimit: 1 << 20)
        var output: [UInt8] = []
        do {
          for commit in page.commits { output += try printed(commit) }
        } catch let error as LogStoreError
          where error.code == .staleReader || error.code == .expired
        {
          // The file of a change has gone, and the page is read again.
          return
        }
        try Output.standard.write(output)
        position = page.next ?? position
        if page.isLast { return }
      }
    }

    private func printed(_ commit: Commit) throws -> [UInt8] {
      guard printsRecords else { return lines.line(commit) }
      var output: [UInt8] = []
      for change in commit.changes { JsonLine.append(try change.record(), to: &output) }
      return output
    }
  }
#endif
