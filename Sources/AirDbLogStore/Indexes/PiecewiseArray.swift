/// An array in pieces of a fixed size: growing moves nothing that is there, and a change to one
/// that somebody has a copy of copies one piece. So neither holds up a commit, however long the array is.
package struct PiecewiseArray<Element: Sendable>: Sendable {
  // With 64 bytes an element a piece is below what the allocator maps by itself.
  private static var pieceBits: Int { 10 }
  private static var pieceSize: Int { 1 << pieceBits }

  private var pieces: ContiguousArray<ContiguousArray<Element>> = []
  package private(set) var count = 0

  package init() {}

  @inline(__always)
  package mutating func append(_ element: Element) {
    if count & (Self.pieceSize - 1) == 0 { addPiece() }
    pieces[count >> Self.pieceBits].append(element)
    count += 1
  }

  package mutating func append(contentsOf elements: some Sequence<Element>) {
    for element in elements { append(element) }
  }

  private mutating func addPiece() {
    var piece: ContiguousArray<Element> = []
    // The first one grows, since most arrays are small.
    if count > 0 { piece.reserveCapacity(Self.pieceSize) }
    pieces.append(piece)
  }
}

extension PiecewiseArray: RandomAccessCollection, MutableCollection {
  package var startIndex: Int { 0 }
  package var endIndex: Int { count }

  @inline(__always)
  package subscript(position: Int) -> Element {
    get { pieces[position >> Self.pieceBits][position & (Self.pieceSize - 1)] }
    _modify { yield &pieces[position >> Self.pieceBits][position & (Self.pieceSize - 1)] }
  }
}
