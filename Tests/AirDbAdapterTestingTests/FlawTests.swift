import AirDbAdapterTesting
import Foundation
import Testing

/// Every check notices what it is for; and an adapter that breaks one rule fails the checks that
/// rest on that rule, and no others.
struct FlawTests {
  typealias Check = AdapterConformance.Check

  /// What an adapter with a flaw fails of the checks that are the same each time.
  static let table: [Flaw: Set<Check>] = [
    .latestOfNothingIsEmpty: [.empty, .reopening],
    .refusesEmptyBatches: [.empty],
    .ordersByArrival: [
      .order, .strictCursor, .newestOnly, .comparator, .equalTimestamps, .batchAtomicity,
      .reopening,
    ],
    .ordersByText: [.comparator, .batchAtomicity],
    // No sweep of pages comes to its end.
    .givesTheCursorItself: [
      .strictCursor, .limit, .newestOnly, .redelivery, .comparator, .equalTimestamps,
      .largeFields, .unknownTypes, .reopening,
    ],
    .takesUnknownCursorsForNone: [.strictCursor],
    .takesNoLimitForAll: [.noLimit],
    .endsPagesEarly: [.limit, .comparator, .equalTimestamps],
    .splitsEqualTimestamps: [.comparator, .equalTimestamps],
    .latestIsLastWritten: [.latest, .comparator, .batchAtomicity, .reopening],
    .latestSkipsDeletions: [.latest, .redelivery, .deletions, .reopening],
    .latestIsGreatestText: [.comparator, .batchAtomicity],
    .lastArrivalWins: [
      .lastWriterWins, .staleChanges, .duplicatesInBatch, .redelivery, .deletions, .comparator,
      .reopening,
    ],
    .firstArrivalWins: [
      .latest, .lastWriterWins, .newestOnly, .duplicatesInBatch, .redelivery, .deletions,
      .comparator, .keyPairs, .keyBytes, .batchAtomicity, .reopening, .cancellation,
    ],
    .equalReplaces: [.staleChanges, .duplicatesInBatch, .comparator],
    .mergesByText: [.comparator],
    .keepsVersions: [
      .lastWriterWins, .newestOnly, .duplicatesInBatch, .redelivery, .deletions, .comparator,
      .keyPairs, .keyBytes, .batchAtomicity, .reopening, .cancellation,
    ],
    .keepsPlace: [
      .newestOnly, .duplicatesInBatch, .redelivery, .keyPairs, .keyBytes, .reopening,
      .cancellation,
    ],
    .comparesWithStoredOnly: [.duplicatesInBatch],
    .repeatsRedelivered: [.redelivery, .largeFields, .reopening],
    .hidesDeletions: [.duplicatesInBatch, .redelivery, .deletions, .fields, .reopening],
    .forgetsDeletions: [.duplicatesInBatch, .redelivery, .deletions, .fields, .reopening],
    .emptiesDeletions: [.duplicatesInBatch, .redelivery, .deletions, .fields, .reopening],
    .keepsWhatCameBeforeTheRefused: [.batchAtomicity],
    .skipsTheRefused: [.batchAtomicity],
    .breaksWhenItRefuses: [.batchAtomicity],
    .acceptsTheLong: [.batchAtomicity],
    // Only chance brings the two together.
    .unsignedNeverReplacesSigned: [],
    .joinsKeys: [.keyPairs],
    .normalizesKeys: [.keyBytes],
    .foldsCase: [.keyBytes],
    .endsIdsAtNul: [.keyPairs, .keyBytes, .reopening],
    .emptyIsNil: [.fields, .reopening],
    .emptyKeyIsNil: [.fields, .reopening],
    // Wrong for every change that is not signed.
    .nilIsEmpty: Set(Check.all).subtracting([.noLimit, .latest]),
    .nilSignatureIsEmpty: Set(Check.all).subtracting([.noLimit, .latest]),
    .payloadIsText: [.fields, .largeFields, .reopening],
    .keyIsText: [.fields, .reopening],
    .signatureIsText: [.fields, .reopening],
    .dropsByteOrderMark: [.fields, .reopening],
    .endsPayloadsAtNul: [.fields, .largeFields, .reopening],
    .foldsLineEnds: [.fields, .largeFields, .reopening],
    // A timestamp with a decomposed node is a part of payloads of the samples.
    .normalizesPayloads: [.comparator, .fields, .reopening],
    // Only the app's own contents have keys.
    .sortsJsonKeys: [],
    .respellsTimestamps: [.comparator, .fields],
    .shortensPayloads: [.largeFields],
    .shortensIds: [.largeFields],
    .dropsUnknownTypes: [.unknownTypes],
    .takesUnknownForUpdate: [.unknownTypes],
    .storesTypesIn16Bits: [.unknownTypes],
    .forgetsLastBatch: [.reopening],
    .forgetsLatest: [.reopening],
    .readsBackWithoutByteOrderMark: [.reopening],
    // The check that notices is one of the incidental ones.
    .writesLate: [],
    .showsParts: [],
    .stopsWhenCancelled: [.cancellation],
    .claimsToApplyWhenCancelled: [.cancellation],
    .breaksWhenCancelled: [.cancellation],
  ]

