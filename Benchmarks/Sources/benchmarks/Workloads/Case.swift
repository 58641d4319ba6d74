/// One run of one workload on one engine: what a process is started for.
struct Case: Codable {
  var workload: Workload
  var engine: EngineKind?
  /// Of the store; exists.
  var directory: String
  var records: Int
  var order: HlcOrder = .ascending
  var payloadBytes = RecordSource.standardPayload
  var seed: UInt64 = 1
  var countsAllocations = false
  /// A file of recorded changes, or a git repository.
  var input: String?
}
