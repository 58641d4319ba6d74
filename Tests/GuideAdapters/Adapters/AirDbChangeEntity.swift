// swift-format-ignore-file
// The entity of AirDB's SwiftData guide. Macros cannot be stood in for without a compiler plug-in,
// so what `@Model` states is written out: the conformance. `@Attribute(.unique)` and `#Index` are
// left out; the adapter looks a key up before it inserts, and an index changes no result.
import Foundation
import SwiftData

public final class AirDbChangeEntity: PersistentModel {
    public var compositeKey: String // collection + ":" + id

    public var collection: String
    public var recordId: String
    public var mutationType: Int
    public var payload: Data

    public var hlcTimestamp: String

    public var authorPublicKey: Data?
    public var signature: Data?
    public var createdAt: Date

    public init(
        collection: String,
        recordId: String,
        mutationType: Int,
        payload: Data,
        hlcTimestamp: String,
        authorPublicKey: Data? = nil,
        signature: Data? = nil,
        createdAt: Date = Date()
    ) {
        self.compositeKey = "\(collection):\(recordId)"
        self.collection = collection
        self.recordId = recordId
        self.mutationType = mutationType
        self.payload = payload
        self.hlcTimestamp = hlcTimestamp
        self.authorPublicKey = authorPublicKey
        self.signature = signature
        self.createdAt = createdAt
    }
}
