/// What a comparison found, in the words of the one who compares. Only the first ones are kept.
struct Differences {
  private(set) var count = 0
  private var texts: [String] = []
  private static let shown = 20

  mutating func add(_ text: @autoclosure () -> String) {
    if count < Self.shown { texts.append(text()) }
    count += 1
  }

  /// Prints the differences and throws, if there are any.
  func check(_ what: String) throws {
    guard count > 0 else { return }
    for text in texts { try Output.standard.printLine("  \(text)") }
    if count > texts.count {
      try Output.standard.printLine("  and \(Figures.count(count - texts.count)) more")
    }
    throw ToolError(
      .damage, "\(what): \(Figures.count(count, "difference", "differences")).",
      advice: "With --keep the stores stay, to look at.")
  }
}
