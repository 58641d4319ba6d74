#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation

  /// Compares the live records of a store with the tree of a commit: the same paths with the same
  /// contents, and nothing else.
  struct TreeComparison {
    let repository: Repository
    let interruption: Interruption

    /// Contents are compared so many files at a time, which bounds neither memory nor time by the
    /// size of the tree.
    private static let pageSize = 256

    /// - Returns: The number of files.
    func run(_ store: ChangeStore, commit: String) throws -> Int {
      let progress = Progress("Comparing with git's tree")
      defer { progress.finish() }
      let live = try liveCount(store)
      let blobs = try BlobReader(repository)
      var differences = Differences()
      var count = 0
      do {
        try forEachPage(of: commit) { page in
          try interruption.check()
          try blobs.expect(page)
          for file in page {
            compare(try store.record(forKey: file.key), file, try blobs.next(), &differences)
          }
          count += page.count
          progress.show(Double(count) / Double(max(live, 1)))
        }
        try blobs.finish()
      } catch {
        blobs.stop()
        try interruption.check()
        throw error
      }
      // Every file has a record by now, or a difference; more records than files are too many.
      if live > count || differences.count > 0 {
        try findExtras(store, commit, &differences)
      }
      progress.finish()
      try differences.check("The store differs from the tree of \(commit)")
      return count
    }

    private func compare(
      _ record: ChangeRecord?, _ file: GitFile, _ content: Data, _ differences: inout Differences
    ) {
      guard let record, record.type != .delete else {
        return differences.add("missing in the store: \(file.key.id)")
      }
      if record.payload != content { differences.add("differs from git: \(file.key.id)") }
    }

    private func liveCount(_ store: ChangeStore) throws -> Int {
      var count = 0
      try store.forEachRecord { record in
        try interruption.check()
        if record.type != .delete { count += 1 }
      }
      return count
    }

    /// Looks for live records that git has no file for. Only now, since it takes the tree in memory.
    private func findExtras(
      _ store: ChangeStore, _ commit: String, _ differences: inout Differences
    ) throws {
      var keys = Set<RecordKey>()
      try forEachPage(of: commit) { page in keys.formUnion(page.lazy.map(\.key)) }
      try store.forEachRecord { record in
        let key = RecordKey(collection: record.collection, id: record.id)
        if record.type != .delete, !keys.contains(key) {
          differences.add("not in git: \(record.id)")
        }
      }
    }

    /// Pages of the files of a commit's tree.
    private func forEachPage(of commit: String, _ body: ([GitFile]) throws -> Void) throws {
      let process = try repository.start(["ls-tree", "-r", "-z", "--full-tree", commit])
      do {
        var page: [GitFile] = []
        while let entry = try repository.reading(
          process, "ls-tree", { try process.output.bytes(until: 0) })
        {
          page.append(try Self.file(entry))
          if page.count == Self.pageSize {
            try body(page)
            page = []
          }
        }
        if !page.isEmpty { try body(page) }
      } catch {
        process.stop()
        throw error
      }
      try repository.finish(process, "ls-tree")
    }

    /// `MODE TYPE OBJECT TAB PATH`.
    private static func file(_ entry: [UInt8]) throws -> GitFile {
      let parts = entry.split(separator: 0x09, maxSplits: 1)
      let fields = parts.first?.split(separator: 0x20) ?? []
      guard parts.count == 2, fields.count == 3 else {
        throw ToolError(
          .notFound, "git ls-tree printed \"\(String(decoding: entry, as: UTF8.self))\".")
      }
      return GitFile(path: Array(parts[1]), object: fields[2], mode: fields[0])
    }
  }

  extension ChangeStore {
    /// Calls `body` with the newest version of every record, by timestamp, page by page.
    func forEachRecord(_ body: (ChangeRecord) throws -> Void) throws {
      var cursor: ChangeCursor?
      while true {
        let page = try changes(after: cursor, limit: 256, byteLimit: 1 << 20)
        for record in page.records { try body(record) }
        if page.isLast { return }
        cursor = page.next
      }
    }
  }
#endif
