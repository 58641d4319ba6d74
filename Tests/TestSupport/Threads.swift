import Dispatch

/// Runs `body` on so many threads at once, each with its number, and returns when all have
/// returned. Real threads, since bodies that wait for each other would starve on a pool as wide as
/// the machine.
package func inThreads(_ count: Int, _ body: @escaping @Sendable (_ index: Int) -> Void) {
  let group = DispatchGroup()
  for index in 0..<count {
    // Each serial queue has a thread of its own.
    DispatchQueue(label: "test thread \(index)").async(group: group) { body(index) }
  }
  group.wait()
}
