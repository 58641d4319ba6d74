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

    private var expected: [GitFile] = []
    /// The next in `expected` to be asked for.
    private var position = 0
    /// The next in `expected` to be requested.
    private var requested = 0
    private var unanswered = 0

    /// Requests that are sent before the first answer is read. They fit into any pipe, so that
    /// writing one never waits for the reader, and the two processes cannot wait for each other.
    private static let window = 32
    private static let largestPayload = 256 << 20

    init(_ repository: Repository) throws {
      self.repository = repository
      process = try repository.start(["cat-file", "--batch"], hasInput: true)
    }

    /// Announces files whose contents will be asked for, in this order.
    func expect(_ files: some Sequence<GitFile>) throws {
      expected.removeFirst(position)
      requested -= position
      position = 0
      expected.append(contentsOf: files)
      try request()
    }

    /// The content of the next file that was announced; a submodule's is its commit's id.
    func next() throws -> Data {
      let file = expected[position]
      position += 1
      if file.isSubmodule { return Data(file.object) }
      let content = try repository.reading(process, "cat-file") { try answer(for: file.object) }
      unanswered -= 1
      try request()
      return content
    }

    private func request() throws {
      while unanswered < Self.window, requested < expected.count {
        let file = expected[requested]
        requested += 1
        if file.isSubmodule { continue }
        guard try process.write(file.object + [0x0A]) else {
          throw repository.failure("cat-file", process.finish())
        }
        unanswered += 1
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
