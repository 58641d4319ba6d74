import Foundation

/// Known-answer vectors of the specification, whose fields `Spec/vectors/README.md` describes.
enum CodecVectors {
  struct Varint: Decodable {
    struct Unsigned: Decodable {
      var value: String
      var bytes: String
    }
    struct Zigzag: Decodable {
      var value: String
      var mapped: String
      var bytes: String
    }
    struct Malformed: Decodable {
      var bytes: String
      var why: String
    }
    var unsigned: [Unsigned]
    var zigzag: [Zigzag]
    var malformed: [Malformed]
  }

  struct Checksum: Decodable {
    struct Plain: Decodable {
      var what: String
      var bytes: String
      var crc: String
    }
    struct Bound: Decodable {
      var tag: String
      var file: String
      var offset: String
      var bytes: String
      var crc: String
    }
    var crc: [Plain]
    var bound: [Bound]
  }

  struct KeyHash: Decodable {
    struct Key: Decodable {
      var secret: String
      var collection: String
      var id: String
      var hash: String
    }
    var keys: [Key]
  }

  static func load<Vectors: Decodable>(_ name: String) throws -> Vectors {
    let file = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("Spec/vectors/\(name).json")
    return try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file))
  }

  /// The bytes of a hexadecimal text.
  static func bytes(_ hex: String) -> [UInt8] {
    let digits = hex.utf8.map { UInt8(String(UnicodeScalar($0)), radix: 16)! }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }
}
