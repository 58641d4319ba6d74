extension Platform {
  /// A random number as so many pairs of hexadecimal digits.
  package func randomHexadecimal(bytes count: Int) throws(SystemError) -> String {
    var bytes = [UInt8](repeating: 0, count: count)
    try bytes.withUnsafeMutableBufferPointer { (buffer) throws(SystemError) in
      try fillRandom(UnsafeMutableRawBufferPointer(buffer))
    }
    return bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
