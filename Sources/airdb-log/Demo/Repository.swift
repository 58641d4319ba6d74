#if os(macOS) || os(Linux)
  import Foundation

  /// A git repository, read through the `git` program.
  struct Repository {
    let path: String
    /// The commit that HEAD named when this began; it may move meanwhile.
    private(set) var head = ""
    private let git: URL
    private let environment: [String: String]
    private let errors: ErrorFile
    private let interruption: Interruption

    /// Variables that would make git look at another repository than the one at `path`.
    private static let misleading = [
      "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
      "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_GRAFT_FILE",
      "GIT_SHALLOW_FILE", "GIT_REPLACE_REF_BASE",
    ]

    /// - Parameter errorFile: The path of a file to create for what git says.
    /// - Throws: ``ToolError`` if it is no repository with a whole history.
    init(at path: String, errorFile: String, _ interruption: Interruption) throws {
      self.path = path
      self.interruption = interruption
      var environment = ProcessInfo.processInfo.environment
      guard let git = Self.findGit(environment["PATH"] ?? "") else {
        throw ToolError(
          .notFound, "There is no git in the folders that PATH names.",
          advice: "The demo reads history with it: install git, or add its folder to PATH.")
      }
      self.git = git
      for name in Self.misleading { environment[name] = nil }
      environment["LC_ALL"] = "C"
      // What a partial clone lacks is not fetched behind the user's back.
      environment["GIT_NO_LAZY_FETCH"] = "1"
      environment["GIT_TERMINAL_PROMPT"] = "0"
      environment["GIT_OPTIONAL_LOCKS"] = "0"
      self.environment = environment
      errors = try ErrorFile(errorFile)
      var isDirectory: ObjCBool = false
      guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory),
        isDirectory.boolValue
      else { throw ToolError(.notFound, "There is no folder \(path).") }
      try checkHistory()
    }

    private mutating func checkHistory() throws {
      guard let isShallow = try line(["rev-parse", "--is-shallow-repository"]) else {
        throw ToolError(
          .notFound, "\(path) is not a git repository: \(errors.lastLine)",
          advice: "Run the demo in a repository, or name one with --repository.")
      }
      guard isShallow != "true" else {
        throw ToolError(
          .notFound, "\(path) is a shallow clone: the beginning of its history is missing.",
          advice: "`git fetch --unshallow` gets it; or name another repository with --repository.")
      }
      guard let head = try line(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]) else {
        throw ToolError(
          .notFound, "\(path) is a git repository without a commit.",
          advice: "Commit something, or name another repository with --repository.")
      }
      self.head = head
    }

    private static func findGit(_ path: String) -> URL? {
      path.split(separator: ":").map { "\($0)/git" }
        .first { FileManager.default.isExecutableFile(atPath: $0) }
        .map { URL(fileURLWithPath: $0) }
    }

    // MARK: Running git

    /// Starts a command.
    func start(_ arguments: [String], hasInput: Bool = false) throws -> ChildProcess {
      try ChildProcess(
        git, ["--no-replace-objects", "-C", path] + arguments, environment: environment,
        hasInput: hasInput, errors: errors.handle, interruption)
    }

    /// The first line of a command's output; nil if it fails.
    func line(_ arguments: [String]) throws -> String? {
      let process = try start(arguments)
      let line: [UInt8]?
      do {
        line = try reading(process, arguments[0]) { try process.output.bytes(until: 0x0A) }
      } catch {
        process.stop()
        throw error
      }
      let status = process.finish()
      try interruption.check()
      return status == 0 ? line.map { String(decoding: $0, as: UTF8.self) } : nil
    }

    /// Reads the output of a command, whose early end is the command's failure.
    func reading<Result>(
      _ process: ChildProcess, _ name: String, _ body: () throws -> Result
    ) throws -> Result {
      do {
        return try body()
      } catch is UnexpectedEnd {
        throw failure(name, process.finish())
      }
    }

    /// Waits for the end of a command that must have succeeded.
    func finish(_ process: ChildProcess, _ name: String) throws {
      let status = process.finish()
      try interruption.check()
      guard status == 0 else { throw failure(name, status) }
    }

    func failure(_ name: String, _ status: Int32? = nil) -> ToolError {
      let status = status.map { " with status \($0)" } ?? ""
      return ToolError(
        .notFound, "git \(name) failed\(status): \(errors.lastLine)",
        advice: "`git fsck` tells whether the repository is whole.")
    }
  }

  /// What git says on its error output.
  private struct ErrorFile {
    let handle: FileHandle
    private let path: String

    init(_ path: String) throws {
      self.path = path
      guard FileManager.default.createFile(atPath: path, contents: nil),
        let handle = FileHandle(forWritingAtPath: path)
      else { throw ToolError(.notFound, "Could not create \(path).") }
      self.handle = handle
    }

    var lastLine: String {
      let bytes = FileManager.default.contents(atPath: path) ?? Data()
      let text = String(decoding: bytes, as: UTF8.self)
      return text.split(separator: "\n").last.map(String.init) ?? "it gave no reason."
    }
  }
#endif
