import AirDbLogStore
import TestSupport
import Testing

/// Damage at rest (fault model F3), and the exchange of images with the real file system.
@Suite("Rot")
struct PlatformRotTests {
  /// Sectors of a, b, and 100 bytes of c.
  private func image() throws -> SimulatedFileSystem {
    let files = SimulatedFileSystem()
    try files.createDirectory("/store")
    try files.synchronizeDirectory("/")
    try files.install(FileBytes(content("a", "b", "c")), at: "/store/file")
    return files
  }

  private func content(_ sectors: Character...) -> [UInt8] {
    zip(sectors, [512, 512, 100]).flatMap { [UInt8](repeating: $0.asciiValue!, count: $1) }
  }

  private func damaged(_ rot: Rot) throws -> [UInt8] {
    let image = try image().damaged("/store/file", rot)
    #expect(image.pendingCount() == 0)
    let live = try #require(image.content(of: "/store/file")).bytes
    #expect(image.image(.none).content(of: "/store/file")?.bytes == live, "the damage is durable")
    return live
  }

  @Test("One bit is flipped, and flipping it again restores the file")
  func flipBit() throws {
    var expected = content("a", "b", "c")
    expected[600] ^= 0b1000
    #expect(try damaged(.flipBit(byte: 600, bit: 3)) == expected)
    let image = try image()
    let hash = image.contentHash
    image.damage("/store/file", .flipBit(byte: 1123, bit: 7))
    #expect(image.contentHash != hash)
    image.damage("/store/file", .flipBit(byte: 1123, bit: 7))
    #expect(image.contentHash == hash)
  }

  @Test("Sectors are zeroed, swapped, duplicated, replaced; the size stays")
  func sectors() throws {
    #expect(Rot.sectorCount(ofSize: 1124) == 3)
    #expect(try damaged(.zeroSector(1)) == content("a", "\0", "c"))
    #expect(try damaged(.zeroSector(2)) == content("a", "b", "\0"))
    #expect(try damaged(.swapSectors(0, 1)) == content("b", "a", "c"))
    #expect(try damaged(.duplicateSector(0, onto: 2)) == content("a", "b", "a"))
    let stale = [UInt8](repeating: 120, count: 512)
    #expect(try damaged(.replaceSector(0, with: stale)) == content("x", "b", "c"))
  }

  @Test("The file is cut, never lengthened")
  func truncate() throws {
    #expect(try damaged(.truncate(to: 513)) == Array(content("a", "b", "c")[..<513]))
    #expect(try damaged(.truncate(to: 9999)) == content("a", "b", "c"))
    #expect(try damaged(.setByte(9999, to: 1)) == content("a", "b", "c"))
  }

  @Test("An image goes to a real directory and comes back the same")
  func exchange() throws {
    let image = try image()
    try image.createDirectory("/store/inner")
    try image.install(FileBytes([1, 2, 3]), at: "/store/inner/file")
    try withTemporaryDirectory { root in
      let system = SystemPlatform()
      try copyDirectory("/store", on: image, to: "\(root)/store", on: system)
      #expect(Set(try system.list("\(root)/store")) == ["file", "inner"])
      let copy = SimulatedFileSystem()
      try copyDirectory("\(root)/store", on: system, to: "/store", on: copy)
      #expect(copy.contentHash == image.contentHash)
    }
  }

  @Test("A temporary directory is its own, and removed with all that is in it")
  func temporaryDirectory() throws {
    let system = SystemPlatform()
    let path = try withTemporaryDirectory { first in
      try withTemporaryDirectory { second in
        #expect(first != second)
      }
      try system.createDirectory("\(first)/inner")
      try system.makeFile("\(first)/inner/file", "")
      return first
    }
    #expect(throws: SystemError.self) { try system.list(path) }
  }
}
