import AirDbContract
import Foundation
import Testing

@Suite("ChangeRecord")
struct ChangeRecordTests {
  private let record = ChangeRecord(
    id: "id", collection: "collection", type: .update, payload: Data([1, 2]),
    hlcTimestamp: "1700000000000-0-a", authorPublicKey: Data([3]), signature: Data([4]))

  @Test("every part counts in equality")
  func everyPart() {
    let changes: [(inout ChangeRecord) -> Void] = [
      { $0.id = "other" },
      { $0.collection = "other" },
      { $0.type = .insert },
      { $0.payload = Data([1]) },
      { $0.hlcTimestamp = "1700000000000-00-a" },
      { $0.authorPublicKey = Data([9]) },
      { $0.signature = Data([9]) },
    ]
    for change in changes {
      var other = record
      #expect(other == record && other.hashValue == record.hashValue)
      change(&other)
      #expect(other != record)
    }
  }

  @Test("nil and empty author keys and signatures are different")
  func nilAndEmpty() {
    var absent = record
    var empty = record
    (absent.authorPublicKey, empty.authorPublicKey) = (nil, Data())
    #expect(absent != empty)
    empty.authorPublicKey = nil
    #expect(absent == empty)
    (absent.signature, empty.signature) = (nil, Data())
    #expect(absent != empty)
  }

  @Test("an unsigned change has neither author key nor signature")
  func unsigned() {
    let record = ChangeRecord(
      id: "", collection: "", type: .insert, payload: Data(), hlcTimestamp: "")
    #expect(record.authorPublicKey == nil && record.signature == nil)
  }

  @Test("canonically equivalent texts are different texts")
  func canonicalEquivalence() {
    let composed = "\u{E9}"
    let decomposed = "e\u{301}"
    #expect(composed == decomposed)
    for part in [\ChangeRecord.id, \.collection, \.hlcTimestamp] {
      var one = record
      var other = record
      one[keyPath: part] = composed
      other[keyPath: part] = decomposed
      #expect(one != other)
      #expect(Set([one, other]).count == 2)
    }
  }

  @Test("a collection and an id are two texts, not one")
  func boundaries() {
    var one = record
    var other = record
    (one.id, one.collection) = ("b:c", "a")
    (other.id, other.collection) = ("c", "a:b")
    #expect(one != other)
    #expect(one.hashValue != other.hashValue)
  }

  @Test("a slice of data counts by its bytes")
  func slices() {
    var other = record
    other.payload = Data([0, 1, 2, 3])[1...2]
    #expect(other == record)
    #expect(Set([other, record]).count == 1)
  }
}
