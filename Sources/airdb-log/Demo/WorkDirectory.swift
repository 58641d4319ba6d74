#if os(macOS) || os(Linux)
  import Foundation

  /// Where a demo works: a temporary directory that is removed, and for its stores one that is kept
  /// if that is asked for.
  struct WorkDirectory: Sendable {
    private let temporary: String
    /// The folder of the stores.
    private(set) var stores: String

    init() throws {
      let parent =
        ProcessInfo.processInfo.environment["TMPDIR"] ?? FileManager.default.temporaryDirectory.path
      let pattern = "\(parent)/airdb-log-demo-XXXXXX"
      var template = Array(pattern.utf8CString)
      guard mkdtemp(&template) != nil else {
        throw ToolError(
          .notFound, "Could not create a folder like \(pattern): \(systemErrorText()).",
          advice: "Set TMPDIR to a folder with space.")
      }
      temporary = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
      stores = temporary
    }

    /// Puts the stores into a folder that stays; it must be new or empty.
    mutating func keepStores(in folder: String) throws {
      stores = folder
      guard mkdir(folder, 0o777) != 0 else { return }
      guard errno == EEXIST else {
        throw ToolError(.notFound, "Could not create \(folder): \(systemErrorText()).")
      }
      guard let names = try? FileManager.default.contentsOfDirectory(atPath: folder), names.isEmpty
      else {
        throw ToolError(
          .refused, "\(folder) is not an empty folder.",
          advice: "Give --keep the path of a folder that is new or empty.")
      }
    }

    func store(_ name: String) -> String { "\(stores)/\(name)" }

    func scratchFile(_ name: String) -> String { "\(temporary)/\(name)" }

    func remove() {
      // Whoever still writes may add a file while this goes through the folder.
      for _ in 0..<3 where FileManager.default.fileExists(atPath: temporary) {
        try? FileManager.default.removeItem(atPath: temporary)
      }
    }
  }
#endif
