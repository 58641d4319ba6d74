/// Writes the timestamps of the checks.
struct SampleClock {
  let style: AdapterConformance.TimestampStyle
  let nodes: [String]

  init(_ options: AdapterConformance.Options) {
    style = options.timestamps
    nodes = options.nodes.isEmpty ? AdapterConformance.Options().nodes : options.nodes
  }

  /// The timestamp of a time in milliseconds, in the one spelling whose order by bytes is that of
  /// the comparator.
  ///
  /// - Parameters:
  ///   - time: 0 to 2,000,000.
  ///   - counter: 0 to 9,999.
  ///   - node: The number of a node.
  func text(_ time: Int, counter: Int = 0, node: Int = 0) -> String {
    "\(physical(time))-\(padded(counter, 4))-\(nodes[node % nodes.count])"
  }

  private func physical(_ time: Int) -> String {
    switch style {
    case .decimal: return String(1_700_000_000_000 + time)
    case .iso8601:
      let seconds = time / 1_000
      return "2023-11-14T22:\(padded(seconds / 60, 2)):\(padded(seconds % 60, 2))"
        + ".\(padded(time % 1_000, 3))Z"
    case .opaque: return "t\(padded(time, 10))"
    }
  }

  private func padded(_ number: Int, _ digits: Int) -> String {
    let text = String(number)
    return String(repeating: "0", count: max(0, digits - text.count)) + text
  }

  /// Texts that the comparator calls equal to ``text(_:counter:node:)``, that text first. An opaque
  /// timestamp has no other spelling.
  func spellings(_ time: Int, counter: Int = 0, node: Int = 0) -> [String] {
    let canonical = text(time, counter: counter, node: node)
    let name = nodes[node % nodes.count]
    let number = String(counter)
    switch style {
    case .decimal:
      let physical = physical(time)
      return [
        canonical, "0\(physical):\(number)_\(name)", "\(physical)_000000\(number):\(name)",
        "000\(physical)-\(number)-\(name)",
      ]
    case .iso8601:
      let instant = physical(time).dropLast()
      let short = time % 100 == 0 ? instant.dropLast(2) : instant
      return [
        canonical, "\(instant)000Z:\(number)_\(name)", "\(short)Z_000000\(number):\(name)",
        "\(instant)0Z-\(number)-\(name)",
      ]
    case .opaque: return [canonical]
    }
  }

  /// Timestamps, no two of them equal, whose order by text or by Unicode's rules is another than
  /// that of the comparator.
  var treacherous: [String] {
    let counters = ["9", "10", "f", "F0", "b", "Z", "00a", "zz", "100"]
    let nodes = ["a", "B", "a-1", "a:1", "aa", "e\u{301}", "\u{E9}", "z"]
    let physicals: [String]
    switch style {
    case .decimal:
      physicals = [
        "9999999999", "10000000000", "1700000000000", "00999999999999", "9223372036854775807",
        "0000000001",
      ]
    case .iso8601:
      physicals = [
        "2023-11-14T22:13:20Z", "2023-11-14T22:13:20.1Z", "2023-11-14T22:13:20.09Z",
        "2023-11-14T22:13:20.000001Z", "2023-11-14T22:13:20.11Z", "1970-01-01T00:00:00Z",
      ]
    case .opaque:
      return [
        "t", "tt", "tT", "t1", "t10", "t9", "t\u{E9}", "te\u{301}", "tz", "t z", "t\u{10FFFF}",
      ]
    }
    let first = physicals[0]
    return physicals.map { "\($0)-0001-n" }
      + counters.map { "\(first)-\($0)-n" } + nodes.map { "\(first)-0002-\($0)" }
      + ["\(first)-0003", "\(first)-0003-a"]
  }

  /// Texts that an adapter need not take for timestamps.
  var malformed: [String] {
    switch style {
    case .decimal, .iso8601:
      ["", "nonsense", "1700000000000", "1700000000000-0-", "2023-02-29T00:00:00Z-0-a"]
    case .opaque: [""]
    }
  }
}
