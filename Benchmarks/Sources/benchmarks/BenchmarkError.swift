/// Why a benchmark could not be run, or what was wrong with its result.
struct BenchmarkError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
