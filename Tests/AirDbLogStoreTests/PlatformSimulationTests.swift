import AirDbLogStore
import TestSupport
import Testing

/// The rules by which the simulated file system loses power: fault model F1.
@Suite("Simulated power loss")
struct PlatformSimulationTests {
  let files = SimulatedFileSystem()

  /// A file with durable content and a durable entry.
  private func makeDurableFile(_ path: String, _ text: String) throws {
    try files.makeFile(path, text)
    try synchronize(path)
    try files.synchronizeDirectory("/")
  }

  private func synchronize(_ path: String) throws {
    let file = try files.open(path, .readWrite)
    _ = try files.synchronize(file, to: .stable)
    try files.close(file)
  }

  /// What a file holds after each possible outcome, exhaustively.
  private func outcomes(
    _ path: String, _ granularity: Granularity = .operation, lost: LostContent = .old
  ) throws -> Set<String> {
    var outcomes: Set<String> = []
    for rule in files.survivorRules(granularity) {
      let image = files.image(rule, granularity: granularity, lost: lost)
      outcomes.insert(try image.text(at: path) ?? "absent")
    }
    return outcomes
  }

  @Test("What was synced, entry and content, survives")
  func synced() throws {
    try makeDurableFile("/file", "content")
    #expect(files.pendingCount() == 0)
    #expect(try outcomes("/file") == ["content"])
  }

  @Test("A synced file whose entry was not synced may be gone")
  func unsyncedEntry() throws {
    try files.makeFile("/file", "content")
    try synchronize("/file")
    #expect(try outcomes("/file") == ["absent", "content"])
  }

  @Test("A synced entry does not make the content durable")
  func unsyncedContent() throws {
    try files.makeFile("/file", "content")
    try files.synchronizeDirectory("/")
    #expect(try outcomes("/file") == ["", ".......", "content"])
  }

  @Test("A file may have grown without its data, and data without the growth is not seen")
  func sizeApartFromData() throws {
    try makeDurableFile("/file", "ab")
    let file = try files.open("/file", .readWrite)
    try files.write("cd", to: file, at: 2)
    #expect(files.pendingCount() == 2)
    #expect(try outcomes("/file") == ["ab", "ab..", "abcd"])
    #expect(try files.text(of: file) == "abcd")
  }

