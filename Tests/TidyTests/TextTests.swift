import Testing

/// Rules for every text file.
struct TextTests {
  @Test func thereAreFilesToLookAt() {
    #expect(Repository.files.count > 100)
    #expect(Repository.files(in: "Sources/AirDbLogStore/", ending: ".swift").count > 40)
  }

  @Test func noLineEndsInWhiteSpace() {
    expectNoLine { $0.last?.isWhitespace == true }
    for file in Repository.files {
      #expect(file.text.isEmpty || file.text.hasSuffix("\n"), "\(file.path): no last newline")
      #expect(!file.text.hasSuffix("\n\n"), "\(file.path): an empty line at the end")
    }
  }

  @Test func swiftFilesHaveNoTabs() {
    expectNoLine(of: Repository.files(ending: ".swift")) { $0.contains("\t") }
  }

  @Test func nothingIsLeftForLater() throws {
    // In two pieces, so that this file may be looked at too.
    let words = ["TO" + "DO", "FIX" + "ME", "XX" + "X", "not " + "implemented", "place" + "holder"]
    let word = try Regex(#"\b(?:\#(words.joined(separator: "|")))\b"#)
    expectNoLine { $0.contains(word) }
  }

  @Test func noFileNamesAPlaceOnSomebodysMachine() {
    let places = ["/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/", "/Us" + "ers/"]
    expectNoLine { line in places.contains { line.contains($0) } }
  }

  private func expectNoLine(
    of files: [Repository.File] = Repository.files, where isBad: (Substring) -> Bool
  ) {
    for file in files {
      for (number, line) in file.lines.enumerated() where isBad(line) {
        Issue.record("\(file.path):\(number + 1): \(line)")
      }
    }
  }
}
