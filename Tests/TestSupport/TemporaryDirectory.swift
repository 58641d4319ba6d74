import AirDbLogStore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Runs `body` with the path of a new directory of its own, which is removed afterwards with all
/// that is in it.
package func withTemporaryDirectory<Result>(
  _ body: (_ path: String) throws -> Result
) throws -> Result {
  let path = try makeTemporaryDirectory()
  defer { try? removeDirectoryTree(path, on: SystemPlatform()) }
  return try body(path)
}

/// Runs `body` with the path of a new directory of its own, which is removed afterwards with all
/// that is in it.
package func withTemporaryDirectory<Result>(
  isolation: isolated (any Actor)? = #isolation,
  _ body: (_ path: String) async throws -> Result
) async throws -> Result {
  let path = try makeTemporaryDirectory()
  defer { try? removeDirectoryTree(path, on: SystemPlatform()) }
  return try await body(path)
}

private func makeTemporaryDirectory() throws(SystemError) -> String {
  let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
  var template = Array("\(parent)/airdb-log-XXXXXX".utf8CString)
  guard let path = mkdtemp(&template) else { throw SystemError(errno: errno, call: "mkdtemp") }
  return String(cString: path)
}
