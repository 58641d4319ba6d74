import Foundation

/// Results as tables in Markdown, as JSON, and as a chart.
struct Report {
  private let results: Results
  private let targets: [Target]

  init(_ results: Results) {
    self.results = results
    targets = Target.all(results)
  }

  func write(to folder: String?) throws {
    print(markdown)
    guard let folder else { return }
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    let files = [
      ("results.md", markdown), ("chart.svg", Chart(results).svg),
      ("results.json", String(decoding: try encoder.encode(results), as: UTF8.self) + "\n"),
    ]
    for (name, content) in files {
      try Data(content.utf8).write(to: URL(fileURLWithPath: folder + "/" + name))
    }
  }

  private var markdown: String {
    """
    # Results

    \(remarks)

    \(head)

    ## Rates

    Medians of \(results.rounds) rounds. The ratio is that of AirDbLogStore to the best peer.

    \(rates)

    ## Targets

    Ratios are medians of the ratios of the rounds; the range is their least and greatest.

    \(verdicts)

    ## Costs of a record

    Of the operations above, by median: processor time of all threads in microseconds, allocations
    (calls of the allocator, by all libraries, in a round that is not timed), and what the system
    was made to write to the device, as a multiple of the bytes of the records' fields.

    \(costs)

    ## Times of single commits

    In microseconds, medians of the rounds. Below the time that passed, the processor time of the
    thread that commits.

    \(latencies)

    ## Memory and size

    The most anonymous memory above that of the process before it opened the store, in MB; and the
    bytes on disk of the closed store after it was left to its cleaning, in MB.

    \(memory)

    """
  }

  private var remarks: String {
    var lines: [String] = []
    if results.isQuick { lines.append("**A quick run: the times mean nothing.**") }
    if results.isLoaded {
      lines.append(
        "**Measured on a machine that was busy with other things: only the ratios say something.**")
    }
    lines.append(
      """
      \(Figures.short(Double(results.records))) records, payloads of about \(results.payloadBytes) \
      bytes, HLCs \(results.order.rawValue). After each workload every engine held the same records
      as a dictionary, by digest. Written by `Benchmarks/run`; what is measured, and how each engine
      is set up, is in the [README](../README.md).
      """)
    return lines.joined(separator: "\n\n")
  }

  private var head: String {
    let machine = results.machine
    let versions = results.measuredEngines.map { engine in
      engine == .airdb
        ? "AirDbLogStore at \(machine.commit)"
        : "\(engine.title) \(results.versions[engine.rawValue] ?? "")"
    }
    return table(
      ["", ""],
      [
        ["date", machine.date],
        ["machine", "\(machine.processor), \(machine.cores) cores, \(machine.memoryGiB) GiB"],
        ["system", "\(machine.system), \(machine.fileSystem)"],
        ["compiler", machine.swift],
        ["engines", versions.joined(separator: "; ")],
        [
          "load at start, end",
          Figures.fixed(machine.loadAtStart, 1) + ", " + Figures.fixed(machine.loadAtEnd, 1),
        ],
      ])
  }

  private var rates: String {
    let engines = results.measuredEngines
    let rows = results.workloads.map { workload in
      [workload.title, workload.unit]
        + (workload.isRaw
          ? [results.value(workload, nil).map(Figures.short) ?? "-"]
            + engines.dropFirst().map { _ in "" }
          : engines.map { results.value(workload, $0).map(Figures.short) ?? "-" })
        + [ratio(workload)]
    }
    return table(["workload", "unit"] + engines.map(\.title) + ["ratio"], rows)
  }

  private func ratio(_ workload: Workload) -> String {
    let peers = results.peers.compactMap { results.value(workload, $0) }
    guard let own = results.value(workload, .airdb),
      let best = workload.isTime ? peers.min() : peers.max()
    else { return "" }
    return Figures.fixed(own / best, 2)
  }

  private var verdicts: String {
    table(
      ["", "ratio", "range", "to", "target", ""],
      targets.map { target in
        [
          target.title, Figures.fixed(target.ratio, 2),
          Figures.fixed(target.range.lowerBound, 2) + " to "
            + Figures.fixed(target.range.upperBound, 2),
          target.basis, (target.isCeiling ? "at most " : "") + Figures.short(target.wanted),
          target.isMet ? "met" : "**missed**",
        ]
      })
  }

  private var costs: String {
    var rows: [[String]] = []
    for workload in results.workloads where !workload.isRaw && workload != .reopen {
      for (name, quantity) in [
        (
          "processor, us", { (m: Measurement) in m.cpuSeconds * 1e6 / Double(max(m.operations, 1)) }
        ),
        (
          "written, times",
          { $0.recordBytes > 0 ? Double($0.deviceBytes) / Double($0.recordBytes) : nil }
        ),
      ] as [(String, (Measurement) -> Double?)] {
        let values = results.measuredEngines.map { results.median(workload, $0, quantity) }
        guard values.contains(where: { $0 != nil }) else { continue }
        rows.append([workload.rawValue, name] + values.map { $0.map(Figures.short) ?? "-" })
      }
      let allocations = results.measuredEngines.map { engine in
        results.warmUp(workload, engine).flatMap { measurement in
          measurement.allocations.map { Double($0) / Double(max(measurement.operations, 1)) }
        }
      }
      if allocations.contains(where: { $0 != nil }) {
        rows.append(
          [workload.rawValue, "allocations"] + allocations.map { $0.map(Figures.short) ?? "-" })
      }
    }
    return table(["workload", "an operation"] + results.measuredEngines.map(\.title), rows)
  }

  private var latencies: String {
    var rows: [[String]] = []
    for workload in results.workloads {
      for engine in (results.measuredEngines.map { $0 } as [EngineKind?]) + [nil] {
        let quantities: [(Latency) -> Double] = [
          { $0.p50 }, { $0.p99 }, { $0.p999 }, { $0.maximum },
        ]
        for (name, times) in [
          ("", { (measurement: Measurement) in measurement.latency }),
          (", processor", { $0.threadTime }),
        ] {
          let values = quantities.map { quantity in
            results.median(workload, engine) { times($0).map(quantity) }
          }
          guard values.contains(where: { $0 != nil }) else { continue }
          rows.append(
            [workload.rawValue + name, engine?.title ?? "the file"]
              + values.map { $0.map(Figures.short) ?? "-" })
        }
      }
    }
    return table(["workload", "engine", "p50", "p99", "p99.9", "maximum"], rows)
  }

  private var memory: String {
    var rows: [[String]] = []
    for workload in results.workloads where !workload.isRaw {
      rows.append(
        ["memory, \(workload.rawValue)"]
          + results.measuredEngines.map { engine in
            results.median(workload, engine) { Double($0.peakAnonymousBytes) }
              .map(Figures.megabytes) ?? "-"
          })
    }
    for workload in [Workload.bulk, .update] where results.workloads.contains(workload) {
      rows.append(
        ["disk, \(workload.rawValue)"]
          + results.measuredEngines.map { engine in
            results.median(workload, engine) { $0.diskBytes.map { Double($0) } }
              .map(Figures.megabytes) ?? "-"
          })
    }
    return table([""] + results.measuredEngines.map(\.title), rows)
  }

  private func table(_ head: [String], _ rows: [[String]]) -> String {
    let lines = [head, head.map { _ in "---" }] + rows
    return lines.map { "| " + $0.joined(separator: " | ") + " |" }.joined(separator: "\n")
  }
}
