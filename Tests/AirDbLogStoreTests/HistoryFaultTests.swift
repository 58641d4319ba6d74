import AirDbLogStore
import Foundation
import TestSupport
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Fetches whose reads fail, that read damage, and that run beside everything else.
@Suite struct HistoryFaultTests {
  private static func makeStore(
    on files: SimulatedFileSystem, _ scheduler: ManualScheduler
  ) throws -> ChangeStore {
    var configuration = Configuration.tiny
    configuration.cacheBytes = 0
    let store = try ChangeStore(
      path: "/store", configuration, platform: files, scheduler: scheduler)
    for index in 0..<40 {
      try store.applyAndWait([
        change("\(index % 15)", time(index), payload: String(repeating: "p", count: 200))
      ])
    }
    scheduler.run()
    try store.compact()
    scheduler.run()
    for index in 40..<55 { try store.applyAndWait([change("\(index)", time(index))]) }
    return store
  }

  @Test(arguments: [EIO, EMFILE] as [CInt])
  func `A read that fails is an error, and the next fetch is whole`(errno: CInt) throws {
    let files = SimulatedFileSystem()
    let scheduler = ManualScheduler()
    let store = try Self.makeStore(on: files, scheduler)
    let whole = try store.history()
    var failures = 0
    for number in 1... {
      try store.engine.files.removeAll()
      files.inject(FaultPlan(.failing(errno), kinds: [.open, .read, .size], on: .only(number)))
      var failure: LogStoreError?
      do {
        let shown = try store.history(limit: 7)
        #expect(shown == whole)
      } catch let error as LogStoreError {
        failure = error
      }
      files.clearFaults()
      if let failure {
        failures += 1
        #expect([.inputOutput, .tooManyOpenFiles].contains(failure.code), "\(failure)")
        #expect(failure.file?.hasSuffix(".segment") == true)
      }
      #expect(try store.history(limit: 5) == whole)
      if number > 400 || failure == nil && number > 120 { break }
    }
    #expect(failures > 20)
    try store.close()
  }

  @Test func `A damaged frame is an error that names it, never a shorter history`() throws {
    let platform = MemoryPlatform()
    let scheduler = ManualScheduler()
    var store = try ChangeStore(path: "/store", .tiny, platform: platform, scheduler: scheduler)
    for index in 0..<30 {
      try store.applyAndWait([change("\(index)", time(index), payload: "payload \(index)")])
    }
    scheduler.run()
    try store.close()
    let segments = try platform.list("/store").filter { $0.hasSuffix(".segment") }
    #expect(segments.count > 3)
    var found = 0
    for name in segments {
      let file = try OpenFile("/store/" + name, .readWrite, on: platform)
      let size = try file.size()
      for offset in stride(from: UInt64(64), to: size, by: 31) {
        let flip = {
          var byte: UInt8 = 0
          try withUnsafeMutableBytes(of: &byte) { bytes in
            _ = try file.readExactly(into: bytes, at: offset)
            bytes[0] ^= 0x10
            try file.writeAll(UnsafeRawBufferPointer(bytes), at: offset)
          }
        }
        try flip()
        do {
          store = try ChangeStore(path: "/store", .tiny, platform: platform, scheduler: scheduler)
          let shown = try store.history()
          Issue.record("\(shown.count) commits with a flipped bit in \(name) at \(offset)")
        } catch let error as LogStoreError {
          found += 1
          #expect(error.code == .corrupt, "\(error)")
        }
        try? store.close()
        try flip()
      }
    }
    #expect(found > 50)
    store = try ChangeStore(path: "/store", .tiny, platform: platform, scheduler: scheduler)
    #expect(try store.history().count == 30)
    try store.close()
  }

  @Test
  func `Fetches beside commits and compactions see each commit once, and the newest versions`()
    throws
  {
    var configuration = Configuration.tiny
    configuration.segmentRecords = 30
    configuration.durability = .processCrash
    configuration.cleaning = .off
    configuration.cacheBytes = 0
    let store = try ChangeStore.inMemory(configuration: configuration)
    let rounds = 500
    let isDone = Locked(false)
    let counts = Locked((sweeps: 0, compacted: 0))
    inThreads(4) { thread in
      do {
        defer { if thread == 0 { isDone.withLock { $0 = true } } }
        if thread == 0 {
          for round in 0..<rounds {
            try store.applyAndWait(
              (0..<4).map { change("\((round + $0) % 20)", time(round), payload: "\(round)") },
              author: "\(round)")
          }
          return
        }
        while !isDone.withLock({ $0 }) {
          if thread == 1 {
            let segments = try store.compact().segments
            counts.withLock { $0.compacted += segments }
            continue
          }
          var position: Position?
          var last = -1
          var newest: [String: String] = [:]
          while true {
            let page = try store.commits(after: position, limit: thread == 2 ? 5 : 1_000)
            for commit in page.commits {
              let round = Int(commit.author) ?? -1
              #expect(round > last)
              last = round
              for change in commit.changes {
                let payload = try change.record().payload
                #expect(payload == Data(commit.author.utf8))
                newest[change.key.id] = commit.author
              }
            }
            position = page.next
            if page.isLast { break }
          }
          // Of what the last page showed as the end, every key had its newest version in the sweep.
          if last >= 20 {
            for key in 0..<20 {
              let expected = (0...last).last { round in
                (0..<4).contains { (round + $0) % 20 == key }
              }
              #expect(newest["\(key)"] == expected.map { "\($0)" })
            }
          }
          counts.withLock { $0.sweeps += 1 }
        }
      } catch {
        isDone.withLock { $0 = true }
        Issue.record(error, "thread \(thread)")
      }
    }
    let found = counts.withLock { $0 }
    #expect(found.sweeps > 0 && found.compacted > 0)
    try store.close()
  }
}
