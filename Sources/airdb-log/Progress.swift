import Foundation

/// A line that shows how far something is, on a terminal only.
///
/// `@unchecked Sendable`: the variables are only touched under the lock.
final class Progress: @unchecked Sendable {
  private let label: String
  private let lock = NSLock()
  private var nextDraw = ContinuousClock.now
  private var isShown = false

  /// Drawing more often would cost more than it tells.
  private static let interval = Duration.milliseconds(100)
  private static let width = 30

  init(_ label: String) {
    self.label = label
  }

  /// Shows the part that is done, 0...1, and a text about it.
  func show(_ part: Double, _ text: @autoclosure () -> String = "") {
    guard Output.errors.isTerminal else { return }
    lock.withLock {
      let now = ContinuousClock.now
      guard now >= nextDraw else { return }
      nextDraw = now + Self.interval
      isShown = true
      let part = min(max(part, 0), 1)
      let done = Int(part * Double(Self.width))
      let bar =
        String(repeating: "#", count: done) + String(repeating: ".", count: Self.width - done)
      let percent = Figures.padded("\(Int(part * 100))", 3)
      draw("\(label)  [\(bar)] \(percent) %  \(text())")
    }
  }

  /// Takes the line away again.
  func finish() {
    lock.withLock {
      if isShown { draw("") }
      isShown = false
    }
  }

  private func draw(_ line: String) {
    try? Output.errors.write("\r\u{1B}[K\(line)".utf8)
  }
}
