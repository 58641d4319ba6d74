#if os(macOS) || os(Linux)
  import Foundation
  import Testing

  /// A git repository made for a test, without a work tree being checked out.
  struct GitFixture {
    let path: String
    private let folder: TemporaryFolder

    /// The git program; nil if there is none, and tests that need it are skipped.
    static let git: String? = ProcessInfo.processInfo.environment["PATH"]?
      .split(separator: ":").map { "\($0)/git" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }

    /// An empty repository.
    init(in folder: TemporaryFolder, named name: String = "repo é", isBare: Bool = false) throws {
      self.folder = folder
      path = folder.path(name)
      try Self.git(["init", "--quiet"] + (isBare ? ["--bare"] : []) + [path], in: folder)
    }

    /// A repository with a history.
    init(
      in folder: TemporaryFolder, _ history: History, named name: String = "repo é",
      isBare: Bool = false
    ) throws {
      try self.init(in: folder, named: name, isBare: isBare)
      let file = try folder.newFile()
      try file.write(contentsOf: history.stream)
      try file.seek(toOffset: 0)
      try git(["fast-import", "--quiet"], input: file)
      try git(["symbolic-ref", "HEAD", "refs/heads/main"])
    }

    @discardableResult
    func git(_ arguments: [String], input: FileHandle = .nullDevice) throws -> String {
      try Self.git(["-C", path] + arguments, in: folder, input: input)
    }

    @discardableResult
    static func git(
      _ arguments: [String], in folder: TemporaryFolder, input: FileHandle = .nullDevice
    ) throws -> String {
      let process = Process()
      process.executableURL = URL(fileURLWithPath: try #require(git))
      process.arguments = arguments
      process.environment = Tool.environment()
      process.standardInput = input
      process.standardOutput = try folder.newFile()
      process.standardError = try folder.newFile()
      try process.run()
      let outcome = try Tool.outcome(of: process)
      try #require(outcome.status == 0, "git \(arguments): \(outcome.errors)")
      return outcome.output.trimmingCharacters(in: .newlines)
    }

    /// A folder with a program `git` that runs a line of shell before it becomes the real one, whose
    /// path is in `$git`. Put it first in PATH.
    static func wrapper(_ script: String, in folder: TemporaryFolder) throws -> String {
      let bin = try folder.newFolder("bin")
      let text = "#!/bin/sh\ngit='\(try #require(git))'\n\(script)\nexec \"$git\" \"$@\"\n"
      try text.write(toFile: "\(bin)/git", atomically: false, encoding: .utf8)
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: "\(bin)/git")
      return "\(bin):\(ProcessInfo.processInfo.environment["PATH"] ?? "")"
    }
  }

  /// A history in the language of `git fast-import`.
  struct History {
    private(set) var stream = Data()
    private var marks = 0

    enum Edit {
      case write(String, [UInt8], mode: String = "100644")
      case submodule(String, commit: String)
      case delete(String)
      case rename(String, String)
      /// A file at a path of any bytes.
      case writeAtBytes([UInt8], [UInt8])

      static func text(_ path: String, _ text: String, mode: String = "100644") -> Edit {
        .write(path, Array(text.utf8), mode: mode)
      }
    }

    /// Adds a commit, after the last one of its branch unless `parent` says otherwise.
    ///
    /// - Returns: Its mark.
    @discardableResult
    mutating func commit(
      at time: Int, by author: String = "Ada", on branch: String = "main", after parent: Int? = nil,
      merging other: Int? = nil, _ edits: [Edit]
    ) -> Int {
      marks += 1
      add("commit refs/heads/\(branch)\nmark :\(marks)\n")
      add("committer \(author) <\(author.lowercased())@example.org> \(time) +0000\ndata 0\n")
      if let parent { add("from :\(parent)\n") }
      if let other { add("merge :\(other)\n") }
      for edit in edits { add(edit) }
      add("\n")
      return marks
    }

    private mutating func add(_ edit: Edit) {
      switch edit {
      case .write(let path, let content, let mode):
        add(Array(path.utf8), content, mode: mode)
      case .writeAtBytes(let path, let content):
        add(path, content, mode: "100644")
      case .submodule(let path, let commit): add("M 160000 \(commit) \(path)\n")
      case .delete(let path): add("D \(path)\n")
      // The first of two paths must be quoted if it has a space.
      case .rename(let old, let new): add("R \"\(old)\" \(new)\n")
      }
    }

    private mutating func add(_ path: [UInt8], _ content: [UInt8], mode: String) {
      add("M \(mode) inline ")
      stream.append(contentsOf: path)
      add("\ndata \(content.count)\n")
      stream.append(contentsOf: content)
      add("\n")
    }

    private mutating func add(_ text: String) { stream.append(contentsOf: text.utf8) }
  }

  extension History {
    static let submoduleCommit = String(repeating: "1", count: 40)

    /// What histories have: equal times and a clock that goes back, a merge, deletions, renames, a
    /// rewrite to what was there before, binary and empty files, links, a submodule, a file that
    /// becomes a folder, names in all spellings.
    static let everything: History = {
      var history = History()
      history.commit(
        at: 1_000_000_000,
        [
          .text("README.md", "one\n"), .text("src/a b.txt", "a"), .text("src/empty", ""),
          .write("bin/data", Array(0...255)),
        ])
      let second = history.commit(
        at: 1_000_000_000, by: "Bo",
        [.text("README.md", "two\n"), .text("src/a b.txt", "a", mode: "100755")])
      let third = history.commit(
        at: 999_999_000, [.rename("src/a b.txt", "lib/ü/a b.txt"), .delete("bin/data")])
      let side = history.commit(
        at: 1_000_000_100, by: "Cy", on: "side", after: second,
        [.text("side/new\u{1B}[0m.txt", "from the side")])
      history.commit(
        at: 1_000_000_200, after: third, merging: side,
        [.text("side/new\u{1B}[0m.txt", "from the side")])
      history.commit(
        at: 1_000_000_300,
        [
          .text("link", "README.md", mode: "120000"),
          .submodule("vendor/sub", commit: submoduleCommit),
          .writeAtBytes(Array("caf".utf8) + [0xE9], Array("Latin-1".utf8)),
          .text("\u{E9}.txt", "composed"), .text("e\u{301}.txt", "decomposed"),
        ])
      history.commit(
        at: 1_000_000_400,
        [
          .delete("src/empty"), .text("src/empty/inside", "now a folder"),
          .text("link", "README.md, no link any more"),
        ])
      history.commit(at: 1_000_000_500, [])
      history.commit(at: 1_000_000_600, by: "Bo", [.delete("README.md")])
      history.commit(at: 1_000_000_700, [.text("README.md", "two\n")])
      return history
    }()

    /// What must be live at the end of ``everything``: contents by collection and id.
    static let everythingsEnd: [[String]: Data] = [
      [".", "README.md"]: Data("two\n".utf8),
      ["lib", "lib/ü/a b.txt"]: Data("a".utf8),
      ["side", "side/new\u{1B}[0m.txt"]: Data("from the side".utf8),
      [".", "link"]: Data("README.md, no link any more".utf8),
      ["vendor", "vendor/sub"]: Data(submoduleCommit.utf8),
      [".", "caf\0e9"]: Data("Latin-1".utf8),
      ["src", "src/empty/inside"]: Data("now a folder".utf8),
    ]
  }
#endif
