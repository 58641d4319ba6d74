import AirDbLogStore

extension Command {
  static let compact = Command(
    name: "compact", operands: "STORE", operandCount: 1...1, options: [.dryRun],
    summary: "Removes superseded versions that nobody needs.",
    details: """
      Opens the store for writing: nobody else may have it open so. What a store keeps of its history
      for some time is configured by the app that opens it; this command knows only its consumers.
      """,
    example: "airdb-log compact --dry-run notes.store"
  ) { arguments, _ in
    if arguments.options[Command.Option.dryRun.name] != nil {
      return try estimate(try arguments.openStore().store)
    }
    let store = try arguments.openStore(isReadOnly: false).store
    let result: CompactionResult
    do {
      let progress = Progress("Compacting")
      defer { progress.finish() }
      result = try store.compact { progress.show($0) }
    }
    try store.close()
    // Files of what was replaced are removed off this thread; an open removes those that are left.
    try arguments.openStore(isReadOnly: false).store.close()
    guard result.segments > 0 else {
      return try Output.standard.printLine("There is nothing to remove.")
    }
    try Output.standard.printLine(
      "\(Figures.count(result.segments, "segment", "segments")) of "
        + "\(Figures.bytes(result.bytesBefore)) replaced by \(Figures.bytes(result.bytesAfter)); "
        + "\(Figures.count(result.recordsDropped, "record", "records")) removed.")
  }

  private static func estimate(_ store: ChangeStore) throws {
    let estimate = try store.compactionEstimate()
    guard estimate.segments > 0 else {
      return try Output.standard.printLine("There is nothing to remove.")
    }
    try Output.standard.printLine(
      "\(Figures.count(estimate.segments, "segment", "segments")) of "
        + "\(Figures.bytes(estimate.bytesToRead)) would be replaced, and about "
        + "\(Figures.bytes(estimate.bytesFreed)) freed; needs "
        + "\(Figures.bytes(estimate.scratchBytes)) meanwhile.")
    for name in estimate.affectedConsumers {
      try Output.standard.printLine(
        "The consumer \(name) would get only the newest of the versions that it has not seen.")
    }
  }
}

extension Command.Option {
  static let dryRun = Command.Option(
    name: "--dry-run", meaning: "Says what would be done, and changes nothing.")
}
