import AirDbLogStore
import CBenchmarkProbe
import Foundation

/// Runs one case in this process.
struct Worker {
  let task: Case
  let source: RecordSource

  /// Records that are made before a part is timed; more take several parts, so that their memory is
  /// bounded.
  private static let chunk = 200_000

  init(_ task: Case) {
    self.task = task
    // Large ones, so that segments are full soon though every commit is synced.
    source = RecordSource(
      seed: task.seed, payloadBytes: task.workload == .stallsFull ? 4 << 10 : task.payloadBytes)
  }

  func run() async throws -> Measurement {
    var result = Measurement(workload: task.workload, engine: task.engine)
    if task.workload.isRaw {
      try RawBaseline.run(task, &result)
    } else {
      try await measure(&result)
    }
    return result
  }

  private func measure(_ result: inout Measurement) async throws {
    let isReference = task.engine == .reference
    switch task.workload {
    case .rawPreallocated, .rawGrowing: break
    case .commitsFullAsync where isReference:
      try apply(batchSize: 1, count: commitCount, &result, newRecord())
    case .groupThreads where isReference, .groupTasks where isReference:
      try apply(batchSize: 1, count: Self.writers * commitsOfAWriter, &result, newRecord())
    case .bulk: try apply(batchSize: 1_000, count: task.records, &result, newRecord())
    case .fill: try apply(batchSize: 1_000, count: task.records, &result, newRecord())
    case .fillRandom:
      try apply(batchSize: 1_000, count: task.records, &result, newRecord(order: .random))
    case .commitsFull, .commitsNormal:
      try apply(batchSize: 1, count: commitCount, timesEach: true, &result, newRecord())
    case .stallsFull:
      try apply(
        batchSize: 1, count: max(task.records / 5, 10), timesEach: true, &result, newRecord())
    case .stallsNormal, .stallsBatches:
      // Several segments.
      try apply(
        batchSize: task.workload == .stallsBatches ? 100 : 1, count: 2 * task.records,
        timesEach: true, &result, newRecord(count: 2 * task.records))
    case .stallsCleaning:
      try apply(
        batchSize: 1, count: 2 * task.records, timesEach: true, &result, rewrittenRecord())
    case .commitsFullAsync: try await commitAsynchronously(&result)
    case .groupThreads: try commitOnThreads(&result)
    case .groupTasks: try await commitInTasks(&result)
    case .update:
      try apply(batchSize: 100, count: task.records / 2, &result, updatedRecord())
    case .merge: try apply(batchSize: 200, count: task.records, &result, mergedRecord())
    case .redelivery:
      try apply(batchSize: 500, count: task.records, settles: false, &result, newRecord())
    case .stream:
      try apply(RecordedStream.batches(at: task.input ?? ""), &result)
    case .git:
      try apply(GitHistory.batches(of: task.input ?? "", limit: task.records), &result)
    case .sweep, .sweepRandom: try sweep(&result)
    case .tail: try poll(&result)
    case .latest: try latest(&result)
    case .reads: try read(&result)
    case .reopen: try reopen(&result)
    }
  }

  private func open() throws -> any StorageEngine {
    guard let kind = task.engine else { throw BenchmarkError("A workload without an engine.") }
    let engine = try kind.open(at: task.directory, level: task.workload.level)
    if kind == .reference, let base = task.workload.base {
      // It has no file that was filled before.
      let make = newRecord(order: base == .fillRandom ? .random : nil)
      for number in 0..<task.records { try engine.apply([make(number)]) }
    }
    return engine
  }

  /// Ends a run: the store is looked at, closed, and weighed.
  private func finish(
    _ engine: any StorageEngine, _ meter: Meter, _ result: inout Measurement,
    settles: Bool = true, isRead: Bool = false
  ) throws {
    result.version = engine.version
    if task.engine == .reference {
      if !isRead { result.digest = try engine.digest() }
      return
    }
    if !isRead {
      try meter.closing { try engine.close() }
      meter.finish(&result)
      let engine = try open()
      if settles { try engine.settle() }
      result.digest = try engine.digest()
      try engine.close()
    } else {
      meter.finish(&result)
      try engine.close()
    }
    result.diskBytes = DirectorySize.bytes(of: task.directory)
  }
}

