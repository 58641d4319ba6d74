/// What is wrong with a ``FlawedAdapter``.
enum Flaw: CaseIterable {
  // Reading
  case latestOfNothingIsEmpty, refusesEmptyBatches
  case ordersByArrival, ordersByText
  case givesTheCursorItself, takesUnknownCursorsForNone
  case takesNoLimitForAll, endsPagesEarly, splitsEqualTimestamps
  case latestIsLastWritten, latestSkipsDeletions, latestIsGreatestText

  // Writing
  case lastArrivalWins, firstArrivalWins, equalReplaces, mergesByText
  case keepsVersions, keepsPlace
  case comparesWithStoredOnly, repeatsRedelivered
  case hidesDeletions, forgetsDeletions, emptiesDeletions
  case keepsWhatCameBeforeTheRefused, skipsTheRefused, breaksWhenItRefuses, acceptsTheLong
  case unsignedNeverReplacesSigned

  // Fields
  case joinsKeys, normalizesKeys, foldsCase, endsIdsAtNul
  case emptyIsNil, emptyKeyIsNil, nilIsEmpty, nilSignatureIsEmpty
  case payloadIsText, keyIsText, signatureIsText, respellsTimestamps
  case dropsByteOrderMark, endsPayloadsAtNul, foldsLineEnds, normalizesPayloads, sortsJsonKeys
  case shortensPayloads, shortensIds
  case dropsUnknownTypes, takesUnknownForUpdate, storesTypesIn16Bits

  // Storage
  case forgetsLastBatch, forgetsLatest, readsBackWithoutByteOrderMark

  // Concurrency
  case writesLate, showsParts
  case stopsWhenCancelled, claimsToApplyWhenCancelled, breaksWhenCancelled
}
