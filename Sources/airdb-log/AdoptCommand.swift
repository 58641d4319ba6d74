import AirDbLogStore

extension Command {
  static let adopt = Command(
    name: "adopt", operands: "STORE", operandCount: 1...1,
    summary: "Gives a copied store an identity of its own.",
    details: """
      For a copy that will be written beside the store that it was copied from. Positions of that
      one do not fit the copy any more, and the other way round; records, timestamps and consumers
      stay as they are. The store must not be open for writing.
      """,
    example: "cp -R notes.store copy.store && airdb-log adopt copy.store"
  ) { arguments, _ in
    let identity = try ChangeStore.adopt(at: arguments.operands[0])
    try Output.standard.printLine("The store is \(identity) now.")
  }
}
