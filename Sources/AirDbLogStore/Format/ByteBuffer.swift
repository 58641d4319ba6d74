/// A growable run of raw bytes: what frames, pages and manifests are encoded into.
///
/// Owned by one place at a time, reusable with ``removeAll()`` so that the write path does not
/// allocate for each commit.
package struct ByteBuffer: ~Copyable {
  package private(set) var base: UnsafeMutableRawPointer
  package private(set) var count: Int
  private var capacity: Int

  package init(capacity: Int = 256) {
    self.capacity = max(capacity, 16)
    base = .allocate(byteCount: self.capacity, alignment: 16)
    count = 0
  }

  deinit { base.deallocate() }

  package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }

  package mutating func removeAll() { count = 0 }

  /// Gives back what a rare large use took.
  package mutating func shrink(toCapacity limit: Int) {
    guard capacity > limit, count == 0 else { return }
    base.deallocate()
    capacity = max(limit, 16)
    base = .allocate(byteCount: capacity, alignment: 16)
  }

  package mutating func reserve(_ extra: Int) {
    let needed = count + extra
    guard needed > capacity else { return }
    let larger = max(needed, capacity * 2)
    let fresh = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 16)
    fresh.copyMemory(from: base, byteCount: count)
    base.deallocate()
    base = fresh
    capacity = larger
  }

  /// Appends `size` bytes that the caller fills at once through the pointer.
  package mutating func append(uninitialized size: Int) -> UnsafeMutableRawBufferPointer {
    reserve(size)
    let region = UnsafeMutableRawBufferPointer(start: base + count, count: size)
    count += size
    return region
  }

  package mutating func removeLast(_ size: Int) { count -= size }

  package mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress, bytes.count > 0 else { return }
    reserve(bytes.count)
    (base + count).copyMemory(from: source, byteCount: bytes.count)
    count += bytes.count
  }

  package mutating func append(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { append($0) }
  }

  package mutating func append(_ text: StaticString) {
    append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  package mutating func append<T: FixedWidthInteger>(_ value: T) {
    reserve(MemoryLayout<T>.size)
    (base + count).storeBytes(of: value.littleEndian, as: T.self)
    count += MemoryLayout<T>.size
  }

  package mutating func appendZeros(_ size: Int) {
    guard size > 0 else { return }
    reserve(size)
    (base + count).initializeMemory(as: UInt8.self, repeating: 0, count: size)
    count += size
  }

  /// Zeros up to a multiple of `alignment`.
  package mutating func pad(to alignment: Int) {
    appendZeros((alignment - count % alignment) % alignment)
  }

  /// Unsigned LEB128 (Format 1).
  package mutating func appendVarint(_ value: UInt64) {
    reserve(10)
    var rest = value
    while rest >= 0x80 {
      (base + count).storeBytes(of: UInt8(truncatingIfNeeded: rest) | 0x80, as: UInt8.self)
      count += 1
      rest >>= 7
    }
    (base + count).storeBytes(of: UInt8(truncatingIfNeeded: rest), as: UInt8.self)
    count += 1
  }

  package mutating func appendZigzag(_ value: Int64) {
    appendVarint(UInt64(bitPattern: (value << 1) ^ (value >> 63)))
  }

  /// The lowest `width` bytes of `value`, little-endian.
  package mutating func append(_ value: UInt64, width: Int) {
    reserve(8)
    (base + count).storeBytes(of: value.littleEndian, as: UInt64.self)
    count += width
  }

  /// Overwrites bytes that were appended before.
  package mutating func store<T: FixedWidthInteger>(_ value: T, at offset: Int) {
    precondition(offset >= 0 && offset + MemoryLayout<T>.size <= count)
    (base + offset).storeBytes(of: value.littleEndian, as: T.self)
  }

  /// Overwrites bytes that were appended before.
  package mutating func replace(at offset: Int, with bytes: UnsafeRawBufferPointer) {
    precondition(offset >= 0 && offset + bytes.count <= count)
    (base + offset).copyMemory(from: bytes.baseAddress!, byteCount: bytes.count)
  }
}

/// What a decoder found wrong with bytes that it was given.
package struct FormatError: Error, Sendable, Equatable {
  /// What is wrong, as a phrase that follows "damaged: ".
  package let reason: String
  /// Where, relative to the bytes given.
  package let offset: Int

  package init(_ reason: String, at offset: Int = 0) {
    self.reason = reason
    self.offset = offset
  }
}

