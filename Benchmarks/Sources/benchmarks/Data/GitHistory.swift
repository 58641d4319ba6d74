import AirDbLogStore
import Foundation

/// The history of a git repository as batches: a commit is one, a changed file a record.
///
/// As the tool's demonstration replays it: along first parents, with stamps that increase. The
/// beginning of the history is read into memory, up to a number of records.
enum GitHistory {
  private struct Change {
    var commit: Int
    var path: String
    var object: Data
    var type: MutationType
    var hlc: String
  }

  static func batches(of repository: String, limit: Int) throws -> [[ChangeRecord]] {
    let changes = try changes(of: repository, limit: limit)
    var contents = try contents(of: changes, repository)[...]
    var batches: [[ChangeRecord]] = []
    var commit: Int?
    for change in changes {
      if change.commit != commit { batches.append([]) }
      commit = change.commit
      let payload = change.type == .delete ? Data() : contents.removeFirst()
      let top = change.path.utf8.firstIndex(of: UInt8(ascii: "/"))
        .map { String(change.path[..<$0]) }
      batches[batches.count - 1].append(
        ChangeRecord(
          id: change.path, collection: top ?? ".", type: change.type, payload: payload,
          hlcTimestamp: change.hlc))
    }
    return batches
  }

  private static func changes(of repository: String, limit: Int) throws -> [Change] {
    let log = try ChildOutput.of([
      "git", "--no-replace-objects", "-C", repository, "-c", "log.showRoot=true",
      "-c", "diff.relative=false", "log", "--reverse", "--first-parent", "-m", "--raw", "-z",
      "--no-abbrev", "--no-renames", "--diff-filter=AMDT", "--format=commit %ct %an", "HEAD",
    ])
    var changes: [Change] = []
    var commit = 0
    var milliseconds = 0
    var counter = 0
    var node: UInt64 = 0
    // A header, then of each change its description and its path.
    var fields = log.split(separator: 0).makeIterator()
    while changes.count < limit, let field = fields.next() {
      let text = String(decoding: field.drop { $0 == 0x0A }, as: UTF8.self)
      if text.hasPrefix("commit ") {
        let parts = text.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        commit += 1
        let now = (Int(parts[1]) ?? 0) * 1_000
        (milliseconds, counter) = now > milliseconds ? (now, -1) : (milliseconds, counter)
        var hash = Fnv()
        hash.add(String(parts[2]))
        node = hash.finish()
        continue
      }
      let parts = text.dropFirst().split(separator: " ")
      guard parts.count == 5, let path = fields.next() else {
        throw BenchmarkError("git log printed what is no change: \(text)")
      }
      // A submodule is a commit of another repository, which has no content here.
      if parts[0] == "160000" || parts[1] == "160000" { continue }
      counter += 1
      if counter > 0xFFFF { (milliseconds, counter) = (milliseconds + 1, 0) }
      let type: MutationType =
        parts[4] == "A" ? .insert : parts[4] == "D" ? .delete : .update
      changes.append(
        Change(
          commit: commit, path: String(decoding: path, as: UTF8.self),
          object: Data(parts[3].utf8), type: type,
          hlc: hlc(milliseconds: milliseconds, counter: counter, node: node)))
    }
    return changes
  }

  private static func hlc(milliseconds: Int, counter: Int, node: UInt64) -> String {
    func padded(_ text: String, _ count: Int) -> String {
      String(repeating: "0", count: max(0, count - text.utf8.count)) + text
    }
    return padded(String(milliseconds), 13) + "-" + padded(String(counter, radix: 16), 4) + "-"
      + padded(String(node, radix: 16), 16)
  }

  /// The contents of all changes that have one, in order.
  private static func contents(of changes: [Change], _ repository: String) throws -> [Data] {
    var request = Data()
    for change in changes where change.type != .delete {
      request.append(change.object)
      request.append(0x0A)
    }
    let answer = try ChildOutput.of(
      ["git", "--no-replace-objects", "-C", repository, "cat-file", "--batch"], input: request)
    var contents: [Data] = []
    var rest = answer[...]
    while let end = rest.firstIndex(of: 0x0A) {
      // `ID blob SIZE`, the content and a line break; or `ID missing`, in a partial clone.
      let parts = rest[..<end].split(separator: 0x20)
      rest = rest[(end + 1)...]
      guard parts.count == 3, let size = Int(String(decoding: parts[2], as: UTF8.self)) else {
        contents.append(Data(parts.first ?? Data()))
        continue
      }
      contents.append(Data(rest.prefix(size)))
      rest = rest.dropFirst(size + 1)
    }
    return contents
  }
}
