/// Rates of all engines as multiples of the best peer's, as a picture.
struct Chart {
  private let results: Results

  init(_ results: Results) { self.results = results }

  private static let colors: [EngineKind: String] = [
    .airdb: "#c2410c", .sqlite: "#1d4e89", .lmdb: "#5b8e7d", .rocksdb: "#8d99ae",
  ]
  private let left = 330.0
  private let width = 520.0
  private let bar = 11.0
  private let gap = 14.0
  private let top = 84.0

  /// From 1/16 to 16 times, by powers of two.
  private func x(_ ratio: Double) -> Double {
    left + width * (log2(min(max(ratio, 0.0625), 16)) + 4) / 8
  }

  private func log2(_ value: Double) -> Double {
    // The number of halvings and doublings, and between them by a short series of squarings.
    var value = value
    var result = 0.0
    while value >= 2 { (value, result) = (value / 2, result + 1) }
    while value < 1 { (value, result) = (value * 2, result - 1) }
    var part = 0.5
    for _ in 0..<20 {
      value *= value
      if value >= 2 { (value, result) = (value / 2, result + part) }
      part /= 2
    }
    return result
  }

  var svg: String {
    let engines = results.measuredEngines
    let workloads = results.workloads.filter { workload in
      results.peers.contains { results.value(workload, $0) != nil }
    }
    let group = Double(engines.count) * bar + gap
    let height = top + Double(workloads.count) * group + 40
    var lines = [
      """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(number(left + width + 70)) \
      \(number(height))" font-family="sans-serif" font-size="12">
      """,
      #"<rect width="100%" height="100%" fill="white"/>"#,
      text(20, 26, "Speed as a multiple of the best peer's", size: 17, weight: "bold"),
      text(
        20, 46,
        "\(Figures.short(Double(results.records))) records, medians of \(results.rounds) rounds, "
          + "logarithmic; longer is faster. The black mark is the target."
          + (results.isLoaded ? " Measured on a busy machine." : "")),
    ]
    for (index, engine) in engines.enumerated() {
      let start = 20 + Double(index) * 140
      lines.append(rectangle(start, 58, 12, 12, Self.colors[engine] ?? "black"))
      lines.append(text(start + 18, 68, engine.title))
    }
    for power in -4...4 {
      let ratio = power < 0 ? 1 / Double(1 << -power) : Double(1 << power)
      let place = x(ratio)
      lines.append(
        """
        <line x1="\(number(place))" y1="\(number(top - 4))" x2="\(number(place))" \
        y2="\(number(height - 32))" stroke="\(power == 0 ? "#666" : "#ddd")"/>
        """)
      lines.append(
        text(
          place, height - 16, power < 0 ? "1/\(1 << -power)" : "\(1 << power)", anchor: "middle"))
    }
    for (row, workload) in workloads.enumerated() {
      lines += bars(workload, engines, at: top + Double(row) * group)
    }
    return (lines + ["</svg>", ""]).joined(separator: "\n")
  }

  private func bars(_ workload: Workload, _ engines: [EngineKind], at y: Double) -> [String] {
    var lines = [
      text(left - 10, y + Double(engines.count) * bar / 2 + 4, workload.title, anchor: "end")
    ]
    let peers = results.peers.compactMap { results.value(workload, $0) }
    guard let best = workload.isTime ? peers.min() : peers.max() else { return lines }
    for (index, engine) in engines.enumerated() {
      guard let value = results.value(workload, engine) else { continue }
      let ratio = workload.isTime ? best / value : value / best
      let place = y + Double(index) * bar
      let end = x(ratio)
      lines.append(
        rectangle(left, place, max(end - left, 1), bar - 1, Self.colors[engine] ?? "black"))
      lines.append(text(end + 4, place + bar - 2, Figures.fixed(ratio, 2), size: 10))
    }
    if let wanted = Target.rateOfBestPeer(workload) {
      let place = x(wanted)
      lines.append(
        """
        <line x1="\(number(place))" y1="\(number(y - 2))" x2="\(number(place))" \
        y2="\(number(y + bar + 1))" stroke="black" stroke-width="2.5"/>
        """)
    }
    return lines
  }

  private func rectangle(
    _ x: Double, _ y: Double, _ width: Double, _ height: Double, _ color: String
  ) -> String {
    """
    <rect x="\(number(x))" y="\(number(y))" width="\(number(width))" \
    height="\(number(height))" fill="\(color)"/>
    """
  }

  private func text(
    _ x: Double, _ y: Double, _ content: String, size: Int = 12, weight: String = "normal",
    anchor: String = "start"
  ) -> String {
    """
    <text x="\(number(x))" y="\(number(y))" font-size="\(size)" font-weight="\(weight)" \
    text-anchor="\(anchor)">\(content)</text>
    """
  }

  private func number(_ value: Double) -> String { Figures.fixed(value, 1) }
}
