#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation

  /// Reads the contents of many files through one git process.
  final class BlobReader {
    /// Contents that this clone does not have, or that are larger than a payload may be; their ids
    /// stand in for them.
    private(set) var standIns = 0
    private let repository: Repository
    private let process: ChildProcess

    /// Requests that are sent before the first answer is read. They fit into any pipe, so that
    /// writing one never waits for the reader, and the two processes cannot wait for each other.
    private static let window = 32
    private static let largestPayload = 256 << 20

    init(_ repository: Repository) throws {
      self.repository = repository
      process = try repository.start(["cat-file", "--batch"], hasInput: true)
    }

    /// Calls `body` with the content of each file, in order; a submodule's is its commit's id.
    func read(_ files: [GitFile], _ body: (GitFile, Data) throws -> Void) throws {
      let blobs = files.lazy.filter { !$0.isSubmodule }
      var requests = blobs.makeIterator()
      for _ in 0..<Self.window { try request(requests.next()) }
      for file in files {
        if file.isSubmodule {
          try body(file, Data(file.object))
        } else {
          let content = try repository.reading(process, "cat-file") {
            try answer(for: file.object)
          }
          try body(file, content)
          try request(requests.next())
        }
      }
    }

    private func request(_ file: GitFile?) throws {
      guard let file else { return }
      guard try process.write(file.object + [0x0A]) else {
        throw repository.failure("cat-file", process.finish())
      }
    }

    /// `ID blob SIZE`, the content and a line break; or `ID missing`.
    private func answer(for object: [UInt8]) throws -> Data {
      guard let line = try process.output.bytes(until: 0x0A) else { throw UnexpectedEnd() }
      let parts = line.split(separator: 0x20)
      guard let id = parts.first, id.elementsEqual(object) else { throw misread(line) }
      if parts.last?.elementsEqual("missing".utf8) == true {
        standIns += 1
        return Data(object)
      }
      guard parts.count == 3, let size = Int(String(decoding: parts[2], as: UTF8.self)), size >= 0
      else { throw misread(line) }
      let content: Data
      if size <= Self.largestPayload {
        content = try process.output.data(count: size)
      } else {
        try process.output.skip(size)
        standIns += 1
        content = Data(object)
      }
      try process.output.skip(1)
      return content
    }

    private func misread(_ line: [UInt8]) -> ToolError {
      ToolError(
        .notFound, "git cat-file answered \"\(String(decoding: line, as: UTF8.self))\".")
    }

    /// Ends it in good order.
    func finish() throws { try repository.finish(process, "cat-file") }

    func stop() { process.stop() }
  }
#endif
