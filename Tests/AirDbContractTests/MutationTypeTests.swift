import AirDbContract
import Testing

@Suite("MutationType")
struct MutationTypeTests {
  @Test("raw values are those of the guides' stores")
  func rawValues() {
    #expect(MutationType.insert.rawValue == 0)
    #expect(MutationType.update.rawValue == 1)
    #expect(MutationType.delete.rawValue == 2)
  }

  @Test("every raw value is a type and is kept", arguments: [0, 1, 2, 3, -1, .min, .max])
  func everyRawValue(value: Int) throws {
    let type = try #require(MutationType(rawValue: value))
    #expect(type.rawValue == value)
  }

  @Test("a named type is equal to that of its raw value")
  func equality() {
    #expect(MutationType(rawValue: 2) == .delete)
    #expect(MutationType(rawValue: 3) != .delete)
  }

  @Test("a type without a name is described by its number")
  func descriptions() {
    #expect(
      "\(MutationType.insert) \(MutationType.update) \(MutationType.delete)"
        == "insert update delete")
    #expect(MutationType(rawValue: -7)?.description == "MutationType(rawValue: -7)")
  }
}
