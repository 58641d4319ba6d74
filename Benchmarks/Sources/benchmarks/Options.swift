import Foundation

/// What the command line asks for.
struct Options {
  var records = 200_000
  var rounds = 5
  var engines: [EngineKind] = [.airdb] + EngineKind.peers
  var workloads = Workload.standard
  var level: Level?
  var order = HlcOrder.ascending
  var payloadBytes = RecordSource.standardPayload
  var output: String?
  var work: String?
  var stream = RecordedStream.defaultPath
  var repository = "."
  var isQuick = false
  var growth: [Int]?
  var isAboutAmplification = false
  var isLoaded = false
  var showsHelp = false

  static let help = """
    usage: Benchmarks/run [options]

      --records N          records of a store; 200000
      --rounds N           measured rounds, after one that warms up and counts; 5
      --engines A,B        of airdb, sqlite, lmdb, rocksdb; all that were built
      --workloads A,B      of \(Workload.standard.map(\.rawValue).joined(separator: ", "))
      --durability LEVEL   only the workloads of a level: normal, full
      --order ORDER        of timestamps: ascending, random, overlapping; for stores that are filled
      --payload BYTES      of a record; 240
      --output FOLDER      writes results.md, results.json and chart.svg there
      --work FOLDER        where stores are made and removed again; a temporary folder
      --stream FILE        recorded changes; AIRDB_BENCHMARK_STREAM, ../shared/data/tldr-history.jsonl.gz
      --repository FOLDER  whose git history is replayed; this one
      --quick              few records, one round: results are checked, times mean nothing
      --growth N,N         the engine alone, for each number of records, order and payload
      --amplification      bytes written and taken under several patterns of changes, and what cleaning costs
      --loaded             says in the results that the machine was busy with other things
    """

  init(_ arguments: [String]) throws {
    var rest = arguments[...]
    func value(_ option: String) throws -> String {
      guard let value = rest.popFirst() else { throw BenchmarkError("\(option) needs a value.") }
      return value
    }
    func number(_ option: String) throws -> Int {
      let text = try value(option)
      guard let number = Int(text), number >= 0 else {
        throw BenchmarkError("\(option) needs a number, not \(text).")
      }
      return number
    }
    func list<Item: RawRepresentable<String>>(_ option: String) throws -> [Item] {
      try value(option).split(separator: ",").map { name in
        guard let item = Item(rawValue: String(name)) else {
          throw BenchmarkError("\(option): there is no \(name).")
        }
        return item
      }
    }
    while let option = rest.popFirst() {
      switch option {
      case "--records": records = max(try number(option), 200)
      case "--rounds": rounds = max(try number(option), 1)
      case "--engines": engines = try list(option)
      case "--workloads": workloads = try list(option)
      case "--durability": level = try (list(option) as [Level]).first
      case "--order": order = try (list(option) as [HlcOrder]).first ?? .ascending
      case "--payload": payloadBytes = try number(option)
      case "--output": output = try value(option)
      case "--work": work = try value(option)
      case "--stream": stream = try value(option)
      case "--repository": repository = try value(option)
      case "--quick": isQuick = true
      case "--growth": growth = try value(option).split(separator: ",").compactMap { Int($0) }
      case "--amplification": isAboutAmplification = true
      case "--loaded": isLoaded = true
      case "--help", "-h": showsHelp = true
      default: throw BenchmarkError("There is no option \(option). See --help.")
      }
    }
    if isQuick {
      records = min(records, 4_000)
      rounds = 1
    }
    if let level { workloads.removeAll { $0.level != level } }
  }
}
