/// Which commits a fetch shows.
///
/// Authors and collections are compared by their UTF-8 bytes. Since a `Set<String>` takes texts that look
/// alike for equal, it holds one spelling of "é" only: the one that was put in first.
public struct CommitFilter: Sendable {
  /// Commits of these authors only; nil: of all.
  public var authors: Set<String>?
  /// Not the commits of these: a reader's own, which it need not take in again.
  public var excludedAuthors: Set<String>
  /// Only the changes of these collections, and only commits that have one; nil: all.
  public var collections: Set<String>?

  /// Creates a filter; without arguments, one that shows everything.
  public init(
    authors: Set<String>? = nil, excludedAuthors: Set<String> = [],
    collections: Set<String>? = nil
  ) {
    self.authors = authors
    self.excludedAuthors = excludedAuthors
    self.collections = collections
  }

  /// Everything.
  public static let all = CommitFilter()

  /// The filter in the terms of the engine.
  package var predicate: Engine.CommitPredicate {
    var predicate = Engine.CommitPredicate()
    predicate.authors = authors.map(Self.bytes)
    predicate.excludedAuthors = Self.bytes(excludedAuthors)
    predicate.collections = collections.map(Self.bytes)
    return predicate
  }

  private static func bytes(_ texts: Set<String>) -> Set<[UInt8]> {
    Set(texts.map { Array($0.utf8) })
  }
}

extension CommitFilter: Hashable {
  public static func == (a: CommitFilter, b: CommitFilter) -> Bool { a.predicate == b.predicate }

  public func hash(into hasher: inout Hasher) { hasher.combine(predicate) }
}
