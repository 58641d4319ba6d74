#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A text in quotes: what is not printable ASCII as escapes, a long one with its length instead of
/// its middle.
func printed(_ text: String) -> String {
  var quoted = "\""
  let scalars = Array(text.unicodeScalars)
  let shown = scalars.count > 80 ? Array(scalars[..<40]) : scalars
  for scalar in shown {
    switch scalar {
    case "\"", "\\": quoted += "\\\(scalar)"
    case " "..."~": quoted.unicodeScalars.append(scalar)
    default: quoted += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
    }
  }
  quoted += "\""
  return scalars.count > shown.count ? "\(quoted)… (\(text.utf8.count) bytes)" : quoted
}

/// Bytes: as text if they are that and short, otherwise the first of them in hexadecimal digits with
/// their number and a hash of them all.
func printed(_ data: Data) -> String {
  guard !data.isEmpty else { return "empty" }
  if data.count <= 60, data.allSatisfy({ (0x20...0x7E).contains($0) }) {
    return printed(String(decoding: data, as: UTF8.self))
  }
  let digits = data.prefix(16).map { byte in
    (byte < 16 ? "0" : "") + String(byte, radix: 16)
  }.joined()
  guard data.count > 16 else { return "<\(digits)>" }
  // FNV-1a.
  let hash = data.reduce(0xCBF2_9CE4_8422_2325 as UInt64) {
    ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3
  }
  return "<\(digits)… \(data.count) bytes, hash \(String(hash, radix: 16))>"
}

/// A change in one line.
func printed(_ change: ChangeRecord) -> String {
  var line = "\(printed(change.collection)) \(printed(change.id))"
  line += " \(printed(change.type)) at \(printed(change.hlcTimestamp))"
  line += " payload \(printed(change.payload))"
  if let key = change.authorPublicKey { line += " key \(printed(key))" }
  if let signature = change.signature { line += " signature \(printed(signature))" }
  return line
}

private func printed(_ type: MutationType) -> String {
  switch type.rawValue {
  case MutationType.insert.rawValue: "insert"
  case MutationType.update.rawValue: "update"
  case MutationType.delete.rawValue: "delete"
  default: "type \(type.rawValue)"
  }
}

/// What was expected and what was read, from shortly before the first difference on.
func descriptions(
  ofExpected expected: [ChangeRecord], actual: [ChangeRecord]
) -> (expected: String, actual: String) {
  let same = zip(expected, actual).prefix { $0.isIdentical(to: $1) }.count
  return (excerpt(of: expected, around: same), excerpt(of: actual, around: same))
}

private func excerpt(of changes: [ChangeRecord], around index: Int) -> String {
  guard !changes.isEmpty else { return "no changes" }
  var title = changes.count == 1 ? "1 change" : "\(changes.count) changes"
  let shown = max(0, index - 2)..<min(changes.count, index + 8)
  if shown.count < changes.count {
    title += ", shown from number \(shown.lowerBound + 1) on"
  }
  return ([title + ":"] + changes[shown].map { "  \(printed($0))" }).joined(separator: "\n")
}

extension AdapterConformance.Step: CustomStringConvertible {
  /// The call, and the changes that it is given in a line each.
  public var description: String {
    switch self {
    case .apply(let batch): "apply" + Self.lines(batch)
    case .applyOrRefuse(let batch): "apply, or refuse as a whole" + Self.lines(batch)
    case .refuse(let batch): "apply, to be refused" + Self.lines(batch)
    case .applyCancelled(let batch, nil):
      "apply in a task that is cancelled already" + Self.lines(batch)
    case .applyCancelled(let batch, let yields?):
      "apply in a task that is cancelled after \(yields) yields" + Self.lines(batch)
    case .applyConcurrently(let batches, let readers):
      "apply at the same time, beside \(readers) readers"
        + batches.map { "\n  a batch" + Self.lines($0, indentation: "    ") }.joined()
    case .read(let cursor, let limit):
      "read after \(cursor.map { printed($0) } ?? "nil"), "
        + "limit \(limit)"
    case .sweep(let limit): "read all pages, limit \(limit)"
    case .latest: "read the latest timestamp"
    case .reopen: "reopen"
    }
  }

  private static func lines(_ batch: [ChangeRecord], indentation: String = "  ") -> String {
    if batch.isEmpty { return " nothing" }
    return batch.map { "\n\(indentation)\(printed($0))" }.joined()
  }
}
