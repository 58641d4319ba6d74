import Compression
import Testing

/// What the stand-in must do as Apple's documentation says, for what is built upon it to mean
/// anything.
struct CompressionStandInTests {
  private let text = [UInt8](String(repeating: "what is said twice ", count: 40).utf8)

  private func encode(_ source: [UInt8], capacity: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: capacity) { target, count in
      count = compression_encode_buffer(
        target.baseAddress!, capacity, source, source.count, nil, COMPRESSION_LZ4_RAW)
    }
  }

  private func decode(_ source: [UInt8], capacity: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: capacity) { target, count in
      count = compression_decode_buffer(
        target.baseAddress!, capacity, source, source.count, nil, COMPRESSION_LZ4_RAW)
    }
  }

  @Test func decodingGivesWhatWasEncoded() {
    let encoded = encode(text, capacity: 1000)
    #expect(!encoded.isEmpty && encoded.count < text.count)
    #expect(decode(encoded, capacity: 1000) == text)
  }

  @Test func encodingIntoTooLittleGivesNothing() {
    let size = encode(text, capacity: 1000).count
    #expect(encode(text, capacity: size).count == size)
    #expect(encode(text, capacity: size - 1).isEmpty)
  }

  @Test func decodingIntoTooLittleCutsAndTellsTheSizeOfTheTarget() {
    let encoded = encode(text, capacity: 1000)
    for capacity in [1, 19, 100, text.count - 1] {
      #expect(decode(encoded, capacity: capacity) == Array(text[..<capacity]))
    }
  }

  @Test func malformedSourceGivesNothing() {
    #expect(decode([0xF0, 0xFF], capacity: 1000).isEmpty)
  }
}
