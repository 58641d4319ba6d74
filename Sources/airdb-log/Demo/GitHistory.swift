#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation

  /// What a path names in a tree of git.
  struct GitFile {
    var key: RecordKey
    /// The hexadecimal id of the blob, or of a submodule's commit.
    var object: [UInt8]
    /// A submodule is a commit of another repository, which has no content here.
    var isSubmodule: Bool

    /// - Parameter mode: In octal digits; symbolic links are blobs that hold their target.
    init(path: [UInt8], object: some Sequence<UInt8>, mode: some Sequence<UInt8>) {
      key = RecordKey(gitPath: path)
      self.object = Array(object)
      isSubmodule = mode.elementsEqual("160000".utf8)
    }
  }

  extension RecordKey {
    /// The key of a path: its top folder, "." for files at the root; and the path.
    ///
    /// Git's paths are bytes without NUL. A byte that is not UTF-8 becomes NUL and two hexadecimal
    /// digits, so that different paths stay different.
    init(gitPath path: [UInt8]) {
      let id = Self.text(path)
      let top = id.utf8.firstIndex(of: UInt8(ascii: "/")).map { String(id[..<$0]) }
      self.init(collection: top ?? ".", id: id)
    }

    private static func text(_ path: [UInt8]) -> String {
      let text = String(decoding: path, as: UTF8.self)
      if text.utf8.elementsEqual(path) { return text }
      var result = ""
      var rest = path[...]
      while let first = rest.first {
        // A character has at most four bytes.
        let length = (1...4).first { length in
          let start = rest.prefix(length)
          return String(decoding: start, as: UTF8.self).utf8.elementsEqual(start)
        }
        if let length {
          result += String(decoding: rest.prefix(length), as: UTF8.self)
        } else {
          result += "\0" + (first < 16 ? "0" : "") + String(first, radix: 16)
        }
        rest = rest.dropFirst(length ?? 1)
      }
      return result
    }
  }

  /// The commits from the first to a last one, each with its changes against the one before.
  ///
  /// A history with merges is made a line by following first parents: a merge brings in what its
  /// branch changed as one commit. So the changes, one after the other, end in the last commit's tree.
  struct GitHistory {
    struct Commit {
      var id: String
      /// Of the committer, in seconds since 1970.
      var time: UInt64
      var author: [UInt8]
      var changes: [Change] = []
    }

    struct Change {
      var file: GitFile
      var type: MutationType

      var hasContent: Bool { type != .delete }
    }

    private let repository: Repository
    private let process: ChildProcess
    private var nextHeader: [UInt8]?
    private var isAtStart = true

    init(_ repository: Repository) throws {
      self.repository = repository
      // The options undo settings of the user's that change what is listed.
      process = try repository.start([
        "-c", "log.showRoot=true", "-c", "log.diffMerges=first-parent", "-c", "diff.relative=false",
        "-c", "log.showSignature=false", "log", "--reverse", "--first-parent", "-m", "--raw", "-z",
        "--no-abbrev", "--no-renames", "--ignore-submodules=none",
        "--format=commit %H %ct %an <%ae>", repository.head,
      ])
    }

    static func count(_ repository: Repository) throws -> Int {
      let line = try repository.line(["rev-list", "--first-parent", "--count", repository.head])
      guard let count = line.flatMap({ Int($0) }) else { throw repository.failure("rev-list") }
      return count
    }

    /// The next commit; nil at the end.
    mutating func next() throws -> Commit? {
      try repository.reading(process, "log") { try readNext() }
    }

    private mutating func readNext() throws -> Commit? {
      if isAtStart {
        nextHeader = try process.output.bytes(until: 0)
        isAtStart = false
      }
      guard let header = nextHeader else {
        try repository.finish(process, "log")
        return nil
      }
      nextHeader = nil
      var commit = try Self.commit(header)
      while let field = try process.output.bytes(until: 0) {
        // The first change of a commit comes after a line break.
        let line = field.first == 0x0A ? field.dropFirst() : field[...]
        guard line.first == UInt8(ascii: ":") else {
          nextHeader = field
          break
        }
        guard let path = try process.output.bytes(until: 0) else { throw Self.misread(field) }
        commit.changes.append(try Self.change(line.dropFirst(), path))
      }
      return commit
    }

    /// Ends it before its end.
    func stop() { process.stop() }

    // MARK: Format

    /// `commit ID TIME AUTHOR`.
    private static func commit(_ header: [UInt8]) throws -> Commit {
      let parts = header.split(separator: 0x20, maxSplits: 3, omittingEmptySubsequences: false)
      guard parts.count == 4, parts[0].elementsEqual("commit".utf8) else { throw misread(header) }
      // A time before 1970, which some histories have, is taken for 1970.
      let time = UInt64(String(decoding: parts[2], as: UTF8.self)) ?? 0
      return Commit(
        id: String(decoding: parts[1], as: UTF8.self), time: time, author: Array(parts[3]))
    }

    /// `OLDMODE NEWMODE OLDOBJECT NEWOBJECT STATUS`.
    private static func change(_ line: ArraySlice<UInt8>, _ path: [UInt8]) throws -> Change {
      let parts = line.split(separator: 0x20)
      guard parts.count == 5, let status = parts[4].first else { throw misread(Array(line)) }
      let type: MutationType =
        switch status {
        case UInt8(ascii: "A"): .insert
        case UInt8(ascii: "D"): .delete
        default: .update
        }
      return Change(
        file: GitFile(path: path, object: parts[3], mode: parts[1]), type: type)
    }

    private static func misread(_ bytes: [UInt8]) -> ToolError {
      let text = String(decoding: bytes, as: UTF8.self)
      return ToolError(.notFound, "git log printed what is no change: \"\(text)\".")
    }
  }
#endif