  @Test("Data that survived shows once a later growth survived")
  func laterGrowth() throws {
    try makeDurableFile("/file", "")
    let file = try files.open("/file", .readWrite)
    try files.write("ab", to: file)
    try files.write("cd", to: file, at: 2)
    #expect(
      try outcomes("/file") == ["", "..", "ab", "....", "ab..", "..cd", "abcd"])
  }

  @Test("A cut may be lost or survive; growing after it never brings back what was cut off")
  func cut() throws {
    try makeDurableFile("/file", "abcdef")
    let file = try files.open("/file", .readWrite)
    try files.truncate(file, to: 2)
    #expect(try outcomes("/file") == ["abcdef", "ab"])
    try files.truncate(file, to: 4)
    #expect(try outcomes("/file") == ["abcdef", "ab", "ab..", "abcd"])
    _ = try files.synchronize(file, to: .stable)
    #expect(try outcomes("/file") == ["ab.."])
  }

  @Test("A reservation is a growth that a sync of the file makes durable")
  func reservation() throws {
    try makeDurableFile("/file", "ab")
    let file = try files.open("/file", .readWrite)
    try files.reserve(file, offset: 0, count: 4)
    #expect(try outcomes("/file") == ["ab", "ab.."])
    _ = try files.synchronize(file, to: .stable)
    try files.write("cd", to: file, at: 2)
    #expect(files.pendingCount() == 1, "a write into reserved space does not change the size")
    #expect(try outcomes("/file") == ["ab..", "abcd"])
  }

  @Test("A lost write leaves old bytes, zeros or garbage, and its neighbours alone")
  func lostContent() throws {
    try makeDurableFile("/file", "abcdef")
    let file = try files.open("/file", .readWrite)
    try files.write("XY", to: file, at: 2)
    #expect(try outcomes("/file", lost: .old) == ["abcdef", "abXYef"])
    #expect(try outcomes("/file", lost: .zeros) == ["ab..ef", "abXYef"])
    let image = files.image(.none, lost: .garbage(seed: 1))
    let found = try #require(image.content(of: "/file")).bytes
    #expect(found.count == 6 && found.prefix(2) == [97, 98] && found.suffix(2) == [101, 102])
    #expect(Array(found[2..<4]) != [99, 100])
    #expect(image.contentHash == files.image(.none, lost: .garbage(seed: 1)).contentHash)
  }

  @Test("A write is torn at the borders of sectors, a short one at each byte if asked for")
  func torn() throws {
    try makeDurableFile("/file", String(repeating: "-", count: 1200))
    let file = try files.open("/file", .readWrite)
    try files.write(String(repeating: "X", count: 700), to: file, at: 500)
    #expect(files.pendingCount(.operation) == 1)
    #expect(files.pendingCount(.sector) == 3, "12 bytes, a whole sector, 176 bytes")
    #expect(files.pendingCount(.byte(limit: 512)) == 3)
    #expect(files.pendingCount(.byte(limit: 700)) == 700)
    let image = files.image(.exactly(0b010), granularity: .sector)
    let bytes = try #require(image.content(of: "/file")).bytes
    #expect(bytes.enumerated().allSatisfy { ($1 == 88) == (512..<1024 ~= $0) })
    _ = try files.synchronize(file, to: .stable)
    try files.write("abc", to: file)
    #expect(try outcomes("/file", .byte(limit: 16)).count == 8)
  }

  @Test("Renaming is atomic, and durable with its directory")
  func rename() throws {
    try makeDurableFile("/current", "old")
    try files.makeFile("/new", "new")
    try synchronize("/new")
    try files.rename("/new", to: "/current")
    #expect(try outcomes("/current") == ["old", "new"])
    for rule in files.survivorRules() {
      let names = files.image(rule).names(in: "/")
      #expect([["current"], ["current", "new"]].contains(names))
    }
    try files.synchronizeDirectory("/")
    #expect(try outcomes("/current") == ["new"])
  }

  @Test("Whichever renames survive, a file has one name, and a taken name one file")
  func renameChain() throws {
    try makeDurableFile("/a", "first")
    try files.rename("/a", to: "/b")
    try files.rename("/b", to: "/c")
    try files.makeFile("/a", "second")
    try synchronize("/a")
    var outcomes: Set<[String]> = []
    for rule in files.survivorRules() {
      let image = files.image(rule)
      outcomes.insert(try image.names(in: "/").map { try "\($0) \(image.text(at: "/\($0)")!)" })
    }
    #expect(
      outcomes == [
        ["a first"], ["b first"], ["c first"],
        ["a second"], ["a second", "b first"], ["a second", "c first"],
      ])
  }

  @Test("A rename may be durable before the content of the renamed file")
  func renameBeforeContent() throws {
    try makeDurableFile("/current", "old")
    try files.makeFile("/new", "new")
    try files.rename("/new", to: "/current")
    #expect(try outcomes("/current") == ["old", "", "...", "new"])
  }

  @Test("A removed file may come back until its directory is synced")
  func remove() throws {
    try makeDurableFile("/file", "content")
    try files.remove("/file")
    #expect(try outcomes("/file") == ["absent", "content"])
    try files.synchronizeDirectory("/")
    #expect(try outcomes("/file") == ["absent"])
  }

  @Test("What is in a directory is gone with an entry of the directory that was not synced")
  func directory() throws {
    try files.createDirectory("/directory")
    try files.makeFile("/directory/file", "content")
    try synchronize("/directory/file")
    try files.synchronizeDirectory("/directory")
    #expect(try outcomes("/directory/file") == ["absent", "content"])
    try files.synchronizeDirectory("/")
    #expect(try outcomes("/directory/file") == ["content"])
  }

  @Test("A crash forgets descriptors and locks; a killed process leaves what it wrote pending")
  func deaths() throws {
    try makeDurableFile("/file", "old")
    let file = try files.open("/file", .readWrite)
    #expect(try files.tryLock(file))
    try files.write("new", to: file)
    for successor in [files.image(.none), files.afterProcessDeath()] {
      #expect(successor.openDescriptorCount == 0)
      let reopened = try successor.open("/file", .readWrite)
      #expect(try successor.tryLock(reopened))
      #expect(try successor.identity(of: reopened) != files.identity(of: file))
    }
    let survivor = files.afterProcessDeath()
    #expect(try survivor.text(at: "/file") == "new")
    #expect(survivor.pendingCount() == 1)
    #expect(try survivor.image(.none).text(at: "/file") == "old")
  }

  @Test("A file removed while open is gone for good with the process that had it open")
  func deathReleasesRemovedFiles() throws {
    try makeDurableFile("/file", "content")
    _ = try files.open("/file", .read)
    try files.remove("/file")
    #expect(files.usedBytes == 7)
    #expect(files.afterProcessDeath().usedBytes == 0)
  }

  @Test("Images do not see each other's changes")
  func imagesAreIndependent() throws {
    try makeDurableFile("/file", "content")
    let first = files.image(.all)
    let second = first.copy()
    let hash = second.contentHash
    first.damage("/file", .setByte(0, to: 88))
    #expect(try first.text(at: "/file") == "Xontent")
    #expect(try second.text(at: "/file") == "content")
    #expect(second.contentHash == hash && first.contentHash != hash)
    #expect(try files.text(at: "/file") == "content")
  }
}

