"""The manifest (section 3)."""

from . import hlc, limits
from .crc32c import bound
from .errors import UNSUPPORTED_FORMAT, DecodeError
from .layout import Layout, first_nonzero, padded

NAME = "MANIFEST"
MAGIC = b"AIRDBMAN"

HEADER = Layout(
    (0, "8 bytes", "magic"),
    (8, "u32", "checksum"),
    (12, "u32", "format_version"),
    (16, "u64", "length"),
    (24, "u64", "generation"),
    (32, "16 bytes", "store_id"),
    (48, "16 bytes", "hash_secret"),
    (64, "u64", "required_features"),
    (72, "u64", "optional_features"),
    (80, "u32", "epoch"),
    (84, "u8", "hlc_format"),
    (85, "u8", "hlc_physical_kind"),
    (86, "u16", "horizon_hlc_length"),
    (88, "u64", "file_id_limit"),
    (96, "u64", "end_segment"),
    (104, "u64", "end_length"),
    (112, "u64", "end_sequence"),
    (120, "u32", "end_checksum"),
    (124, "u32", "segment_count"),
    (128, "i64", "last_commit_date"),
    (136, "u64", "liveness_sequence"),
    (144, "u64", "liveness_generation"),
    (152, "u64", "liveness_length"),
    (160, "u32", "liveness_checksum"),
    (164, "u32", "deletion_value_count"),
    (168, "u64", "retention_horizon"),
    (176, "i64", "created_date"),
    (184, "u32", "greatest_hlc_length"),
    (188, "u32", "sealed_checksum"),
    (192, "u64", "sealed_segment"),
    (200, "u64", "sealed_length"),
    (208, "u64", "sealed_sequence"),
    (216, "u64", "adoption"),
)

DELETION_VALUE = Layout((0, "i64", "value"))

SEGMENT = Layout(
    (0, "u64", "file_id"),
    (8, "u64", "length"),
    (16, "u64", "first_sequence"),
    (24, "u64", "last_sequence"),
    (32, "u32", "last_checksum"),
    (36, "u32", "index_checksum"),
    (40, "u64", "record_count"),
    (48, "u64", "entry_count"),
    (56, "u64", "dead_count"),
    (64, "u64", "index_length"),
    (72, "i64", "last_commit_date"),
)

# Required features that this decoder knows (section 11).
PACKED_FRAMES = 1
KNOWN_REQUIRED_FEATURES = PACKED_FRAMES


def decode(data):
    """The manifest that a file's bytes are.

    The result has the fields of HEADER, `deletion_values`, `greatest_hlc` and `horizon_hlc` (bytes)
    and `segments` (each with the fields of SEGMENT).
    """
    _check_envelope(data)
    manifest = HEADER.decode(data, 0, NAME)
    if manifest.required_features & ~KNOWN_REQUIRED_FEATURES:
        message = f"unknown required features {manifest.required_features:#x}"
        raise DecodeError(message, NAME, HEADER.offset_of("required_features"), UNSUPPORTED_FORMAT)
    _decode_variable_part(data, manifest)
    _check_fields(manifest)
    _check_segments(manifest)
    return manifest


def _check_envelope(data):
    """Magic, formatVersion, checksum and length, in the order of R2.2."""
    if bytes(data[:8]) != MAGIC:
        raise DecodeError("not a manifest: wrong magic", NAME, 0)
    if len(data) < HEADER.size:
        raise DecodeError("the manifest is cut off", NAME, len(data))
    version = int.from_bytes(data[12:16], "little")
    if version > limits.FORMAT_VERSION:
        raise DecodeError(f"formatVersion {version}", NAME, 12, UNSUPPORTED_FORMAT)
    if version != limits.FORMAT_VERSION:
        raise DecodeError(f"formatVersion {version} never existed", NAME, 12)
    length = int.from_bytes(data[16:24], "little")
    if length != len(data):
        raise DecodeError(f"length {length}, but the file has {len(data)} bytes", NAME, 16)
    if length > limits.MANIFEST:
        raise DecodeError("longer than 64 MiB", NAME, 16)
    if bound(b"MANI", 0, 0, data[12:]) != int.from_bytes(data[8:12], "little"):
        raise DecodeError("wrong checksum", NAME, 8)


def _decode_variable_part(data, manifest):
    texts = HEADER.size + 8 * manifest.deletion_value_count
    horizon = texts + manifest.greatest_hlc_length
    texts_end = horizon + manifest.horizon_hlc_length
    segments = padded(texts_end)
    end = segments + SEGMENT.size * manifest.segment_count
    if end != len(data):
        raise DecodeError(f"the counts make {end} bytes, not {len(data)}", NAME, 16)
    manifest.deletion_values = [
        DELETION_VALUE.decode(data, at, NAME).value for at in range(HEADER.size, texts, 8)
    ]
    manifest.greatest_hlc = bytes(data[texts:horizon])
    manifest.horizon_hlc = bytes(data[horizon:texts_end])
    padding = first_nonzero(data, texts_end, segments)
    if padding is not None:
        raise DecodeError("padding is not zero", NAME, padding)
    manifest.segments_offset = segments
    manifest.segments = [
        SEGMENT.decode(data, at, NAME) for at in range(segments, end, SEGMENT.size)
    ]


