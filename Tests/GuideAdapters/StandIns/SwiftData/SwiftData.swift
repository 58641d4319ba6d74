public import Foundation

/// What AirDB's SwiftData guide uses of SwiftData, with SwiftData's public signatures, over a list
/// of models in memory. `#Predicate` and `SortDescriptor` are those of Foundation.

public protocol PersistentModel: AnyObject {}

public struct FetchDescriptor<T: PersistentModel> {
  public var predicate: Predicate<T>?
  public var sortBy: [SortDescriptor<T>]
  public var fetchLimit: Int?

  public init(predicate: Predicate<T>? = nil, sortBy: [SortDescriptor<T>] = []) {
    self.predicate = predicate
    self.sortBy = sortBy
  }
}

public final class ModelContainer: Sendable {
  @MainActor private var context: ModelContext?

  public init(for forTypes: any PersistentModel.Type...) throws {}

  @MainActor public var mainContext: ModelContext {
    let context = context ?? ModelContext(self)
    self.context = context
    return context
  }
}

public class ModelContext {
  private var models: [any PersistentModel] = []

  public init(_ container: ModelContainer) {}

  public func fetch<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> [T] {
    var found = models.compactMap { $0 as? T }
    if let predicate = descriptor.predicate {
      found = try found.filter { try predicate.evaluate($0) }
    }
    found.sort(using: descriptor.sortBy)
    return descriptor.fetchLimit.map { Array(found.prefix($0)) } ?? found
  }

  public func insert<T: PersistentModel>(_ model: T) {
    models.append(model)
  }

  public func save() throws {}
}
