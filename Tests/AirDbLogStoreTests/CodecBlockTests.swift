import AirDbLogStore
import Foundation
import HlcText
import TestSupport
import Testing

/// Blocks: records come back, and damage does not pass.
@Suite struct CodecBlockTests {
  @Test(arguments: 0..<40 as Range<UInt64>)
  func `Random records come back from their blocks`(seed: UInt64) throws {
    var options = RecordGenerator.Options()
    options.payload = 0...[0, 30, 500, 3_000][Int(seed % 4)]
    options.usesIso8601 = seed % 3 == 0
    var generator = RecordGenerator(seed: seed, options: options)
    let records = generator.batch(1 + generator.below(700))
    let target = [1, 64, 1_024, 8_192][generator.below(4)]
    let sample = FrameSample(records, target: target)

    var decoded: [DecodedBlock] = []
    var first: UInt32 = 0
    for number in sample.blocks.indices {
      let bytes = sample.block(number)
      #expect(sample.isIntact(bytes, number))
      let block = try bytes.withUnsafeBytes { try DecodedBlock($0) }
      #expect(block.header.firstRecord == first)
      #expect(Int(block.header.frameDistance) == sample.blocks[number].lowerBound)
      #expect(block.rows.count == Int(block.header.recordCount) && block.rows.count <= 256)
      first += block.header.recordCount
      decoded.append(block)
    }
    #expect(Int(first) == records.count)

    for (record, place) in zip(records, sample.places) {
      let block = decoded[place.block]
      #expect(try sample.record(at: place) == record)
      let id = block.withId(place.slot) { Array($0) }
      #expect(id == Array(record.id.utf8))
      #expect(block.collection(place.slot).utf8.elementsEqual(record.collection.utf8))
      let text = Array(record.hlcTimestamp.utf8)
      let parts = text.withUnsafeBufferPointer { parseHlc($0, format: .hybrid) }!
      let (kind, physical, counter, node) = try block.withHlcKey(place.slot, format: .hybrid) {
        ($0, $1, $2, Array($3))
      }
      #expect(kind == parts.kind && physical == parts.physical && counter == parts.counter)
      #expect(node == Array(text[parts.nodeStart...]))
      let checksum = try block.withFields(place.slot) { $0.contentChecksum }
      #expect(checksum == block.rows[place.slot].contentChecksum)
      #expect(checksum == withBytes(of: record) { $0.contentChecksum })
    }
  }

  @Test(arguments: 0..<12 as Range<UInt64>)
  func `A reader gives single records, in any order, of one block after the other`(
    seed: UInt64
  ) throws {
    var options = RecordGenerator.Options()
    options.payload = 0...[0, 30, 500, 3_000][Int(seed % 4)]
    var generator = RecordGenerator(seed: seed, options: options)
    let sample = FrameSample(generator.batch(300), target: [1, 1_024, 8_192][Int(seed % 3)])
    let blocks = try sample.blocks.indices.map { number in
      try sample.block(number).withUnsafeBytes { try StoredBlock($0) }
    }
    let reader = try BlockReader(blocks[0])
    var shared = SharedFields()
    for number in blocks.indices.shuffled(using: &generator.random) {
      try reader.open(blocks[number])
      let places = sample.places.indices.filter { sample.places[$0].block == number }
      for place in places.shuffled(using: &generator.random).prefix(1 + generator.below(60)) {
        let slot = sample.places[place].slot
        #expect(try reader.record(slot, sharing: &shared) == sample.records[place])
        #expect(try reader.id(slot) == Array(sample.records[place].id.utf8))
        #expect(
          try reader.row(slot).contentChecksum
            == withBytes(of: sample.records[place]) { $0.contentChecksum })
      }
      #expect(throws: FormatError.self) { try reader.row(places.count) }
    }
  }

  @Test func `Texts in plain order come back too`() throws {
    let texts = ["1700000000000-0-n", "a", "\u{0}", "\u{E9}", String(repeating: "x", count: 1_024)]
    let records = texts.map { change("id", $0) }
    let sample = FrameSample(records, target: 64, format: .utf8Order)
    for (record, place) in zip(records, sample.places) {
      #expect(try sample.record(at: place) == record)
    }
  }

  @Test func `A block is bounded in all that it holds`() throws {
    // Large parts of each kind, each one different.
    for field in 0..<5 {
      let records = (0..<200).map { number in
        var record = change("\(number)", time(number))
        let filler = String(repeating: "x", count: 60_000) + "\(number)"
        switch field {
        case 0: record.id = filler
        case 1: record.authorPublicKey = Data(filler.utf8)
        case 2: record.signature = Data(filler.utf8)
        case 3: record.collection = String(filler.suffix(4_000))
        default: record.hlcTimestamp = time(number, 0, String(filler.suffix(900)))
        }
        return record
      }
      let sample = FrameSample(records, target: 8_192)
      for block in sample.blocks {
        #expect(block.count <= 3 * 65_536, "field \(field)")
      }
    }
  }

  private var small: FrameSample {
    var records = (0..<4).map { change("id \($0)", time($0), payload: "payload payload payload") }
    records[1].authorPublicKey = Data([1, 2, 3])
    records[2].signature = Data([4])
    records[3].id = "0a1b2c3d-4e5f-6a7b-8c9d-aebfcadbecfd"
    return FrameSample(records, target: 4_096)
  }

  @Test func `Every flipped bit and every other place is noticed`() throws {
    let sample = small
    let block = sample.block(0)
    for bit in 0..<(block.count * 8) {
      var other = block
      other[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(!sample.isIntact(other, 0), "bit \(bit)")
    }
    let offset = FrameSample.frameOffset + UInt64(sample.blocks[0].lowerBound)
    block.withUnsafeBytes { bytes in
      #expect(BlockHeader.verify(bytes, file: FrameSample.file, offset: offset))
      #expect(!BlockHeader.verify(bytes, file: FrameSample.file + 1, offset: offset))
      #expect(!BlockHeader.verify(bytes, file: FrameSample.file, offset: offset + 8))
    }
  }

  @Test func `A block cut anywhere is refused`() {
    let block = small.block(0)
    for count in 0..<block.count {
      #expect(throws: FormatError.self, "\(count) bytes") {
        try Array(block[..<count]).withUnsafeBytes { try DecodedBlock($0) }
      }
    }
  }

  @Test func `Hostile blocks are refused or read, and never trap`() {
    // As if their checksums held: what the decoder makes of bytes that no writer wrote.
    var generator = RecordGenerator(seed: 41)
    let samples = [small, FrameSample(generator.batch(60), target: 8_192)]
    for sample in samples {
      for number in sample.blocks.indices {
        let block = sample.block(number)
        for bit in 0..<min(block.count * 8, 6_000) {
          var other = block
          other[bit / 8] ^= 1 << UInt8(bit % 8)
          exercise(other)
          exercise(other, .utf8Order)
        }
        for _ in 0..<2_000 {
          var other = block
          for _ in 0...generator.below(4) {
            other[generator.below(other.count)] =
              [0, 1, 0x7F, 0x80, 0xFF, UInt8(generator.below(256))][generator.below(6)]
          }
          exercise(other)
        }
      }
    }
    for round in 0..<5_000 {
      let noise = generator.random.bytes(round % 200)
      exercise(noise)
    }
  }
}
