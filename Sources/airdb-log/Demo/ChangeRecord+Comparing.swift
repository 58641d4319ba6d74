import AirDbLogStore

extension ChangeRecord {
  /// Whether all parts are equal, texts by their UTF-8 bytes.
  ///
  /// Written out, since AirDB's own record, which the trait UpstreamAirDbKit puts here, may not be
  /// `Equatable`.
  func isSame(as other: ChangeRecord) -> Bool {
    id.utf8.elementsEqual(other.id.utf8)
      && collection.utf8.elementsEqual(other.collection.utf8)
      && type.rawValue == other.type.rawValue
      && hlcTimestamp.utf8.elementsEqual(other.hlcTimestamp.utf8)
      && payload == other.payload
      && authorPublicKey == other.authorPublicKey
      && signature == other.signature
  }
}

/// Whether two records are the same, or both are absent.
func areSame(_ first: ChangeRecord?, _ second: ChangeRecord?) -> Bool {
  switch (first, second) {
  case (let first?, let second?): first.isSame(as: second)
  case (nil, nil): true
  default: false
  }
}
