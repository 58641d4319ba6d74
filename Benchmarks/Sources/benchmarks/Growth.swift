import Foundation

/// How the engine fares as stores grow, with each order of timestamps; and with payloads of several
/// sizes.
struct Growth {
  private let options: Options
  private let sizes: [Int]
  private let folder: WorkFolder

  private static let workloads: [Workload] = [
    .bulk, .update, .redelivery, .sweep, .tail, .reads, .reopen,
  ]
  private static let payloads = [0, RecordSource.standardPayload, 4 << 10, 1 << 20]
  /// Of payloads altogether, where they are large.
  private static let payloadLimit = 1 << 30

  init(_ options: Options, _ sizes: [Int]) throws {
    self.options = options
    self.sizes = sizes.sorted()
    folder = try WorkFolder(options.work)
  }

  func run() throws {
    let machine = Machine.look(work: folder.path)
    var lines = [
      "# Growth", "",
      options.isLoaded
        ? "**Measured on a machine that was busy with other things.**" : "",
      "AirDbLogStore at \(machine.commit), \(machine.date), \(machine.processor), "
        + "\(machine.cores) cores. Medians of \(options.rounds) rounds. Rates in operations a "
        + "second, times in milliseconds, memory in MB above that before opening, and MB on disk.",
      "", "## Records and the order of timestamps", "",
    ]
    lines += head
    for order in HlcOrder.allCases {
      for size in sizes { lines.append(try row(order, size, RecordSource.standardPayload)) }
    }
    lines += ["", "## Payloads", ""] + head
    for payload in Self.payloads {
      let size = min(sizes[0], payload > 0 ? Self.payloadLimit / payload : .max)
      lines.append(try row(.ascending, size, payload))
    }
    let text = lines.joined(separator: "\n") + "\n"
    print(text)
    guard let output = options.output else { return }
    try FileManager.default.createDirectory(atPath: output, withIntermediateDirectories: true)
    try Data(text.utf8).write(to: URL(fileURLWithPath: output + "/growth.md"))
  }

  private var head: [String] {
    let columns =
      ["order", "records", "payload"] + Self.workloads.map(\.rawValue)
      + ["memory, reads", "disk"]
    return [
      "| " + columns.joined(separator: " | ") + " |",
      "| " + columns.map { _ in "---" }.joined(separator: " | ") + " |",
    ]
  }

  private func row(_ order: HlcOrder, _ size: Int, _ payload: Int) throws -> String {
    func task(_ workload: Workload, _ directory: String) -> Case {
      Case(
        workload: workload, engine: .airdb, directory: directory, records: size, order: order,
        payloadBytes: payload)
    }
    let base = try folder.directory("base")
    defer { folder.remove(base) }
    let fill = try folder.run(task(.fill, base))
    var cells = [order.rawValue, Figures.short(Double(size)), Figures.short(Double(payload))]
    var memory: [Double] = []
    for workload in Self.workloads {
      var values: [Double] = []
      for _ in 0..<options.rounds {
        let isShared = workload.base != nil && !workload.changesBase
        let directory =
          isShared
          ? base : try folder.directory("work", copyOf: workload.base == nil ? nil : base)
        let measurement = try folder.run(task(workload, directory))
        if !isShared { folder.remove(directory) }
        values.append(measurement.value)
        if workload == .reads { memory.append(Double(measurement.peakAnonymousBytes)) }
      }
      cells.append(median(values).map(Figures.short) ?? "-")
    }
    cells.append(median(memory).map(Figures.megabytes) ?? "-")
    cells.append(Figures.megabytes(Double(fill.diskBytes ?? 0)))
    Comparison.say(cells.joined(separator: " "))
    return "| " + cells.joined(separator: " | ") + " |"
  }
}
