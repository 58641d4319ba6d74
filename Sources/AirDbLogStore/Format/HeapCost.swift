/// What is counted for memory on the heap, in bytes: not less than it takes.
enum HeapCost {
  /// An object with a few fields, with room to spare.
  static let object = 256

  /// An allocation of so many bytes: the allocator's own part, and what it rounds up.
  static func allocation(_ count: Int) -> Int { (count + 31) & ~15 }

  /// The storage of an array, or of a text as one of bytes.
  static func array<Element>(of count: Int, _: Element.Type) -> Int {
    count == 0 ? 0 : allocation(32 + count * MemoryLayout<Element>.stride)
  }
}
