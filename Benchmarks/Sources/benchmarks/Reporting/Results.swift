import Foundation

/// All that was measured in a run.
struct Results: Encodable {
  var machine = Machine()
  var records: Int
  var rounds: Int
  var order: HlcOrder
  var payloadBytes: Int
  var isQuick: Bool
  /// Whether the machine was busy with other things.
  var isLoaded: Bool
  var versions: [String: String] = [:]
  /// By workload and engine, in the order of the rounds.
  private(set) var samples: [String: [String: [Measurement]]] = [:]
  /// Of the first round, which is not timed but counts allocations.
  private(set) var warmUps: [String: [String: Measurement]] = [:]
  private let engines: [EngineKind]
  private let work: String

  init(_ options: Options, engines: [EngineKind]) {
    records = options.records
    rounds = options.rounds
    order = options.order
    payloadBytes = options.payloadBytes
    isQuick = options.isQuick
    isLoaded = options.isLoaded
    work = options.work ?? FileManager.default.temporaryDirectory.path
    self.engines = engines
  }

  private enum CodingKeys: CodingKey {
    case machine, records, rounds, order, payloadBytes, isQuick, isLoaded, versions, samples
    case warmUps
  }

  mutating func start() { machine = Machine.look(work: work) }
  mutating func finish() { machine.loadAtEnd = Machine.load }

  mutating func add(_ measurement: Measurement, isWarmUp: Bool) {
    let workload = measurement.workload.rawValue
    let engine = measurement.engine?.rawValue ?? "raw"
    if let engine = measurement.engine { versions[engine.rawValue] = measurement.version }
    if isWarmUp {
      warmUps[workload, default: [:]][engine] = measurement
    } else {
      samples[workload, default: [:]][engine, default: []].append(measurement)
    }
  }

  // MARK: Looking at them

  var measuredEngines: [EngineKind] { engines }
  var peers: [EngineKind] { engines.filter { $0 != .airdb } }
  var workloads: [Workload] { Workload.standard.filter { samples[$0.rawValue] != nil } }

  func measurements(_ workload: Workload, _ engine: EngineKind?) -> [Measurement] {
    samples[workload.rawValue]?[engine?.rawValue ?? "raw"] ?? []
  }

  func warmUp(_ workload: Workload, _ engine: EngineKind?) -> Measurement? {
    let engine = engine?.rawValue ?? "raw"
    return warmUps[workload.rawValue]?[engine] ?? samples[workload.rawValue]?[engine]?.last
  }

  /// The median of a quantity over the rounds.
  func median(
    _ workload: Workload, _ engine: EngineKind?, _ quantity: (Measurement) -> Double?
  ) -> Double? {
    benchmarks.median(measurements(workload, engine).compactMap(quantity))
  }

  func value(_ workload: Workload, _ engine: EngineKind?) -> Double? {
    median(workload, engine) { $0.value }
  }

  /// One line for somebody who waits.
  func line(_ workload: Workload, isWarmUp: Bool) -> String {
    let all = (engines.map { $0 } as [EngineKind?]) + [nil]
    let values = all.compactMap { engine -> String? in
      let last = isWarmUp ? warmUp(workload, engine) : measurements(workload, engine).last
      return last.map { "\(engine?.rawValue ?? "raw") \(Figures.short($0.value))" }
    }
    return values.joined(separator: ", ") + " " + workload.unit
  }
}

/// Numbers for people.
enum Figures {
  static func short(_ value: Double) -> String {
    switch abs(value) {
    case 10_000_000...: "\(Int((value / 1_000_000).rounded()))M"
    case 1_000_000...: fixed(value / 1_000_000, 1) + "M"
    case 10_000...: "\(Int((value / 1_000).rounded()))k"
    case 1_000...: fixed(value / 1_000, 1) + "k"
    case 100...: "\(Int(value.rounded()))"
    case 10...: fixed(value, 1)
    default: fixed(value, 2)
    }
  }

  static func fixed(_ value: Double, _ digits: Int) -> String {
    let scale = [1.0, 10, 100, 1_000][digits]
    let number = Int((abs(value) * scale).rounded())
    let whole = "\(number / Int(scale))"
    let sign = value < 0 && number > 0 ? "-" : ""
    guard digits > 0 else { return sign + whole }
    let part = "\(number % Int(scale))"
    return sign + whole + "." + String(repeating: "0", count: digits - part.count) + part
  }

  static func megabytes(_ bytes: Double) -> String { short(bytes / 1_000_000) }
}
