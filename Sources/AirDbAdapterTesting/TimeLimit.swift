/// The result of `body`, or nil if it takes longer than a time limit. Then `body` is cancelled, and
/// left behind if that does not end it.
func first<Value: Sendable>(
  within limit: Duration, _ body: @escaping @Sendable () async -> Value
) async -> Value? {
  let answer = FirstAnswer<Value?>()
  let work = Task { await answer.give(await body()) }
  let timer = Task {
    // Cancelled as soon as there is an answer; its own then comes too late to count.
    try? await Task.sleep(for: limit)
    await answer.give(nil)
  }
  defer {
    work.cancel()
    timer.cancel()
  }
  return await withTaskCancellationHandler {
    await answer.value
  } onCancel: {
    work.cancel()
  }
}

/// A value that is given once, and again in vain.
private actor FirstAnswer<Value: Sendable> {
  private var given: Value?
  private var waiting: CheckedContinuation<Value, Never>?

  func give(_ value: Value) {
    guard given == nil else { return }
    given = .some(value)
    waiting?.resume(returning: value)
    waiting = nil
  }

  var value: Value {
    get async {
      if let given { return given }
      return await withCheckedContinuation { waiting = $0 }
    }
  }
}