/// Reads untrusted bytes: every step is checked against what is left, nothing traps.
package struct ByteReader {
  package let bytes: UnsafeRawBufferPointer
  package private(set) var offset: Int

  package init(_ bytes: UnsafeRawBufferPointer, at offset: Int = 0) {
    precondition(offset >= 0 && offset <= bytes.count)
    self.bytes = bytes
    self.offset = offset
  }

  package var remaining: Int { bytes.count - offset }

  @inline(__always)
  package mutating func read<T: FixedWidthInteger>(
    _ type: T.Type = T.self
  ) throws(FormatError) -> T {
    let size = MemoryLayout<T>.size
    guard remaining >= size else { throw FormatError("ends inside a field", at: offset) }
    let value = bytes.loadUnaligned(fromByteOffset: offset, as: T.self)
    offset += size
    return T(littleEndian: value)
  }

  @inline(__always)
  package mutating func read(count: Int) throws(FormatError) -> UnsafeRawBufferPointer {
    guard count >= 0, remaining >= count else {
      throw FormatError("a length goes past the end", at: offset)
    }
    let slice = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
    offset += count
    return slice
  }

  @inline(__always)
  package mutating func readVarint() throws(FormatError) -> UInt64 {
    // Nearly all varints of the format are one byte, and most of the others two.
    if offset + 1 < bytes.count {
      let first = bytes[offset]
      if first < 0x80 {
        offset += 1
        return UInt64(first)
      }
      let second = bytes[offset + 1]
      if second < 0x80, second > 0 {
        offset += 2
        return UInt64(first & 0x7F) | UInt64(second) << 7
      }
    }
    return try readLongVarint()
  }

  @inline(never)
  private mutating func readLongVarint() throws(FormatError) -> UInt64 {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while true {
      let byte: UInt8 = try read()
      if shift == 63, byte > 1 { throw FormatError("a varint above 64 bits", at: offset - 1) }
      value |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 {
        if byte == 0, shift > 0 {
          throw FormatError("a varint not in shortest form", at: offset - 1)
        }
        return value
      }
      shift += 7
      if shift > 63 { throw FormatError("a varint above 10 bytes", at: offset - 1) }
    }
  }

  @inline(__always)
  package mutating func readZigzag() throws(FormatError) -> Int64 {
    let value = try readVarint()
    return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
  }

  /// A varint that says how many bytes follow, and those bytes.
  @inline(__always)
  package mutating func readSized(limit: Int) throws(FormatError) -> UnsafeRawBufferPointer {
    let start = offset
    let size = try readVarint()
    guard size <= UInt64(limit), size <= UInt64(remaining) else {
      throw FormatError("a length goes past its limit", at: start)
    }
    return try read(count: Int(size))
  }

  package mutating func readZeros(_ count: Int) throws(FormatError) {
    let start = offset
    let slice = try read(count: count)
    guard slice.isZero else { throw FormatError("reserved bytes are not zero", at: start) }
  }
}

extension UnsafeRawBufferPointer {
  /// Whether all bytes are zero.
  package var isZero: Bool {
    var index = 0
    while index + 8 <= count {
      if loadUnaligned(fromByteOffset: index, as: UInt64.self) != 0 { return false }
      index += 8
    }
    while index < count {
      if self[index] != 0 { return false }
      index += 1
    }
    return true
  }

  /// Whether all bytes are those of ASCII characters, which no UTF-8 sequence of others has.
  package var isASCII: Bool {
    var bits: UInt64 = 0
    var index = 0
    while index + 8 <= count {
      bits |= loadUnaligned(fromByteOffset: index, as: UInt64.self)
      index += 8
    }
    while index < count {
      bits |= UInt64(self[index])
      index += 1
    }
    return bits & 0x8080_8080_8080_8080 == 0
  }

  package func load<T: FixedWidthInteger>(_ type: T.Type, at offset: Int) -> T {
    T(littleEndian: loadUnaligned(fromByteOffset: offset, as: T.self))
  }

  /// The `width` bytes at `offset` as a number.
  package func load(at offset: Int, width: Int) -> UInt64 {
    if count >= 8 {
      // Near the end the last eight bytes, less those before the offset.
      let start = Swift.min(offset, count - 8)
      let value = load(UInt64.self, at: start) >> UInt64(8 * (offset - start))
      return width >= 8 ? value : value & ((1 << (UInt64(width) * 8)) - 1)
    }
    var value: UInt64 = 0
    for index in 0..<width { value |= UInt64(self[offset + index]) << UInt64(8 * index) }
    return value
  }

  /// Order by bytes, a prefix first.
  package func compare(_ other: UnsafeRawBufferPointer) -> Int {
    let shared = Swift.min(count, other.count)
    var index = 0
    while index + 8 <= shared {
      let a = UInt64(bigEndian: loadUnaligned(fromByteOffset: index, as: UInt64.self))
      let b = UInt64(bigEndian: other.loadUnaligned(fromByteOffset: index, as: UInt64.self))
      if a != b { return a < b ? -1 : 1 }
      index += 8
    }
    while index < shared {
      if self[index] != other[index] { return self[index] < other[index] ? -1 : 1 }
      index += 1
    }
    return count == other.count ? 0 : count < other.count ? -1 : 1
  }

  package func equals(_ other: UnsafeRawBufferPointer) -> Bool {
    count == other.count && compare(other) == 0
  }
}

/// Calls `body` with the bytes of an array. (`Array.withUnsafeBytes` does not pass on the type of
/// what is thrown.)
package func withBytes<Result, Failure: Error>(
  of array: [UInt8], _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
) throws(Failure) -> Result {
  try array.withUnsafeBufferPointer { (buffer) throws(Failure) in
    try body(UnsafeRawBufferPointer(buffer))
  }
}