  /// Those whose result may depend on chance or on the scheduler for flaws that they are not for.
  static let incidental: Set<Check> = [.randomScripts, .concurrentWriters, .concurrentReaders]

  @Test(arguments: Flaw.allCases)
  func aFlawFailsWhatRestsOnTheRule(flaw: Flaw) async throws {
    let expected = try #require(Self.table[flaw]).subtracting(Self.incidental)
    let checks = Check.all.filter { !Self.incidental.contains($0) }
    let report = await conformance(of: [flaw]).run(checks)
    let failed = Set(report.failures.map(\.check))
    #expect(failed.subtracting(expected) == [], "unexpected:\n\(report)")
    #expect(expected.subtracting(failed) == [], "not noticed")
  }

  /// The flaw that a check is there for, another one for each.
  static let own: [Check: Flaw] = [
    .empty: .refusesEmptyBatches, .order: .ordersByArrival,
    .strictCursor: .takesUnknownCursorsForNone, .noLimit: .takesNoLimitForAll,
    .limit: .endsPagesEarly, .latest: .latestIsLastWritten, .lastWriterWins: .lastArrivalWins,
    .staleChanges: .equalReplaces, .newestOnly: .keepsPlace,
    .duplicatesInBatch: .comparesWithStoredOnly, .redelivery: .repeatsRedelivered,
    .deletions: .hidesDeletions, .comparator: .mergesByText,
    .equalTimestamps: .splitsEqualTimestamps, .keyPairs: .joinsKeys, .keyBytes: .normalizesKeys,
    .fields: .dropsByteOrderMark, .largeFields: .shortensPayloads,
    .unknownTypes: .dropsUnknownTypes,
    .batchAtomicity: .keepsWhatCameBeforeTheRefused, .reopening: .forgetsLastBatch,
    .concurrentWriters: .writesLate, .concurrentReaders: .showsParts,
    .cancellation: .stopsWhenCancelled, .randomScripts: .unsignedNeverReplacesSigned,
  ]

  @Test(arguments: Check.all)
  func aCheckNoticesAFlawOfItsOwn(check: Check) async throws {
    let flaw = try #require(Self.own[check])
    let report = await conformance(of: [flaw]).run([check])
    #expect(report.failures.map(\.check) == [check])
  }

  @Test func noFlawStandsForTwoChecks() {
    #expect(Set(Self.own.values).count == Check.all.count)
  }

  /// Random calls meet the bytes that texts lose.
  @Test(
    arguments: [
      .emptyIsNil, .emptyKeyIsNil, .payloadIsText, .dropsByteOrderMark, .endsPayloadsAtNul,
      .foldsLineEnds,
    ] as [Flaw])
  func randomScriptsHaveTreacherousBytes(flaw: Flaw) async {
    var options = AdapterConformance.Options()
    options.shrinkAttempts = 0
    let report = await conformance(of: [flaw], options: options).run([.randomScripts])
    #expect(report.failures.map(\.check) == [.randomScripts])
  }

  @Test(arguments: [Check.fields, .reopening, .randomScripts])
  func contentsOfTheAppAreStoredToo(check: Check) async {
    var options = AdapterConformance.Options()
    options.shrinkAttempts = 20
    for (payload, passes) in [(#"{"a":"","b":""}"#, true), (#"{"b":"","a":""}"#, false)] {
      options.payloads = [Data(payload.utf8)]
      let report = await conformance(of: [.sortsJsonKeys], options: options).run([check])
      #expect(report.isConforming == passes, "\(report)")
    }
  }

  @Test func anAdapterWithoutFlawsPasses() async {
    let report = await conformance(of: []).run()
    #expect(report.outcomes.map(\.check) == Check.all)
    #expect(report.isConforming, "\(report)")
  }

  /// What the guides' adapters do: texts for order, a key of two parts, limits that split.
  @Test func anAdapterAsTheGuidesWriteItFails() async {
    let flaws: Set<Flaw> = [
      .ordersByText, .latestIsGreatestText, .joinsKeys, .takesNoLimitForAll, .splitsEqualTimestamps,
    ]
    let checks = Check.all.filter { !Self.incidental.contains($0) }
    let report = await conformance(of: flaws).run(checks)
    #expect(
      Set(report.failures.map(\.check)) == [
        .noLimit, .comparator, .equalTimestamps, .keyPairs, .batchAtomicity,
      ])
  }
}

/// The kit over an adapter with flaws.
func conformance(
  of flaws: Set<Flaw>, options: AdapterConformance.Options? = nil
) -> AdapterConformance {
  var quick = AdapterConformance.Options()
  quick.largestPayload = 70_000
  quick.shrinkAttempts = 0
  quick.randomScripts = 10
  var options = options ?? quick
  // Longer than what the adapter takes.
  options.refusedRecords = [
    ChangeRecord(
      id: String(repeating: "i", count: 2_001), collection: "notes", type: .insert,
      payload: .init(), hlcTimestamp: "1700000000000-0000-a")
  ]
  return AdapterConformance(
    options: options, makeAdapter: { FlawedAdapter(flaws) },
    reopen: { adapter in
      await adapter.reopen()
      return adapter
    })
}
