import AirDbLogStore
import TestSupport
import Testing

/// LZ4 blocks. These tests also run over the stand-in for Apple's Compression framework, which must
/// give the same answers (Tests/apple-check.sh).
struct Lz4Tests {
  private func compress(_ source: [UInt8], capacity: Int) -> [UInt8]? {
    var target = [UInt8](repeating: 0, count: capacity)
    let size = target.withUnsafeMutableBytes { target in
      source.withUnsafeBytes { Lz4.compress($0, into: target) }
    }
    return size.map { Array(target[..<$0]) }
  }

  /// Decompresses into a buffer with a margin behind it, which must stay as it was.
  private func decompress(_ source: [UInt8], expecting count: Int) -> [UInt8]? {
    let end = count + Lz4.slack
    var target = [UInt8](repeating: 0xA5, count: end + 64)
    let isWhole = target.withUnsafeMutableBytes { target in
      source.withUnsafeBytes {
        Lz4.decompress($0, into: UnsafeMutableRawBufferPointer(rebasing: target[..<end]))
      }
    }
    #expect(target[end...].allSatisfy { $0 == 0xA5 }, "written behind the target")
    return isWhole ? Array(target[..<count]) : nil
  }

  private static let samples: [[UInt8]] = {
    var random = SeededGenerator(seed: 4)
    let noise = random.bytes(5000)
    return [
      [7], [UInt8](repeating: 0, count: 13), [UInt8](repeating: 9, count: 100_000), noise,
      [UInt8](String(repeating: "a page of a manual, ", count: 500).utf8),
      noise + [UInt8](repeating: 1, count: 5000) + noise,
    ]
  }()

  @Test(arguments: samples.indices)
  func contentComesBack(_ index: Int) throws {
    let source = Self.samples[index]
    let block = try #require(compress(source, capacity: source.count + source.count / 255 + 16))
    #expect(decompress(block, expecting: source.count) == source)
  }

  @Test func whatDoesNotFitIsNotCompressed() throws {
    let noise = Self.samples[3]
    #expect(compress(noise, capacity: noise.count - 1) == nil)
    let text = Self.samples[4]
    let size = try #require(compress(text, capacity: text.count)).count
    #expect(compress(text, capacity: size - 1) == nil)
    #expect(compress(text, capacity: 0) == nil)
    #expect(compress([], capacity: 16) == nil)
  }

  @Test func aBlockThatGivesMoreOrLessThanDeclaredIsRefused() throws {
    let text = Self.samples[4]
    let block = try #require(compress(text, capacity: text.count))
    for count in [1, text.count / 2, text.count - 1, text.count + 1, 2 * text.count] {
      #expect(decompress(block, expecting: count) == nil)
    }
    #expect(decompress([], expecting: 5) == nil)
    #expect(decompress(block, expecting: 0) == nil)
  }

  @Test func aCutBlockIsRefused() throws {
    let text = Self.samples[4]
    let block = try #require(compress(text, capacity: text.count))
    for count in 0..<block.count {
      #expect(decompress(Array(block[..<count]), expecting: text.count) == nil)
    }
  }

  /// Decompresses the first `wanted` bytes over memory full of `filler`.
  private func decompress(
    _ source: [UInt8], expecting count: Int, upTo wanted: Int, over filler: UInt8
  ) -> [UInt8]? {
    let end = count + Lz4.slack
    var target = [UInt8](repeating: filler, count: end + 64)
    let there = target.withUnsafeMutableBytes { target in
      source.withUnsafeBytes {
        Lz4.decompress(
          $0, upTo: wanted, into: UnsafeMutableRawBufferPointer(rebasing: target[..<end]))
      }
    }
    #expect(target[end...].allSatisfy { $0 == filler }, "written behind the target")
    guard let there else { return nil }
    #expect(there >= wanted && there <= count)
    return Array(target[..<wanted])
  }

  @Test(arguments: samples.indices)
  func theStartOfABlockIsThatOfItsContent(_ index: Int) throws {
    let source = Self.samples[index]
    let block = try #require(compress(source, capacity: source.count + source.count / 255 + 16))
    var random = SeededGenerator(seed: 6)
    for _ in 0..<50 {
      let wanted = Int.random(in: 1...source.count, using: &random)
      #expect(
        decompress(block, expecting: source.count, upTo: wanted, over: 0xA5)
          == Array(source[..<wanted]))
    }
    let most = decompress(block, expecting: source.count, upTo: source.count, over: 0xA5)
    #expect(most == source)
  }

  @Test func aCutBlockHasNoMoreThanItsStart() throws {
    let text = Self.samples[4]
    let block = try #require(compress(text, capacity: text.count))
    for count in 0..<block.count {
      let cut = Array(block[..<count])
      for wanted in [1, 20, text.count / 2, text.count - 1] {
        let start = decompress(cut, expecting: text.count, upTo: wanted, over: 0)
        #expect(start == nil || start == Array(text[..<wanted]))
        #expect(start == nil || count > 0)
      }
    }
  }

  /// A match at distance 0 names bytes that are not there yet: they must not be those of whoever had
  /// the memory before.
  @Test func noAnswerDependsOnWhatTheMemoryHeld() {
    let repeated: [UInt8] = [0x1F, 0x61, 0x00, 0x00, 0x40, 0x50, 0x62, 0x63, 0x64, 0x65, 0x66]
    var hostile = (1...83).map { (repeated, $0) }
    var random = SeededGenerator(seed: 7)
    for _ in 0..<2000 {
      var block = random.bytes(Int.random(in: 1...64, using: &random))
      for index in block.indices where Int.random(in: 0..<3, using: &random) == 0 {
        block[index] = 0
      }
      hostile.append((block, Int.random(in: 1...150, using: &random)))
    }
    var answers = 0
    for (block, wanted) in hostile {
      let first = decompress(block, expecting: 300, upTo: wanted, over: 0xA5)
      let second = decompress(block, expecting: 300, upTo: wanted, over: 0x5A)
      #expect(first == second)
      if first != nil { answers += 1 }
    }
    #if !canImport(Compression)
      #expect(answers > 100)
    #endif
  }

  @Test func noBytesLeadBehindTheTarget() {
    var random = SeededGenerator(seed: 5)
    for _ in 0..<2000 {
      let hostile = random.bytes(Int.random(in: 1...64, using: &random))
      let count = Int.random(in: 1...300, using: &random)
      // The margin behind the target is checked whatever the answer is.
      _ = decompress(hostile, expecting: count)
      _ = decompress(
        hostile, expecting: count, upTo: Int.random(in: 1...count, using: &random), over: 0xA5)
    }
  }

  /// One literal, a match of ten bytes at distance 1, five literals: by the public description of
  /// the format, without a frame around it.
  @Test func blocksAreThoseOfThePublicFormat() {
    let block: [UInt8] = [0x16, 0x61, 0x01, 0x00, 0x50, 0x62, 0x63, 0x64, 0x65, 0x66]
    #expect(decompress(block, expecting: 16) == Array("aaaaaaaaaaabcdef".utf8))
  }
}
