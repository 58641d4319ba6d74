import Foundation

/// `airdb-log`: looks into a store, checks it, and shows the engine at work on real input.
@main
struct AirDbLog {
  @MainActor
  static func main() async {
    // A reader that has enough closes the pipe; that shows as an error of `write`, never as a death
    // that would leave the demo's files behind.
    signal(SIGPIPE, SIG_IGN)
    exit(await run(Array(CommandLine.arguments.dropFirst())).rawValue)
  }

  @MainActor
  private static func run(_ arguments: [String]) async -> ExitCode {
    do {
      try await Command.run(arguments)
      try Output.standard.flush()
      return .success
    } catch {
      try? Output.standard.flush()
      let failure = ToolError(error)
      Output.errors.writeLine("airdb-log: \(failure.message)")
      for line in failure.advice?.split(separator: "\n", omittingEmptySubsequences: false) ?? [] {
        Output.errors.writeLine(String(line))
      }
      return failure.exitCode
    }
  }
}
