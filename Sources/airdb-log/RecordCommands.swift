import AirDbLogStore

extension Command {
  static let get = Command(
    name: "get", operands: "STORE COLLECTION ID", operandCount: 3...3,
    summary: "Prints the newest version of a record.",
    details: """
      It is one line of JSON, as of dump. A deletion is a record too; exit code 3 means that there
      never was one.
      """,
    example: "airdb-log get notes.store notes 3f1c6a52"
  ) { arguments, _ in
    let opened = try arguments.openStore()
    let key = RecordKey(collection: arguments.operands[1], id: arguments.operands[2])
    guard let record = try opened.store.record(forKey: key) else {
      throw ToolError(
        .notFound, "There is no record \"\(key.id)\" in the collection \"\(key.collection)\".",
        advice: "Both are compared byte by byte; `airdb-log dump` lists all records.")
    }
    var line: [UInt8] = []
    JsonLine.append(record, to: &line)
    try Output.standard.write(line)
  }

  static let dump = Command(
    name: "dump", operands: "STORE", operandCount: 1...1,
    options: [
      Option(name: "--after", value: "HLC", meaning: "Only records with greater timestamps."),
      Option(name: "--collection", value: "NAME", meaning: "Only records of this collection."),
      Option(name: "--limit", value: "N", meaning: "At most so many."),
    ],
    summary: "Prints the newest versions of all records as JSON Lines.",
    details: """
      Ascending by timestamp, deletions included, as of the moment when the store was opened. The
      fields are collection, id, type (0 insert, 1 update, 2 delete), hlc, payload (payload64, in
      base64, where it is not UTF-8), and authorPublicKey64 and signature64 where they are present.
      """,
    example: "airdb-log dump notes.store --collection notes --limit 10"
  ) { arguments, command in
    var selection = RecordSelection()
    selection.limit = try arguments.count("--limit", of: command) ?? .max
    selection.collection = arguments.options["--collection"]
    selection.after = arguments.options["--after"].map { ChangeCursor(behind: $0) }
    _ = try selection.write(
      try arguments.openStore().store, isDone: { Output.standard.isClosed },
      to: { try Output.standard.write($0) })
  }
}
