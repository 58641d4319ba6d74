import AirDbLogStore

extension Command {
  static let verify = Command(
    name: "verify", operands: "STORE", operandCount: 1...1,
    summary: "Checks every byte of a store.",
    details: """
      Each problem is a line: the file, the offset, what is wrong. Exit code 1 if there is one.
      "Derived" is what the next open for writing builds again from the log; all else is lost data.
      """,
    example: "airdb-log verify notes.store"
  ) { arguments, _ in
    let report: VerificationReport
    do {
      let opened = try arguments.openStore()
      let progress = Progress("Checking")
      defer { progress.finish() }
      report = try opened.store.verify { progress.show($0) }
    } catch let error as LogStoreError where error.code == .corrupt {
      let place = describe(error.file ?? arguments.operands[0], error.offset)
      try Output.standard.printLine("\(place): \(error.message)")
      throw ToolError(
        .damage, "The store is damaged and does not open.", advice: lossAdvice)
    }
    for problem in report.problems {
      let kind = problem.isDerived ? " (derived)" : ""
      try Output.standard.printLine(
        "\(describe(problem.file, problem.offset)): \(problem.reason)\(kind)")
    }
    let checked =
      "checked \(Figures.count(report.checkedCommits, "commit", "commits")), "
      + "\(Figures.count(report.checkedRecords, "record", "records")), "
      + Figures.bytes(report.checkedBytes)
      + (report.uncheckedBytes > 0
        ? "; \(Figures.bytes(report.uncheckedBytes)) could not be checked" : "")
    guard !report.isClean else {
      return try Output.standard.printLine("No damage; \(checked).")
    }
    let isDerived = report.problems.allSatisfy(\.isDerived)
    throw ToolError(
      .damage, "\(Figures.count(report.problems.count, "problem", "problems")); \(checked).",
      advice: isDerived
        ? "Open the store for writing once: what is damaged is built again from the log."
        : lossAdvice)
  }

  private static let lossAdvice =
    "Keep a copy of the directory, and restore from a backup or a peer."

  private static func describe(_ file: String, _ offset: UInt64?) -> String {
    offset.map { "\(file) at offset \($0)" } ?? file
  }
}
