import AirDbLogStore
import TestSupport
import Testing

/// Ids that are canonical UUIDs are packed, and nothing else is.
@Suite struct CodecUuidTests {
  private func pack(_ id: String) -> (form: PackedUuid.Form, text: String?) { pack(Array(id.utf8)) }

  private func pack(_ id: [UInt8]) -> (form: PackedUuid.Form, text: String?) {
    var words: (UInt64, UInt64) = (0, 0)
    let form = withBytes(of: id) { PackedUuid.pack($0, into: &words) }
    guard form != .text else { return (form, nil) }
    var packed = ByteBuffer()
    packed.append(words.0.bigEndian)
    packed.append(words.1.bigEndian)
    var text = [UInt8](repeating: 0, count: PackedUuid.textSize)
    text.withUnsafeMutableBytes { PackedUuid.unpack(packed.bytes, form, into: $0) }
    return (form, String(decoding: text, as: UTF8.self))
  }

  private func uuid(_ random: inout SeededGenerator, _ alphabet: String) -> String {
    let digits = Array(alphabet)
    return String(
      (0..<36).map { [8, 13, 18, 23].contains($0) ? "-" : digits.randomElement(using: &random)! })
  }

  @Test func `Canonical UUIDs come back in their case`() {
    var random = SeededGenerator(seed: 34)
    for _ in 0..<500 {
      let lower = uuid(&random, "0123456789abcdef")
      #expect(pack(lower) == (.lowercase, lower))
      #expect(pack(lower.uppercased()) == (.uppercase, lower.uppercased()))
      let digits = uuid(&random, "0123456789")
      #expect(pack(digits) == (.lowercase, digits))
    }
    #expect(pack("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa").form == .lowercase)
    #expect(pack("FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF").form == .uppercase)
  }

  @Test func `What differs in one byte from a UUID is text`() {
    var random = SeededGenerator(seed: 35)
    let id = Array("0a1b2c3d-4e5f-6a7b-8c9d-aebfcadbecfd".utf8)
    for place in id.indices {
      for byte in UInt8.min...UInt8.max {
        var other = id
        other[place] = byte
        let isDash = [8, 13, 18, 23].contains(place)
        let isDigit = (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte)
        let expected: PackedUuid.Form = (isDash ? byte == 0x2D : isDigit) ? .lowercase : .text
        #expect(pack(other).form == expected, "\(byte) at \(place)")
      }
    }
    for text in ["", "-", String(decoding: id.dropLast(), as: UTF8.self) + "\u{E9}"] {
      #expect(pack(text).form == .text)
    }
    for count in [35, 37, 32] {
      let text = String(uuid(&random, "0123456789abcdef").prefix(min(count, 36)))
      #expect(pack(count > 36 ? text + "0" : text).form == .text)
    }
  }
}

private func == (
  a: (form: PackedUuid.Form, text: String?), b: (PackedUuid.Form, String)
) -> Bool {
  a.form == b.0 && a.text == b.1
}
