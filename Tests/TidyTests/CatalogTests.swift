import Testing

/// The front pages of the documentation lead to everything that is public.
struct CatalogTests {
  @Test(arguments: ["AirDbContract", "AirDbLogStore", "AirDbAdapterTesting"])
  func theFrontPageListsEveryTypeAndArticle(of module: String) throws {
    let catalog = "Sources/\(module)/\(module).docc/"
    let page = try #require(Repository.files.first { $0.path == "\(catalog)\(module).md" })
    var count = 0
    let declaration =
      /(?m)^public (?:final |indirect )?(?:struct|class|enum|protocol|actor|typealias) (\w+)/
    for file in Repository.files(in: "Sources/\(module)/", ending: ".swift") {
      for match in file.code.matches(of: declaration) {
        count += 1
        let isListed = page.text.contains("- ``\(match.1)``")
        #expect(isListed, "\(file.path): \(match.1)")
      }
    }
    for file in Repository.files(in: catalog, ending: ".md") where file.path != page.path {
      count += 1
      let isListed = page.text.contains("- <doc:\(file.name.dropLast(".md".count))>")
      #expect(isListed, "\(file.path)")
    }
    #expect(count > 3, "\(count) types and articles only")
  }
}
