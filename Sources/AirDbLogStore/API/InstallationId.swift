#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A random id of one installation of an app, kept in a file of its own: for
/// ``Configuration/clockNode``.
///
/// ```swift
/// var configuration = Configuration()
/// configuration.clockNode = try InstallationId(keptAt: support.path + "/installation").text
/// let store = try ChangeStore(at: support.path + "/store", configuration: configuration)
/// ```
///
/// The file must not come along when the store is restored or copied, since the copy would then stamp
/// with the same node as the original: it belongs outside of the store's directory, and on Apple platforms
/// it is excluded from backups. Where it is missing, a new id is made.
public struct InstallationId: Sendable, Hashable {
  /// 32 hexadecimal digits.
  public let text: String

  /// Reads the id, or makes one and keeps it.
  ///
  /// - Parameter path: The file. Its directory must exist.
  /// - Throws: ``LogStoreError`` with `alreadyExists` if something else is there, which is left alone;
  ///   `directoryNotFound` if its directory does not exist; `inputOutput`, `noSpace`, `tooManyOpenFiles`, `protectedDataUnavailable` if the file cannot be
  ///   read or written.
  public init(keptAt path: String) throws(LogStoreError) {
    try self.init(keptAt: path, on: SystemPlatform())
  }

  /// Reads the id, or makes one and keeps it. See ``init(keptAt:)-(String)``.
  public init(keptAt url: URL) throws(LogStoreError) {
    try self.init(keptAt: url.path)
  }

  package init(keptAt path: String, on platform: any Platform) throws(LogStoreError) {
    if let text = try Self.read(path, platform) {
      self.text = text
    } else {
      try Self.make(path, platform)
      // Not the one that was made: another process may have made one after it.
      guard let text = try Self.read(path, platform) else {
        throw LogStoreError(
          .inputOutput, "The installation id was removed while it was being made.", file: path)
      }
      self.text = text
    }
  }

  private static let byteCount = 16

  /// Nil if there is none.
  private static func read(
    _ path: String, _ platform: any Platform
  ) throws(LogStoreError) -> String? {
    // One more than there can be, to see that there is more.
    var bytes = [UInt8](repeating: 0, count: 2 * byteCount + 2)
    do throws(SystemError) {
      let file = try OpenFile(path, .read, on: platform)
      let count = try bytes.withUnsafeMutableBufferPointer { (buffer) throws(SystemError) in
        try file.readExactly(into: UnsafeMutableRawBufferPointer(buffer), at: 0)
      }
      bytes.removeLast(bytes.count - count)
    } catch {
      if error.isNotFound { return nil }
      throw LogStoreError(error, "read the installation id", file: path)
    }
    let digits = bytes.dropLast()
    guard bytes.last == UInt8(ascii: "\n"), digits.count == 2 * byteCount,
      digits.allSatisfy({ "0123456789abcdef".utf8.contains($0) })
    else {
      throw LogStoreError(
        .alreadyExists, "The file is there and is not an installation id.", file: path)
    }
    return String(decoding: digits, as: UTF8.self)
  }

  private static func make(_ path: String, _ platform: any Platform) throws(LogStoreError) {
    let directory = StoreDirectory(
      path: StoreDirectory(path: path, platform: platform).parent, platform: platform)
    var attributes = DirectoryAttributes()
    attributes.isExcludedFromBackup = true
    do throws(SystemError) {
      let text = try platform.randomHexadecimal(bytes: byteCount)
      let temporary = path + "." + text
      do throws(SystemError) {
        try withBytes(of: Array((text + "\n").utf8)) { (bytes) throws(SystemError) in
          try directory.writeSynced(bytes, to: temporary)
        }
        // Before anybody can find it: the attribute stays with the file.
        try platform.setAttributes(temporary, attributes)
        try directory.rename(temporary, to: path)
      } catch {
        try? directory.remove(temporary)
        throw error
      }
      try directory.synchronizeDirectory()
    } catch {
      if error.isNotFound {
        throw LogStoreError(
          .directoryNotFound, "The directory for the installation id does not exist.",
          file: directory.path, errno: error.errno)
      }
      throw LogStoreError(error, "keep an installation id", file: path)
    }
  }
}
