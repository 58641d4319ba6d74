public import Foundation

/// What AirDB's Core Data guide uses of Core Data, with Core Data's public signatures, over a list
/// of objects in memory.
///
/// The objects are those of the container: a context that fails does not roll them back.

public protocol NSFetchRequestResult: NSObjectProtocol {}

open class NSManagedObject: NSObject, NSFetchRequestResult {
  private var attributes: [String: Any] = [:]

  public func value(forKey key: String) -> Any? {
    attributes[key]
  }

  public func setValue(_ value: Any?, forKey key: String) {
    attributes[key] = value
  }
}

open class NSFetchRequest<ResultType: NSFetchRequestResult>: NSObject {
  public let entityName: String?
  public var predicate: NSPredicate?
  public var sortDescriptors: [NSSortDescriptor]?
  /// Zero stands for no limit.
  public var fetchLimit = 0

  public init(entityName: String) {
    self.entityName = entityName
  }
}

open class NSEntityDescription: NSObject {
  public static func insertNewObject(
    forEntityName entityName: String, into context: NSManagedObjectContext
  ) -> NSManagedObject {
    let object = NSManagedObject()
    context.container.objects[entityName, default: []].append(object)
    context.hasChanges = true
    return object
  }
}

open class NSManagedObjectContext: NSObject {
  fileprivate let container: NSPersistentContainer
  public fileprivate(set) var hasChanges = false

  fileprivate init(container: NSPersistentContainer) {
    self.container = container
  }

  public func fetch<T: NSFetchRequestResult>(_ request: NSFetchRequest<T>) throws -> [T] {
    var found = container.objects[request.entityName ?? "", default: []]
    if let predicate = request.predicate {
      found = found.filter { predicate.evaluate(with: $0) }
    }
    for descriptor in (request.sortDescriptors ?? []).reversed() {
      found.sort { descriptor.compare($0, to: $1) == .orderedAscending }
    }
    if request.fetchLimit > 0 {
      found = Array(found.prefix(request.fetchLimit))
    }
    return found.compactMap { $0 as? T }
  }

  public func save() throws {
    hasChanges = false
  }
}

/// All use of `objects` is inside `performBackgroundTask`, under the lock.
open class NSPersistentContainer: NSObject, @unchecked Sendable {
  private let lock = NSLock()
  fileprivate var objects: [String: [NSManagedObject]] = [:]

  public func performBackgroundTask<T>(
    _ block: @escaping (NSManagedObjectContext) throws -> T
  ) async rethrows -> T {
    try lock.withLock { try block(NSManagedObjectContext(container: self)) }
  }
}

// MARK: - Key-value coding, which Foundation has on Apple platforms only

extension NSManagedObject {
  fileprivate subscript(text key: String) -> String {
    value(forKey: key) as? String ?? ""
  }
}

extension NSPredicate {
  /// Understands `<key> > %@` and `<key> == %@`, for texts.
  public convenience init(format predicateFormat: String, _ argument: String) {
    let words = predicateFormat.split(separator: " ")
    precondition(words.count == 3 && words[2] == "%@", "unexpected format: \(predicateFormat)")
    let key = String(words[0])
    let isMatch: (String) -> Bool
    switch words[1] {
    case ">": isMatch = { $0 > argument }
    case "==": isMatch = { $0 == argument }
    default: preconditionFailure("unexpected format: \(predicateFormat)")
    }
    self.init { object, _ in
      (object as? NSManagedObject).map { isMatch($0[text: key]) } ?? false
    }
  }
}

extension NSSortDescriptor {
  /// Orders objects by a text.
  public convenience init(key: String, ascending: Bool) {
    self.init(keyPath: \NSManagedObject[text: key], ascending: ascending) { lhs, rhs in
      let (lhs, rhs) = (lhs as? String ?? "", rhs as? String ?? "")
      return lhs < rhs ? .orderedAscending : lhs == rhs ? .orderedSame : .orderedDescending
    }
  }
}
