import AirDbLogStore
import Foundation

extension Command {
  static let info = Command(
    name: "info", operands: "STORE", operandCount: 1...1,
    summary: "Prints figures about a store.",
    example: "airdb-log info notes.store"
  ) { arguments, _ in
    let opened = try arguments.openStore()
    let statistics = try opened.store.statistics(countingDeletions: true)
    let rows = [
      ("Store", opened.path),
      ("Identity", statistics.storeId),
      ("Format", "\(statistics.formatVersion)"),
      (
        "Timestamps",
        statistics.timestampFormat == .hybrid ? "hybrid" : "in the order of their UTF-8 bytes"
      ),
      (
        "Deletion types",
        statistics.deletionValues.sorted().map(String.init).joined(separator: ", ")
      ),
      ("Created", Figures.date(statistics.createdDate)),
      ("Last commit", Figures.date(statistics.lastCommitDate)),
      ("Latest timestamp", try opened.store.latestTimestamp ?? "none"),
      ("Generation", "\(Figures.count(statistics.generation)) of the manifest"),
      ("Sessions", "\(Figures.count(statistics.sessions)) that wrote"),
      ("Records", "\(Figures.count(statistics.records)) in the log"),
      (
        "Live",
        "\(Figures.count(statistics.liveRecords)) newest versions, among them "
          + Figures.count(statistics.liveDeletions ?? 0, "deletion", "deletions")
      ),
      (
        "Segments",
        "\(Figures.count(statistics.sealedSegments)) sealed, and an end of "
          + "\(Figures.count(statistics.unsealedRecords, "record", "records")), "
          + "\(Figures.count(statistics.unsealedBytes)) bytes, that is not"
      ),
    ]
    for (label, text) in rows { try printRow(label, text) }
    try Output.standard.printLine("")
    for (kind, files) in try StoreFiles(at: opened.path).byKind {
      let count = Figures.padded(Figures.count(files.count), 8)
      let bytes = Figures.padded(Figures.count(files.bytes), 18)
      try printRow(kind.rawValue, "\(count)\(bytes) bytes")
    }
    try printSpace(try opened.store.spaceReport())
  }

  /// The segments of the log and what their bytes are for.
  private static func printSpace(_ report: SpaceReport) throws {
    try Output.standard.printLine("")
    let columns = ["live", "superseded", "removable", "tombstones", "index"]
    let head = columns.map { Figures.padded($0, 15) }.joined()
    try printRow("Space in bytes", head)
    for segment in report.segments {
      let bytes = [
        segment.liveBytes, segment.supersededBytes, segment.removableBytes,
        segment.tombstoneBytes, segment.indexBytes,
      ]
      let row = bytes.map { Figures.padded(Figures.count($0), 15) }.joined()
      let kind = segment.isCompacted ? ", packed" : ""
      try printRow(" " + String(segment.number, radix: 16) + kind, row)
    }
    try printRow(" not sealed", Figures.padded(Figures.count(report.unsealedBytes), 15))
  }

  private static func printRow(_ label: String, _ text: String) throws {
    let space = String(repeating: " ", count: 18 - label.count)
    try Output.standard.printLine("\(label)\(space)\(text)")
  }
}

/// The files of a store's directory, by kind.
struct StoreFiles {
  enum Kind: String, CaseIterable {
    case segments = "Segments"
    case indexes = "Indexes"
    case liveness = "Liveness"
    case manifest = "Manifest"
    case consumers = "Consumers"
    case foreign = "Other files"
  }

  private(set) var byKind: [(kind: Kind, files: (count: Int, bytes: UInt64))]

  init(at path: String) throws {
    byKind = Kind.allCases.map { ($0, (0, 0)) }
    for name in try FileManager.default.contentsOfDirectory(atPath: path) {
      let attributes = try? FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")
      // A file may go between the listing and here.
      guard let bytes = attributes?[.size] as? NSNumber else { continue }
      let kind = Self.kind(of: name)
      guard let index = byKind.firstIndex(where: { $0.kind == kind }), name != "LOCK" else {
        continue
      }
      byKind[index].files.count += 1
      byKind[index].files.bytes += bytes.uint64Value
    }
  }

  subscript(kind: Kind) -> UInt64 { byKind.first { $0.kind == kind }?.files.bytes ?? 0 }

  /// All bytes of the store's own files.
  var total: UInt64 {
    byKind.reduce(0) { $1.kind == .foreign ? $0 : $0 + $1.files.bytes }
  }

  private static func kind(of name: String) -> Kind {
    if name == "MANIFEST" { return .manifest }
    if name == "CONSUMERS" { return .consumers }
    // The names of these are sixteen hexadecimal digits and a suffix.
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0].utf8.count == 16, UInt64(parts[0], radix: 16) != nil else {
      return .foreign
    }
    switch parts[1] {
    case "segment": return .segments
    case "index": return .indexes
    case "liveness": return .liveness
    default: return .foreign
    }
  }
}
