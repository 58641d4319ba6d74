import AirDbLogStore

/// How commits are printed: for people, or as JSON Lines for programs.
struct CommitLines {
  var isJson: Bool

  func line(_ commit: Commit) -> [UInt8] { isJson ? json(commit) : text(commit) }

  /// Where to go on another time.
  func end(_ position: Position?, isLast: Bool) -> [UInt8] {
    if isJson {
      let next = position.map { "\"\($0)\"" } ?? "null"
      return Array("{\"next\":\(next),\"isLast\":\(isLast)}\n".utf8)
    }
    guard let position else { return Array("There is no commit.\n".utf8) }
    return Array("\(isLast ? "The end; next" : "Next"): --after \(position)\n".utf8)
  }

  // MARK: For people

  private func text(_ commit: Commit) -> [UInt8] {
    let author = commit.author.isEmpty ? "no author" : "by \"\(commit.author)\""
    let date = Figures.date(commit.date)
    var lines = ["\(commit.position)  \(date)  \(author)"]
    for change in commit.changes {
      lines.append(
        "    \(Self.name(of: change.type))  \(change.hlcTimestamp)  \"\(change.key.collection)\""
          + "  \"\(change.key.id)\"")
    }
    // Each for itself: a line feed in a name is none of the output's.
    return lines.flatMap { Array(escapingControls($0).utf8) + [0x0A] }
  }

  private static func name(of type: MutationType) -> String {
    switch type {
    case .insert: "insert"
    case .update: "update"
    case .delete: "delete"
    default: "type \(type.rawValue)"
    }
  }

  // MARK: For programs

  private func json(_ commit: Commit) -> [UInt8] {
    var line = Array(
      "{\"position\":\"\(commit.position)\",\"sequence\":\(commit.position.sequence)".utf8)
    line += Array(",\"date\":\(Figures.milliseconds(commit.date)),\"author\":".utf8)
    JsonLine.append(commit.author, to: &line)
    line += Array(",\"changes\":[".utf8)
    for (index, change) in commit.changes.enumerated() {
      line += Array("\(index > 0 ? "," : ""){\"collection\":".utf8)
      JsonLine.append(change.key.collection, to: &line)
      line += Array(",\"id\":".utf8)
      JsonLine.append(change.key.id, to: &line)
      line += Array(",\"type\":\(change.type.rawValue),\"hlc\":".utf8)
      JsonLine.append(change.hlcTimestamp, to: &line)
      line.append(UInt8(ascii: "}"))
    }
    return line + Array("]}\n".utf8)
  }
}

/// What a position that does not fit means to whoever gave it.
func positionFailure(_ error: any Error) -> any Error {
  guard let error = error as? LogStoreError else { return error }
  switch error.code {
  case .foreignPosition, .positionBeyondEnd, .positionDiverged, .historyPurged:
    return ToolError(
      .refused, error.message, advice: "Without --after it begins at the start of the log.")
  default: return error
  }
}
