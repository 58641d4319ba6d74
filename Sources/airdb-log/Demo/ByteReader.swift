import Foundation

/// A stream ended where its format goes on.
struct UnexpectedEnd: Error {}

/// Reads a pipe in the pieces that its format has.
struct ByteReader {
  private let descriptor: Int32
  private var buffer = [UInt8](repeating: 0, count: 64 << 10)
  private var start = 0
  private var end = 0

  init(_ descriptor: Int32) {
    self.descriptor = descriptor
  }

  /// The bytes up to a delimiter, which is consumed; nil at the end.
  ///
  /// - Throws: ``UnexpectedEnd`` if the stream ends before the delimiter.
  mutating func bytes(until delimiter: UInt8) throws -> [UInt8]? {
    var result: [UInt8] = []
    while true {
      if let found = buffer[start..<end].firstIndex(of: delimiter) {
        result.append(contentsOf: buffer[start..<found])
        start = found + 1
        return result
      }
      result.append(contentsOf: buffer[start..<end])
      guard try fill() else {
        if result.isEmpty { return nil }
        throw UnexpectedEnd()
      }
    }
  }

  /// Exactly so many bytes.
  mutating func data(count: Int) throws -> Data {
    var result = Data(count: count)
    let fromBuffer = min(count, end - start)
    try result.withUnsafeMutableBytes { target in
      target.copyBytes(from: buffer[start..<(start + fromBuffer)])
      var filled = fromBuffer
      while filled < count {
        let got = try Self.readSome(descriptor, into: .init(rebasing: target[filled...]))
        guard got > 0 else { throw UnexpectedEnd() }
        filled += got
      }
    }
    start += fromBuffer
    return result
  }

  /// Passes over so many bytes.
  mutating func skip(_ count: Int) throws {
    var rest = count
    while rest > 0 {
      if start == end, try !fill() { throw UnexpectedEnd() }
      let step = min(rest, end - start)
      start += step
      rest -= step
    }
  }

  /// Reads more into the empty buffer; false at the end.
  private mutating func fill() throws -> Bool {
    start = 0
    end = 0
    end = try buffer.withUnsafeMutableBytes { try Self.readSome(descriptor, into: $0) }
    return end > 0
  }

  private static func readSome(
    _ descriptor: Int32, into target: UnsafeMutableRawBufferPointer
  ) throws -> Int {
    while true {
      let count = read(descriptor, target.baseAddress, target.count)
      if count >= 0 { return count }
      guard errno == EINTR else {
        throw ToolError(.notFound, "Could not read from a process: \(systemErrorText()).")
      }
    }
  }
}
