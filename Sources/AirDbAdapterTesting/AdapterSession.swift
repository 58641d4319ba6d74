/// An adapter under test, and what can be done with it beside its three methods.
protocol AdapterSession: Sendable {
  var adapter: any AirDbAdapter & Sendable { get }

  /// Puts the reopened adapter in the place of this one.
  mutating func reopen() async throws

  func dispose() async throws
}

/// A session with an adapter of a known type.
struct Session<Adapter: AirDbAdapter & Sendable>: AdapterSession {
  private(set) var current: Adapter
  let reopening: (@Sendable (Adapter) async throws -> Adapter)?
  let disposing: (@Sendable (Adapter) async throws -> Void)?

  var adapter: any AirDbAdapter & Sendable { current }

  mutating func reopen() async throws {
    if let reopening { current = try await reopening(current) }
  }

  func dispose() async throws {
    try await disposing?(current)
  }
}
