#if os(macOS) || os(Linux)
  import Foundation
  import Testing

  /// Runs the tool as its users do: as a process.
  enum Tool {
    struct Outcome {
      /// The exit code, or the negated number of the signal that ended it.
      var status: Int32
      var output: String
      var errors: String

      var lines: [Substring] { output.split(separator: "\n") }
    }

    /// The built tool, which lies beside the test bundle.
    static let executable: URL = {
      #if os(macOS)
        let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") } ?? .main
        let folder = bundle.bundleURL.deletingLastPathComponent()
      #else
        let folder = Bundle.main.bundleURL
      #endif
      return folder.appendingPathComponent("airdb-log")
    }()

    /// The environment of this process, with the changes that make git the same everywhere.
    static func environment(_ changes: [String: String?] = [:]) -> [String: String] {
      var environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("GIT_") }
      environment["GIT_CONFIG_NOSYSTEM"] = "1"
      environment["GIT_CONFIG_GLOBAL"] = "/dev/null"
      for (name, value) in changes { environment[name] = value }
      return environment
    }

    /// A process that is not started yet, with its output in files of `folder`: a pipe that nobody
    /// reads would stop it.
    static func process(
      _ arguments: [String], in folder: TemporaryFolder,
      environment changes: [String: String?] = [:],
      currentFolder: String? = nil, input: FileHandle = .nullDevice, executable: URL = executable
    ) throws -> Process {
      let process = Process()
      process.executableURL = executable
      process.arguments = arguments
      process.environment = environment(changes)
      if let currentFolder { process.currentDirectoryURL = URL(fileURLWithPath: currentFolder) }
      process.standardInput = input
      process.standardOutput = try folder.newFile()
      process.standardError = try folder.newFile()
      return process
    }

    static func run(
      _ arguments: [String], in folder: TemporaryFolder,
      environment changes: [String: String?] = [:],
      currentFolder: String? = nil, input: FileHandle = .nullDevice, executable: URL = executable
    ) throws -> Outcome {
      let process = try process(
        arguments, in: folder, environment: changes, currentFolder: currentFolder, input: input,
        executable: executable)
      try process.run()
      return try outcome(of: process)
    }

    /// Waits for the end.
    static func outcome(of process: Process) throws -> Outcome {
      process.waitUntilExit()
      let output = try #require(process.standardOutput as? FileHandle)
      let errors = try #require(process.standardError as? FileHandle)
      return Outcome(
        status: process.terminationReason == .exit
          ? process.terminationStatus : -process.terminationStatus,
        output: try text(output), errors: try text(errors))
    }

    static func text(_ file: FileHandle) throws -> String {
      try file.seek(toOffset: 0)
      return String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
    }
  }

  /// A folder of a test's own, removed with the last reference to it. Its name has what shells and
  /// careless programs stumble over.
  final class TemporaryFolder {
    let path: String
    private var files = 0

    init() throws {
      path =
        FileManager.default.temporaryDirectory
        .appendingPathComponent("airdb tool tést \(UUID().uuidString)").path
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func path(_ name: String) -> String { "\(path)/\(name)" }

    /// A new folder in this one.
    func newFolder(_ name: String) throws -> String {
      try FileManager.default.createDirectory(
        atPath: path(name), withIntermediateDirectories: true)
      return path(name)
    }

    /// A new file for the output of a process.
    func newFile() throws -> FileHandle {
      files += 1
      let file = path("output \(files)")
      try #require(FileManager.default.createFile(atPath: file, contents: nil))
      return try #require(FileHandle(forUpdatingAtPath: file))
    }

    func names(_ folder: String) throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    }

    /// All files of a folder with their bytes.
    func contents(_ folder: String) throws -> [String: Data] {
      var contents: [String: Data] = [:]
      for name in try names(folder) {
        contents[name] = FileManager.default.contents(atPath: "\(folder)/\(name)")
      }
      return contents
    }
  }
#endif
