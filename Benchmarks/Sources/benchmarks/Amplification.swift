import AirDbLogStore
import CBenchmarkProbe
import Foundation

/// What cleaning costs and leaves: bytes written and bytes taken, for several patterns of changes, and
/// the pace of the cleaner and of what goes on beside it.
struct Amplification {
  private let options: Options
  private let folder: WorkFolder

  /// Changes to each record, on the average; the space is looked at during the second half.
  private static let turns = 5
  private static let batchSize = 100

  init(_ options: Options) throws {
    self.options = options
    folder = try WorkFolder(options.work)
  }

  func run() throws {
    let machine = Machine.look(work: folder.path)
    var lines = head(machine)
    for pattern in ChangePattern.allCases {
      if pattern == .stream, !FileManager.default.fileExists(atPath: options.stream) {
        Comparison.say("skipped: the stream, which is not at \(options.stream)")
        continue
      }
      let without = try measure(pattern, cleans: false)
      let figures = try measure(pattern, cleans: true)
      guard figures.digest == without.digest else {
        throw BenchmarkError("\(pattern.title): cleaning has changed what is in the store.")
      }
      lines.append(figures.row(pattern, without))
      Comparison.say(lines.last ?? "")
    }
    lines += ["", try CleanerPace(options, folder).report()]
    let text = lines.joined(separator: "\n") + "\n"
    print(text)
    guard let output = options.output else { return }
    try FileManager.default.createDirectory(atPath: output, withIntermediateDirectories: true)
    try Data(text.utf8).write(to: URL(fileURLWithPath: output + "/amplification.md"))
  }

