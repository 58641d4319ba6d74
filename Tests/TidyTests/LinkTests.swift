import Testing

/// Links in the documents.
struct LinkTests {
  @Test func linksLeadSomewhere() {
    var count = 0
    for file in Repository.files where file.path.hasSuffix(".md") {
      for match in file.text.matches(of: /\]\(([^)\s]+)\)/) {
        let target = match.1
        guard !target.contains(/^[a-z]+:/) else { continue }
        count += 1
        check(String(target), in: file)
      }
    }
    #expect(count > 10, "\(count) links only")
  }

  private func check(_ target: String, in file: Repository.File) {
    let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
    let path = parts[0].isEmpty ? file.path : resolve(String(parts[0]), from: file.path)
    #expect(Repository.exists(path), "\(file.path): \(target)")
    guard parts.count > 1 else { return }
    let headings = Repository.files.first { $0.path == path }.map(Self.headings) ?? []
    #expect(headings.contains(String(parts[1])), "\(file.path): no heading for \(target)")
  }

  private func resolve(_ path: String, from file: String) -> String {
    var parts = file.split(separator: "/").dropLast().map(String.init)
    for part in path.split(separator: "/") where part != "." {
      if part == ".." { parts = parts.dropLast() } else { parts.append(String(part)) }
    }
    return parts.joined(separator: "/")
  }

  /// The names by which headings are linked to, as GitHub makes them.
  private static func headings(_ file: Repository.File) -> Set<String> {
    Set(
      file.text.matches(of: /(?m)^#+ (.+)$/).map { match in
        match.1.lowercased().replacing(/[^\w\- ]/, with: "").replacing(" ", with: "-")
      })
  }
}
