import AirDbAdapterTesting
import AirDbLogStore
import Testing

/// The examples of exchanging and shadowing; see Examples.swift.
struct ConvergenceExamples {
  @Test func converge() async throws {
    let (store, peer) = (try ChangeStore.inMemory(), ReferenceAdapter())
    // example: Converge
    let result = try await store.converge(with: peer)
    if !result.isQuiet { print("others go on writing, or an adapter loses changes") }
    // end
    #expect(result.isQuiet)
  }

  @Test func shadow() async throws {
    let (old, store) = (ReferenceAdapter(), try ChangeStore.inMemory())
    // example: ShadowAdapter
    _ = try await old.converge(with: store)
    let adapter = ShadowAdapter(primary: old, shadow: store) { difference in
      print("the new store differs: \(difference)")
    }
    // end
    #expect(try await adapter.getLatestHlc() == nil)
  }
}