// MARK: - Writing

extension Worker {
  private typealias Make = (Int) -> ChangeRecord

  private var commitCount: Int {
    task.workload.level == .full ? max(task.records / 50, 10) : max(task.records / 2, 10)
  }

  /// New records, in an order of timestamps.
  private func newRecord(count: Int? = nil, order: HlcOrder? = nil) -> Make {
    let positions = RecordSource.positions(
      count: count ?? task.records, order: order ?? task.order, seed: task.seed)
    return { [source] number in
      source.record(key: number, version: 0, position: positions[number])
    }
  }

  /// Every other record is a newer version of one that is there.
  private func updatedRecord() -> Make {
    let count = task.records
    let last = RecordSource.positions(count: count, order: task.order, seed: task.seed).max() ?? 0
    var random = SeededGenerator(task.seed ^ 0xAB)
    let keys = (0..<(count / 2)).map { $0 % 2 == 0 ? random.number(below: count) : count + $0 }
    return { [source] number in
      source.record(
        key: keys[number], version: number % 2 == 0 ? number + 1 : 0, position: last + 1 + number)
    }
  }

  /// Newer and newer versions of a few keys.
  private func rewrittenRecord() -> Make {
    let count = max(task.records / 8, 1)
    return { [source] number in
      source.record(key: number % count, version: number + 1, position: number)
    }
  }

  /// Eight nodes that write the same keys, one batch after the other, with clocks that differ.
  private func mergedRecord() -> Make {
    let count = task.records
    let distance = 10 * 60 * 1_000 * 4 / 8
    var random = SeededGenerator(task.seed ^ 0xCD)
    let keys = (0..<count).map { _ in random.number(below: max(count / 2, 1)) }
    return { [source] number in
      let node = number / 200 % 8
      return source.record(
        key: keys[number], version: number + 1, position: number * 40 + node * (distance + 1),
        node: node)
    }
  }

  private func apply(
    batchSize: Int, count: Int, timesEach: Bool = false, settles: Bool = true,
    _ result: inout Measurement, _ make: Make
  ) throws {
    // The first part is made before anything is measured.
    var batches = self.batches(0..<min(count, Self.chunk), size: batchSize, make)
    let meter = Meter(countsAllocations: task.countsAllocations)
    let engine = try open()
    var start = 0
    while start < count {
      for batch in batches { result.recordBytes += batch.reduce(0) { $0 + $1.byteCount } }
      if timesEach {
        try meter.timed {
          for (number, batch) in batches.enumerated() {
            // What a session does once is not among the times.
            if start == 0, number == 0 {
              try engine.apply(batch)
            } else {
              try meter.operation { try engine.apply(batch) }
            }
          }
        }
      } else {
        try meter.timed { for batch in batches { try engine.apply(batch) } }
      }
      start += Self.chunk
      if start < count {
        batches = self.batches(start..<min(count, start + Self.chunk), size: batchSize, make)
      }
    }
    result.operations = count
    try finish(engine, meter, &result, settles: settles)
  }

  private func apply(_ batches: [[ChangeRecord]], _ result: inout Measurement) throws {
    let meter = Meter(countsAllocations: task.countsAllocations)
    let engine = try open()
    try meter.timed { for batch in batches { try engine.apply(batch) } }
    for batch in batches {
      result.operations += batch.count
      result.recordBytes += batch.reduce(0) { $0 + $1.byteCount }
    }
    try finish(engine, meter, &result)
  }

