import AirDbLogStore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Everything that a process could have changed in a directory: names, bytes, sizes, and times of
/// last modification, those of the directory too.
package struct DirectoryContents: Equatable, Sendable {
  package struct File: Equatable, Sendable {
    package let bytes: [UInt8]
    package let inode: UInt64
    /// Nanoseconds since 1970.
    package let modified: Int64
  }

  package let files: [String: File]
  package let modified: Int64

  package init(_ path: String) throws {
    let platform = SystemPlatform()
    var files: [String: File] = [:]
    for name in try platform.list(path) {
      files[name] = try Self.file(path + "/" + name)
    }
    self.files = files
    modified = try Self.status(path).modified
  }

  package static func file(_ path: String) throws -> File {
    let (inode, modified) = try status(path)
    return File(bytes: try bytes(path), inode: inode, modified: modified)
  }

  /// The bytes of a file.
  package static func bytes(_ path: String) throws -> [UInt8] {
    let file = try OpenFile(path, .read, on: SystemPlatform())
    var bytes = [UInt8](repeating: 0, count: Int(try file.size()))
    let count = try bytes.withUnsafeMutableBytes { try file.readExactly(into: $0, at: 0) }
    bytes.removeLast(bytes.count - count)
    return bytes
  }

  private static func status(_ path: String) throws -> (inode: UInt64, modified: Int64) {
    var status = stat()
    guard lstat(path, &status) == 0 else { throw SystemError(errno: errno, call: "lstat") }
    #if canImport(Darwin)
      let time = status.st_mtimespec
    #else
      let time = status.st_mtim
    #endif
    return (UInt64(status.st_ino), Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }

  /// The names of files whose presence or content differs from another look at the directory.
  package func changes(since other: DirectoryContents) -> [String] {
    let names = Set(files.keys).union(other.files.keys)
    return names.filter { files[$0] != other.files[$0] }.sorted()
  }
}