@Suite("Crash points")
struct PlatformCrashPointTests {
  /// Replaces a file the careful way.
  private func replace(_ platform: any Platform, _ text: String) throws {
    let file = try platform.open("/new", .createIfAbsent)
    defer { try? platform.close(file) }
    try platform.truncate(file, to: 0)
    try platform.write(text, to: file)
    _ = try platform.synchronize(file, to: .stable)
    try platform.rename("/new", to: "/file")
    try platform.synchronizeDirectory("/")
  }

  private func prepared(_ text: String = "old content") throws -> SimulatedFileSystem {
    let files = SimulatedFileSystem()
    try replace(files, text)
    return files.image(.all)
  }

  @Test("Operations are recorded and numbered; calls that change nothing are only counted")
  func recording() throws {
    let files = try prepared()
    _ = try files.list("/")
    try replace(files, "new content")
    #expect(
      files.operations.map(\.kind)
        == [.create, .truncate, .write, .synchronize, .rename, .synchronizeDirectory])
    #expect(files.callCount == 8)
    #expect(files.operations[2].description == "write /new [0, 11)")
  }

  @Test("A careful replacement survives every crash point and every outcome of it")
  func everyCrashPoint() throws {
    let script = try prepared("old")
    try replace(script, "new")
    var found: Set<String> = []
    for (index, operation) in script.operations.enumerated() {
      for moment in operation.crashMoments(byteLimit: 64) {
        let files = try prepared("old")
        files.losePower(at: index + 1, moment)
        #expect(throws: SimulatedFileSystem.powerLoss) { try replace(files, "new") }
        #expect(throws: SimulatedFileSystem.powerLoss) { try files.list("/") }
        for rule in files.survivorRules(.byte(limit: 64)) {
          for lost in [LostContent.old, .zeros, .garbage(seed: 7)] {
            let image = files.image(rule, granularity: .byte(limit: 64), lost: lost)
            found.insert(try image.text(at: "/file") ?? "absent")
          }
        }
      }
    }
    #expect(found == ["old", "new"])
  }

  @Test("Power lost after an operation has its effect, before it has not, inside a part of it")
  func moments() throws {
    for (moment, expected) in [
      (CrashMoment.before, ""), (.inside(bytes: 3), "new"), (.after, "new content"),
    ] {
      let files = try prepared()
      files.losePower(at: 3, moment)
      try? replace(files, "new content")
      #expect(try files.image(.all).text(at: "/new") == expected)
    }
  }

  @Test("Power can be cut from inside a call")
  func cutFromHook() throws {
    let files = try prepared()
    files.beforeEachCall { [unowned files] call in
      if call.kind == .rename { files.losePower() }
    }
    #expect(throws: SimulatedFileSystem.powerLoss) { try replace(files, "new content") }
    #expect(files.image(.all).names(in: "/") == ["file", "new"])
  }

  @Test("Up to the limit the rules are all subsets; beyond it the named ones, and no twins")
  func rules() {
    for count in 0...SurvivorRule.exhaustiveLimit {
      let outcomes = SurvivorRule.rules(pendingCount: count).map { $0.survivors(of: count) }
      #expect(Set(outcomes).count == 1 << count)
    }
    let rules = SurvivorRule.rules(pendingCount: 40)
    #expect(rules.count == 4 + 38 + 200 && Set(rules).count == rules.count)
    let outcomes = Set(rules.map { $0.survivors(of: 40) })
    for length in 0...40 {
      #expect(outcomes.contains((0..<40).map { $0 < length }), "prefix \(length)")
    }
    #expect(outcomes.contains((0..<40).map { $0 > 0 }))
    #expect(
      SurvivorRule.subset(seed: 3).survivors(of: 40)
        == SurvivorRule.subset(seed: 3).survivors(of: 40))
  }
}