  private func batches(_ range: Range<Int>, size: Int, _ make: Make) -> [[ChangeRecord]] {
    stride(from: range.lowerBound, to: range.upperBound, by: size).map { start in
      (start..<min(start + size, range.upperBound)).map(make)
    }
  }

  private var store: ChangeStore {
    get throws {
      var configuration = Configuration()
      configuration.durability = .powerLoss
      return try ChangeStore(at: task.directory, configuration: configuration)
    }
  }

  private func commitAsynchronously(_ result: inout Measurement) async throws {
    let batches = self.batches(0..<commitCount, size: 1, newRecord())
    let meter = Meter(countsAllocations: task.countsAllocations)
    let store = try store
    await meter.timedTasks {
      for batch in batches {
        let start = ContinuousClock.now
        do { try await store.apply(batch) } catch { break }
        meter.add(ContinuousClock.now - start)
      }
    }
    try finishOwn(store, meter, batches.count, &result)
  }

  private static let writers = 16
  private var commitsOfAWriter: Int { max(task.records / 100, 10) }

  private func groups() -> [[[ChangeRecord]]] {
    let count = commitsOfAWriter
    let make = newRecord()
    return (0..<Self.writers).map { writer in
      batches((writer * count)..<((writer + 1) * count), size: 1, make)
    }
  }

  private func commitOnThreads(_ result: inout Measurement) throws {
    let groups = groups()
    let meter = Meter(countsAllocations: task.countsAllocations)
    let store = try store
    let durations = DurationList()
    meter.timed {
      let group = DispatchGroup()
      for batches in groups {
        group.enter()
        Thread.detachNewThread {
          var own: [Duration] = []
          for batch in batches {
            let start = ContinuousClock.now
            guard (try? store.applyAndWait(batch)) != nil else { break }
            own.append(ContinuousClock.now - start)
          }
          durations.append(own)
          group.leave()
        }
      }
      group.wait()
    }
    meter.add(durations.all)
    try finishOwn(store, meter, Self.writers * commitsOfAWriter, &result)
  }

  private func commitInTasks(_ result: inout Measurement) async throws {
    let groups = groups()
    let meter = Meter(countsAllocations: task.countsAllocations)
    let store = try store
    let durations = DurationList()
    await meter.timedTasks {
      await withTaskGroup(of: Void.self) { group in
        for batches in groups {
          group.addTask {
            var own: [Duration] = []
            for batch in batches {
              let start = ContinuousClock.now
              guard (try? await store.apply(batch)) != nil else { break }
              own.append(ContinuousClock.now - start)
            }
            durations.append(own)
          }
        }
      }
    }
    meter.add(durations.all)
    try finishOwn(store, meter, Self.writers * commitsOfAWriter, &result)
  }

  private func finishOwn(
    _ store: ChangeStore, _ meter: Meter, _ count: Int, _ result: inout Measurement
  ) throws {
    result.operations = count
    try store.close()
    meter.finish(&result)
    let engine = try open()
    result.digest = try engine.digest()
    try engine.close()
  }
}

// MARK: - Reading

extension Worker {
  /// Once to warm up, which also takes the digest; then twice.
  private func sweep(_ result: inout Measurement) throws {
    let meter = Meter(countsAllocations: task.countsAllocations)
    let engine = try open()
    result.digest = try engine.digest()
    var count = 0
    try meter.timed {
      for _ in 0..<2 { try engine.sweep(pageSize: 500) { count += $0.count } }
    }
    guard count == 2 * task.records else {
      throw BenchmarkError("A sweep read \(count / 2) of \(task.records) records.")
    }
    result.operations = count
    try finish(engine, meter, &result, isRead: true)
  }