  private func head(_ machine: Machine) -> [String] {
    let records = benchmarks.Figures.short(Double(options.records))
    let busy = options.isLoaded ? "**Measured on a machine that was busy with other things.**" : ""
    return [
      "# Amplification", "", busy,
      """
      AirDbLogStore at \(machine.commit), \(machine.date), \(machine.processor), \(machine.cores) \
      cores. \(records) records, commits of \(Self.batchSize), as fast as they go. Space and writes \
      are per byte of a compacted copy: of what is there, and of as many records as were written.
      """, "",
      """
      | changes | live MB | written | written per byte of fields | space, mean | most | idle \
      | speed, of that without cleaning |
      """,
      "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
  }

  private func measure(_ pattern: ChangePattern, cleans: Bool) throws -> Figures {
    let path = try folder.directory("store")
    defer { folder.remove(path) }
    var configuration = Configuration()
    configuration.durability = .processCrash
    if !cleans { configuration.cleaning = .off }
    let store = try ChangeStore(at: path, configuration: configuration)
    var maker = ChangeMaker(pattern)
    if pattern.isPrepared {
      for _ in 0..<(options.records / Self.batchSize) {
        try store.applyAndWait((0..<Self.batchSize).map { _ in maker.insert() })
      }
      try store.compact()
    }
    var stream = pattern == .stream ? try RecordedStream.batches(at: options.stream) : []
    let rounds =
      pattern == .stream ? stream.count : Self.turns * options.records / Self.batchSize
    stream.reverse()
    var figures = Figures()
    let before = Self.passedBytes
    let sampler = SpaceSampler(path)
    for round in 0..<rounds {
      let batch = stream.popLast() ?? (0..<Self.batchSize).map { _ in maker.change() }
      figures.changes += batch.count
      figures.fieldBytes += batch.reduce(0) { $0 + $1.byteCount }
      let start = ContinuousClock.now
      try store.applyAndWait(batch)
      figures.seconds += (ContinuousClock.now - start).seconds
      if round == rounds / 2 { sampler.begin() }
    }
    figures.space = sampler.end()
    if cleans { Self.waitUntilIdle(path) }
    figures.writtenBytes = Self.passedBytes - before
    figures.idleBytes = FileSizes.sum(of: path)
    figures.records = Int(try store.statistics().liveRecords)
    try store.close()
    let reopened = try ChangeStore(at: path, configuration: configuration)
    (figures.digest, figures.compactBytes) = try copy(reopened)
    try reopened.close()
    return figures
  }

  /// What a store holds, and the bytes of a compacted copy of it.
  private func copy(_ store: ChangeStore) throws -> (Digest, UInt64) {
    let path = try folder.directory("copy")
    defer { folder.remove(path) }
    var configuration = Configuration()
    configuration.durability = .processCrash
    configuration.cleaning = .off
    let copy = try ChangeStore(at: path, configuration: configuration)
    var digest = Digest()
    var cursor: ChangeCursor?
    while true {
      let page = try store.changes(after: cursor, limit: 5_000)
      for record in page.records { digest.add(record) }
      try copy.applyAndWait(page.records)
      cursor = page.next
      if page.isLast { break }
    }
    try copy.compact()
    try copy.close()
    return (digest, FileSizes.sum(of: path))
  }

  /// Waits until nothing has been written for longer than the cleaner waits to find a store idle.
  private static func waitUntilIdle(_ path: String) {
    var last = passedBytes
    var quiet = 0
    while quiet < 20 {
      Thread.sleep(forTimeInterval: 0.2)
      quiet = passedBytes == last ? quiet + 1 : 0
      last = passedBytes
    }
  }

  private static var passedBytes: UInt64 {
    var passed: UInt64 = 0
    var toDevice: UInt64 = 0
    probe_written(&passed, &toDevice)
    return passed
  }

  private struct Figures {
    var seconds = 0.0
    var changes = 0
    var fieldBytes: UInt64 = 0
    var writtenBytes: UInt64 = 0
    var space = SpaceSampler.Space()
    var idleBytes: UInt64 = 0
    var compactBytes: UInt64 = 0
    var records = 0
    var digest = Digest()

    func row(_ pattern: ChangePattern, _ without: Figures) -> String {
      let live = Double(compactBytes)
      let same = live / Double(digest.count) * Double(changes)
      let written = Double(writtenBytes)
      let speed = without.seconds / max(seconds, 1e-9)
      let cells = [
        pattern.title, benchmarks.Figures.megabytes(live),
        benchmarks.Figures.fixed(written / same, 2),
        benchmarks.Figures.fixed(written / Double(max(fieldBytes, 1)), 2),
        pattern.isSteady ? benchmarks.Figures.fixed(space.mean / live, 2) : "",
        pattern.isSteady ? benchmarks.Figures.fixed(space.most / live, 2) : "",
        benchmarks.Figures.fixed(Double(idleBytes) / live, 3),
        benchmarks.Figures.fixed(speed, 2),
      ]
      return "| " + cells.joined(separator: " | ") + " |"
    }
  }
}

/// The sizes of files, with what is reserved behind their content.
enum FileSizes {
  static func sum(of path: String) -> UInt64 {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    return names.reduce(0) { sum, name in
      let attributes = try? FileManager.default.attributesOfItem(atPath: path + "/" + name)
      return sum + ((attributes?[.size] as? UInt64) ?? 0)
    }
  }
}

/// Looks at the size of a store every 5 milliseconds.
private final class SpaceSampler: @unchecked Sendable {
  struct Space {
    var mean = 0.0
    var most = 0.0
  }

  // `@unchecked Sendable`: the variables are only touched under the lock.
  private let lock = NSLock()
  private var sizes: [Double] = []
  private var isOn = false
  private var isOver = false

  init(_ path: String) {
    Thread.detachNewThread { [self] in
      while !lock.withLock({ isOver }) {
        if lock.withLock({ isOn }) {
          let size = Double(FileSizes.sum(of: path))
          lock.withLock { sizes.append(size) }
        }
        Thread.sleep(forTimeInterval: 0.005)
      }
    }
  }

  func begin() { lock.withLock { isOn = true } }

  func end() -> Space {
    lock.withLock {
      isOver = true
      isOn = false
      guard let most = sizes.max() else { return Space() }
      return Space(mean: sizes.reduce(0, +) / Double(sizes.count), most: most)
    }
  }
}
