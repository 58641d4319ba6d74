"""Everything that the specification says of a store and that opening it does not check."""

from . import consumers, hlc, index, liveness, manifest as manifests
from .errors import DERIVED_DATA, DecodeError


def check(store):
    """The store's findings: those of its opening, and all that a full check adds."""
    findings = list(store.findings)
    verifications = (
        _check_order_of_versions,
        _check_watermarks,
        _check_greatest_hlc,
        _check_horizon,
    )
    for verify in verifications:
        findings += verify(store)
    ranked = {
        segment.file_id: index.entries_of(
            store.entries(segment.frames), store.manifest.deletion_values
        )
        for segment in store.sealed
    }
    findings += _check_indexes(store, ranked)
    findings += _check_liveness(store, ranked)
    findings += consumers.check(store)
    return findings


def _check_order_of_versions(store):
    """The log holds winners only: a version is greater than all earlier ones of its key, and a
    key occurs once in a commit. This is what makes "later in the log" mean "newer" (section 9)."""
    newest = {}
    for entry in store.entries():
        earlier = newest.get(entry.key)
        if earlier is not None:
            if earlier.commit is entry.commit:
                message = "a key occurs twice in a commit"
                yield DecodeError(message, entry.frame.file, entry.block_offset)
            elif not entry.record.timestamp.order > earlier.record.timestamp.order:
                message = "a version is not greater than the one before of its key"
                yield DecodeError(message, entry.frame.file, entry.block_offset)
        newest[entry.key] = entry


def _check_watermarks(store):
    """A durableSequence is that of an earlier commit, or 0 (section 5.1); one that is in no segment
    as it was written may have been cleaned away."""
    sequences = {0}
    kept = [
        (listed.first_sequence, listed.last_sequence)
        for listed, segment in zip(store.manifest.segments, store.sealed)
        if not segment.is_packed
    ]

    def is_known(sequence):
        if sequence in sequences or sequence > store.manifest.sealed_sequence:
            return sequence in sequences
        return not any(first <= sequence <= last for first, last in kept)

    for segment in store.segments:
        for frame in segment.frames:
            if not segment.is_packed and not is_known(frame.durable_sequence):
                message = f"durableSequence {frame.durable_sequence:#x} is of no commit"
                yield DecodeError(message, frame.file, frame.offset + 24)
            sequences.add(frame.sequence)


def _check_greatest_hlc(store):
    """The manifest's greatest HLC is in the log, and not below any up to the durable end (3)."""
    manifest = store.manifest
    offset = manifests.HEADER.size + 8 * manifest.deletion_value_count
    stated = None
    if manifest.greatest_hlc:
        stated = hlc.parse(manifest.greatest_hlc, manifest.hlc_format).order
        # That of a tombstone that was purged is in the log no more.
        purged = manifest.horizon_hlc
        is_purged = purged and hlc.parse(purged, manifest.hlc_format).order >= stated
        is_absent = all(entry.record.hlc != manifest.greatest_hlc for entry in store.entries())
        if is_absent and not is_purged:
            message = "the greatest HLC is of no record"
            yield DecodeError(message, manifests.NAME, offset)
    for entry in store.entries():
        if entry.commit.sequence > manifest.end_sequence:
            return
        if stated is None or entry.record.timestamp.order > stated:
            message = "the greatest HLC is below one of the log up to its durable end"
            yield DecodeError(message, manifests.NAME, offset)
            return


def _check_horizon(store):
    """Nothing that was purged is above the greatest HLC (3)."""
    manifest = store.manifest
    if manifest.horizon_hlc:
        horizon = hlc.parse(manifest.horizon_hlc, manifest.hlc_format).order
        greatest = hlc.parse(manifest.greatest_hlc, manifest.hlc_format).order
        if horizon > greatest:
            offset = manifests.HEADER.offset_of("horizon_hlc_length")
            message = "the horizon HLC is above the greatest HLC"
            yield DecodeError(message, manifests.NAME, offset)


def _check_indexes(store, ranked):
    for listed, segment in zip(store.manifest.segments, store.sealed):
        file = index.file_name(segment.file_id)
        try:
            data = store.directory.read(file)
            if data is None:
                raise DecodeError("the index is absent", file, 0, DERIVED_DATA)
            index.verify(data, store.manifest, listed, segment, ranked[segment.file_id])
        except DecodeError as error:
            yield error


def _check_liveness(store, ranked):
    manifest = store.manifest
    sequences = {}
    for entry in store.entries():
        sequences.setdefault(entry.key, []).append(entry.commit.sequence)
    dead = {
        segment.file_id: liveness.dead_ranks(
            ranked[segment.file_id], sequences, listed.last_sequence, manifest.liveness_sequence
        )
        for listed, segment in zip(manifest.segments, store.sealed)
    }
    # What compaction has taken can have been superseding: its traces are the bits alone.
    unsettled = {listed.file_id: [] for listed in manifest.segments}
    if manifest.required_features & manifests.PACKED_FRAMES:
        for listed in manifest.segments:
            file_id = listed.file_id
            sealed, end = listed.last_sequence, store.end.sequence
            later = liveness.dead_ranks(ranked[file_id], sequences, sealed, end)
            unsettled[file_id] = sorted(set(later) - set(dead[file_id]))
    for number, listed in enumerate(manifest.segments):
        count = len(dead[listed.file_id])
        if not count <= listed.dead_count <= count + len(unsettled[listed.file_id]):
            offset = manifest.segments_offset + manifests.SEGMENT.size * number
            offset += manifests.SEGMENT.offset_of("dead_count")
            message = f"deadCount {listed.dead_count}, but the frames supersede {count}"
            yield DecodeError(message, manifests.NAME, offset, DERIVED_DATA)
    if manifest.liveness_generation == 0:
        return
    file = liveness.file_name(manifest.liveness_generation)
    try:
        data = store.directory.read(file)
        if data is None:
            raise DecodeError("the liveness file is absent", file, 0, DERIVED_DATA)
        liveness.verify(data, manifest, dead, unsettled)
    except DecodeError as error:
        yield error