  /// As peers that come back for what is new since they last asked.
  private func poll(_ result: inout Measurement) throws {
    let positions = RecordSource.positions(
      count: task.records, order: task.order, seed: task.seed
    ).sorted()
    let last = positions.count - 1
    guard last >= 100 else { throw BenchmarkError("Tail polls need more than 100 records.") }
    var random = SeededGenerator(task.seed ^ 0x7A)
    let polls = max(task.records / 40, 10)
    // Within the last thousand.
    let cursors = (0..<polls).map { _ in
      let position = positions[last - 100 - random.number(below: min(900, last - 99))]
      return RecordSource.hlc(
        milliseconds: position / 4, counter: position % 4, node: position % 8)
    }
    let meter = Meter(countsAllocations: task.countsAllocations)
    let engine = try open()
    for cursor in cursors.prefix(100) { _ = try engine.page(after: cursor, limit: 100) }
    var count = 0
    try meter.timed {
      for cursor in cursors { count += try engine.page(after: cursor, limit: 100).count }
    }
    guard count == polls * 100 else { throw BenchmarkError("Polls gave \(count) records.") }
    result.operations = polls
    try finish(engine, meter, &result, isRead: true)
  }

  private func latest(_ result: inout Measurement) throws {
    let meter = Meter(countsAllocations: task.countsAllocations)
    let engine = try open()
    var digest = Digest()
    if let text = try engine.latestTimestamp() {
      var hash = Fnv()
      hash.add(text)
      digest.content = hash.finish()
    }
    result.digest = digest
    result.operations = task.records
    try meter.timed {
      for _ in 0..<task.records {
        guard try engine.latestTimestamp() != nil else {
          throw BenchmarkError("There is no latest timestamp.")
        }
      }
    }
    try finish(engine, meter, &result, isRead: true)
  }

  private func read(_ result: inout Measurement) throws {
    let count = max(task.records / 2, 10)
    var random = SeededGenerator(task.seed ^ 0xEF)
    let keys = (0..<count).map { _ in source.key(random.number(below: task.records)) }
    let meter = Meter(countsAllocations: task.countsAllocations)
    let engine = try open()
    for key in keys.prefix(count / 5) {
      _ = try engine.record(collection: key.collection, id: key.id)
    }
    var digest = Digest()
    for key in keys.suffix(100) {
      guard let record = try engine.record(collection: key.collection, id: key.id) else {
        throw BenchmarkError("A record is not there.")
      }
      digest.add(record)
    }
    result.digest = digest
    result.operations = count
    try meter.timed {
      for key in keys {
        guard try engine.record(collection: key.collection, id: key.id) != nil else {
          throw BenchmarkError("A record is not there.")
        }
      }
    }
    try finish(engine, meter, &result, isRead: true)
  }

  /// Opening, the latest timestamp, the last page of 100, and one record.
  private func reopen(_ result: inout Measurement) throws {
    let times = 9
    let key = source.key(task.records / 2)
    let meter = Meter(countsAllocations: task.countsAllocations)
    var engine: (any StorageEngine)?
    for _ in 0..<times {
      try engine?.close()
      try meter.timed {
        let opened = try open()
        guard let latest = try opened.latestTimestamp(),
          try opened.record(collection: key.collection, id: key.id) != nil,
          try opened.page(after: latest, limit: 100).isEmpty
        else { throw BenchmarkError("The store is not as it was closed.") }
        engine = opened
      }
    }
    result.operations = times
    guard let engine else { return }
    try finish(engine, meter, &result, isRead: true)
  }
}

/// Collects durations from several threads.
private final class DurationList: @unchecked Sendable {
  // `@unchecked Sendable`: `list` is only touched under the lock.
  private let lock = NSLock()
  private var list: [Duration] = []

  func append(_ durations: [Duration]) { lock.withLock { list += durations } }
  var all: [Duration] { lock.withLock { list } }
}

extension ChangeRecord {
  /// Bytes of all fields.
  var byteCount: UInt64 {
    UInt64(
      id.utf8.count + collection.utf8.count + payload.count + hlcTimestamp.utf8.count
        + (authorPublicKey?.count ?? 0) + (signature?.count ?? 0))
  }
}