def _check_fields(manifest):
    def require(condition, name, message):
        if not condition:
            raise DecodeError(f"{name}: {message}", NAME, HEADER.offset_of(name))

    require(manifest.generation >= 1, "generation", "generations start at 1")
    require(manifest.file_id_limit >= 1, "file_id_limit", "file ids start at 1")
    require(manifest.hlc_format in (hlc.HYBRID, hlc.UTF8_ORDER), "hlc_format", "unknown")
    kinds = (0, hlc.DECIMAL, hlc.ISO8601) if manifest.hlc_format == hlc.HYBRID else (0,)
    require(manifest.hlc_physical_kind in kinds, "hlc_physical_kind", "not of this format")
    sealed = manifest.sealed_sequence
    require(manifest.retention_horizon <= sealed, "retention_horizon", "beyond the sealed end")
    purged = manifest.horizon_hlc_length > 0
    name = "horizon_hlc_length"
    require(purged == (manifest.retention_horizon > 0), name, "one horizon without the other")

    values = manifest.deletion_values
    require(len(values) <= limits.DELETION_VALUES, "deletion_value_count", "more than 64")
    ascending = all(a < b for a, b in zip(values, values[1:]))
    require(ascending, "deletion_value_count", "the values do not ascend")

    for field in ("greatest_hlc", "horizon_hlc"):
        name, text = f"{field}_length", getattr(manifest, field)
        require(len(text) <= limits.HLC_TEXT, name, "more than 1,024")
        if text:
            try:
                text.decode("utf-8")
                kind = hlc.parse(text, manifest.hlc_format).kind
            except ValueError as error:
                require(False, name, f"{error}")
            require(kind == manifest.hlc_physical_kind, name, "not of the pinned kind")

    # The durable end is absent as a whole or present as a whole.
    if manifest.end_segment == 0:
        for name in ("end_length", "end_sequence", "end_checksum", "last_commit_date"):
            require(getattr(manifest, name) == 0, name, "not 0 in an empty log")
    else:
        require(manifest.end_segment < manifest.file_id_limit, "end_segment", "never given out")
        require(manifest.end_sequence >> 32 <= manifest.epoch, "end_sequence", "of a later epoch")
    if manifest.sealed_segment == 0:
        for name in ("sealed_length", "sealed_sequence", "sealed_checksum"):
            require(getattr(manifest, name) == 0, name, "not 0 before the first seal")
        require(manifest.segment_count == 0, "segment_count", "none was ever sealed")
    else:
        sealed = manifest.sealed_sequence
        require(
            manifest.sealed_segment < manifest.file_id_limit, "sealed_segment", "never given out"
        )
        require(sealed >= 1, "sealed_sequence", "0")
        require(sealed <= manifest.end_sequence, "sealed_sequence", "beyond the durable end")
        if sealed == manifest.end_sequence:
            for part in ("segment", "length", "checksum"):
                same = getattr(manifest, f"sealed_{part}") == getattr(manifest, f"end_{part}")
                require(same, f"sealed_{part}", "not the durable end's, of the same sequence")
    require(
        manifest.liveness_sequence <= manifest.end_sequence,
        "liveness_sequence",
        "beyond the durable end",
    )
    require(
        manifest.liveness_generation <= manifest.generation,
        "liveness_generation",
        "later than the manifest's",
    )
    if manifest.liveness_generation == 0:
        for name in ("liveness_length", "liveness_checksum"):
            require(getattr(manifest, name) == 0, name, "not 0 without a liveness file")


def _check_segments(manifest):
    ids = set()
    previous_sequence = 0
    for number, segment in enumerate(manifest.segments):
        at = manifest.segments_offset + number * SEGMENT.size

        def require(condition, name, message, at=at):
            if not condition:
                message = f"segment entry {name}: {message}"
                raise DecodeError(message, NAME, at + SEGMENT.offset_of(name))

        require(segment.file_id >= 1, "file_id", "file ids start at 1")
        require(segment.file_id not in ids, "file_id", "listed twice")
        require(segment.file_id < manifest.file_id_limit, "file_id", "never given out")
        require(segment.length >= 160 and segment.length % 8 == 0, "length", "impossible")
        require(previous_sequence < segment.first_sequence, "first_sequence", "does not ascend")
        last = segment.last_sequence
        require(segment.first_sequence <= last, "last_sequence", "below the first")
        require(last <= manifest.sealed_sequence, "last_sequence", "beyond the sealed end")
        require(segment.record_count >= 1, "record_count", "0")
        count = segment.entry_count
        require(1 <= count <= segment.record_count, "entry_count", "impossible")
        require(segment.dead_count <= count, "dead_count", "more than entries")
        if manifest.liveness_generation == 0:
            require(segment.dead_count == 0, "dead_count", "not 0 without a liveness file")
        if segment.file_id == manifest.sealed_segment:
            message = "not the sealed end's"
            require(last == manifest.sealed_sequence, "last_sequence", message)
            require(segment.length == manifest.sealed_length, "length", message)
            require(segment.last_checksum == manifest.sealed_checksum, "last_checksum", message)
        ids.add(segment.file_id)
        previous_sequence = last
