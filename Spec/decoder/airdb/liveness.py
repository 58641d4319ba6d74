"""Verification of the liveness file against a full join of the log (section 9)."""

from . import limits
from .crc32c import bound
from .errors import DERIVED_DATA, UNSUPPORTED_FORMAT, DecodeError
from .layout import Layout, first_nonzero, padded

MAGIC = b"AIRDBLIV"

HEADER = Layout(
    (0, "8 bytes", "magic"),
    (8, "u32", "checksum"),
    (12, "u32", "format_version"),
    (16, "u64", "generation"),
    (24, "u64", "sequence"),
    (32, "16 bytes", "store_id"),
    (48, "u32", "segment_count"),
    (52, "12 bytes", "reserved"),
)

SEGMENT = Layout(
    (0, "u64", "file_id"),
    (8, "u64", "entry_count"),
    (16, "u64", "offset"),
    (24, "u32", "checksum"),
    (28, "u32", "dead_count"),
)


def file_name(generation):
    return f"{generation:016x}.liveness"


def dead_ranks(ranked, newest_sequences, last, up_to):
    """The ranks of a segment's entries that a commit behind `last`, up to `up_to`, supersedes.

    `newest_sequences` gives for each key all sequences that hold it, in order.
    """
    dead = []
    for rank, entry in enumerate(ranked):
        sequences = newest_sequences[(entry.collection, entry.id)]
        if any(last < sequence <= up_to for sequence in sequences):
            dead.append(rank)
    return dead


def bitmap(ranks, entry_count):
    bits = bytearray(-(-entry_count // 8))
    for rank in ranks:
        bits[rank >> 3] |= 1 << (rank & 7)
    return bytes(bits)


def verify(data, manifest, dead, unsettled):
    """Checks a liveness file; `dead` has the dead ranks of each sealed segment, by the frames.

    `unsettled` has those that only a commit above livenessSequence supersedes. Their bits are 0,
    unless compaction took a version between the two: then they are 1.
    """
    file = file_name(manifest.liveness_generation)

    def require(condition, message, offset):
        if not condition:
            raise DecodeError(message, file, offset, DERIVED_DATA)

    count = len(manifest.segments)
    bitmaps = HEADER.size + SEGMENT.size * count
    require(len(data) == manifest.liveness_length, "not of the manifest's length", len(data))
    require(len(data) >= bitmaps, "cut off", len(data))
    require(bytes(data[:8]) == MAGIC, "not a liveness file: wrong magic", 0)
    stated = int.from_bytes(data[48:52], "little")
    require(stated == count, f"{stated} segments, not {count}", 48)
    header = HEADER.decode(data, 0, file, DERIVED_DATA)
    checksum = bound(b"LIVE", manifest.liveness_generation, 0, data[12:bitmaps])
    require(header.checksum == checksum, "wrong checksum of the header", 8)
    if header.format_version > limits.FORMAT_VERSION:
        message = f"formatVersion {header.format_version}"
        raise DecodeError(message, file, 12, UNSUPPORTED_FORMAT)
    require(header.format_version == limits.FORMAT_VERSION, "formatVersion never existed", 12)
    require(header.checksum == manifest.liveness_checksum, "not the manifest's checksum", 8)
    require(header.generation == manifest.liveness_generation, "of another generation", 16)
    require(header.sequence == manifest.liveness_sequence, "of another sequence", 24)
    require(header.store_id == manifest.store_id, "of another store", 32)

    position = bitmaps
    for number, listed in enumerate(manifest.segments):
        at = HEADER.size + SEGMENT.size * number
        entry = SEGMENT.decode(data, at, file, DERIVED_DATA)
        ranks = dead[listed.file_id]
        require(entry.file_id == listed.file_id, f"not segment {listed.file_id}", at)
        require(entry.entry_count == listed.entry_count, "wrong entryCount", at + 8)
        loose = unsettled[listed.file_id]
        message = f"deadCount {entry.dead_count}, but the frames supersede {len(ranks)}"
        is_right = len(ranks) <= entry.dead_count <= len(ranks) + len(loose)
        require(is_right and entry.dead_count == listed.dead_count, message, at + 28)
        if entry.dead_count == 0:
            require(entry.offset == 0 and entry.checksum == 0, "not 0 without a bitmap", at + 16)
            continue
        require(entry.offset == position, f"a bitmap is not at {position}", at + 16)
        expected = bitmap(ranks, listed.entry_count)
        ignored = bitmap(loose, listed.entry_count)
        end = position + len(expected)
        require(end <= len(data), "a bitmap is cut off", len(data))
        found = bytes(data[position:end])
        checksum = bound(b"LIVE", manifest.liveness_generation, position, found)
        require(entry.checksum == checksum, "wrong checksum of a bitmap", position)
        for index, (byte, right, either) in enumerate(zip(found, expected, ignored)):
            message = f"dead bits {byte:#010b}, but the frames say {right:#010b}"
            require(byte & ~either == right, message, position + index)
        count = sum(bin(byte).count("1") for byte in found)
        require(count == entry.dead_count, f"deadCount {entry.dead_count}, not {count}", at + 28)
        position = padded(end)
        padding = first_nonzero(data, end, min(position, len(data)))
        require(padding is None, "padding is not zero", padding)
    # Whether the last bitmap is padded too, the specification leaves open.
    require(padded(len(data)) == position, "bytes behind the last bitmap", position)
