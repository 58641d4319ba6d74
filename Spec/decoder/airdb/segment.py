"""Segments and frames (sections 4 and 5), and how a segment is scanned (R3)."""

from typing import NamedTuple

from . import block, limits, packed
from .crc32c import bound, crc
from .errors import UNSUPPORTED_FORMAT, DecodeError
from .layout import Layout, first_nonzero, padded

MAGIC = b"AIRDBSEG"

HEADER = Layout(
    (0, "8 bytes", "magic"),
    (8, "u32", "checksum"),
    (12, "u32", "format_version"),
    (16, "16 bytes", "store_id"),
    (32, "u64", "file_id"),
    (40, "u64", "predecessor"),
    (48, "u64", "predecessor_length"),
    (56, "u32", "predecessor_checksum"),
    (60, "4 bytes", "reserved"),
)

FRAME_MAGIC = b"AFRM"

FRAME = Layout(
    (0, "4 bytes", "magic"),
    (4, "u32", "checksum"),
    (8, "u64", "length"),
    (16, "u64", "sequence"),
    (24, "u64", "durable_sequence"),
    (32, "i64", "commit_date"),
    (40, "u32", "record_count"),
    (44, "u32", "block_count"),
    (48, "u32", "previous_checksum"),
    (52, "u32", "body_checksum"),
    (56, "u8", "kind"),
    (57, "u8", "flags"),
    (58, "u16", "label_length"),
    (60, "u32", "table_length"),
)

KIND_COMMIT, KIND_PACKED = 1, 2
FLAG_POWER_LOSS = 1


def file_name(file_id):
    return f"{file_id:016x}.segment"


class End(NamedTuple):
    """Where the log has got to: behind a frame, or at its beginning."""

    segment: int = 0
    length: int = 0
    sequence: int = 0
    checksum: int = 0


def decode_header(data, file_id):
    """The header of the segment in these bytes. Raises DecodeError if it is not valid."""
    file = file_name(file_id)
    if len(data) < HEADER.size:
        raise DecodeError("the segment header is cut off", file, len(data))
    if bytes(data[:8]) != MAGIC:
        raise DecodeError("not a segment: wrong magic", file, 0)
    if bound(b"SEGH", file_id, 0, data[12:64]) != int.from_bytes(data[8:12], "little"):
        raise DecodeError("wrong checksum of the segment header", file, 8)
    version = int.from_bytes(data[12:16], "little")
    if version > limits.FORMAT_VERSION:
        raise DecodeError(f"formatVersion {version}", file, 12, UNSUPPORTED_FORMAT)
    if version != limits.FORMAT_VERSION:
        raise DecodeError(f"formatVersion {version} never existed", file, 12)
    header = HEADER.decode(data, 0, file)
    if header.file_id != file_id:
        raise DecodeError(f"the header is of file {header.file_id}", file, 32)
    return header


def decode_frame_header(data, at, end, file_id):
    """The frame header at `at` if it passes the checks of the header in itself (R3), or why not.

    What passes is a frame, or behind a damage a witness, whether or not its body fits the file.
    """
    if end - at < FRAME.size:
        return "a frame header is cut off"
    if bytes(data[at : at + 4]) != FRAME_MAGIC:
        return "no frame: wrong magic"
    stated = int.from_bytes(data[at + 4 : at + 8], "little")
    if bound(b"FRAM", file_id, at, data[at + 8 : at + FRAME.size]) != stated:
        return "wrong checksum of a frame header"
    header = FRAME.decode(data, at, file_name(file_id))
    if header.length % 8 or header.length < FRAME.size:
        return f"impossible frame length {header.length}"
    wrong = _wrong_with(header)
    if wrong:
        return wrong
    header.segment, header.offset = file_id, at
    return header


def _wrong_with(header):
    """What is wrong with a frame header in itself, or None."""
    if header.flags & ~FLAG_POWER_LOSS:
        return "reserved flags of a frame are set"
    if header.kind == KIND_COMMIT:
        if header.table_length:
            return "a table in a frame that is not packed"
        if header.durable_sequence >= header.sequence:
            return "durableSequence is not below the sequence"
    elif header.kind == KIND_PACKED:
        if header.table_length == 0 or header.label_length or header.flags:
            return "label, flags or no table in a packed frame"
        if header.durable_sequence != header.sequence:
            return "durableSequence of a packed frame is not its sequence"
    else:
        return f"a frame of kind {header.kind}"
    if header.record_count == 0 or header.block_count == 0:
        return "a frame without records or blocks"
    if header.label_length > limits.LABEL:
        return "a label of more than 1,024 bytes"
    return None


def follows(sequence, previous):
    """Whether a frame of `sequence` may come behind one of `previous`, 0 being none (5.1)."""
    epoch, counter = divmod(sequence, 1 << 32)
    previous_epoch, previous_counter = divmod(previous, 1 << 32)
    if epoch == previous_epoch:
        return previous != 0 and counter == previous_counter + 1
    return epoch > previous_epoch and counter == 1


class Segment:
    """A scanned segment: its frames, where they end, and what stopped the scan."""

    def __init__(self, file_id, data):
        self.file_id = file_id
        self.data = data
        self.frames = []
        self.end = HEADER.size
        self.stop = ""  # why there is no frame at `end`
        self.witnesses = []
        self.predecessor = int.from_bytes(data[40:48], "little")
        self.debris = None  # offset of the first byte behind `end` that is not zero

    @property
    def is_packed(self):
        """Whether it was made by compaction."""
        return bool(self.frames) and self.frames[0].kind == KIND_PACKED

    @property
    def file(self):
        return file_name(self.file_id)


class Log:
    """What the scan of a frame needs to know of the log before it."""

    def __init__(self, epoch, hlc_format):
        self.epoch = epoch
        self.hlc_format = hlc_format
        self.last = End()
        self.last_commit_date = None


def scan(data, file_id, log, limit=None):
    """Scans frames from offset 64, advancing `log` (R3).

    A sealed segment has a `limit`, where its frames end; it alone may have packed frames, and has
    no others then.
    """
    segment = Segment(file_id, data)
    end = len(data) if limit is None else limit
    kinds = (KIND_COMMIT,) if limit is None else (KIND_COMMIT, KIND_PACKED)
    while True:
        frame = _decode_frame(data, segment.end, end, file_id, log, kinds)
        if isinstance(frame, str):
            segment.stop = frame
            break
        segment.frames.append(frame)
        kinds = (frame.kind,)
        segment.end += frame.length
        log.last = End(file_id, segment.end, frame.sequence, frame.checksum)
        log.last_commit_date = frame.commit_date
    segment.debris = first_nonzero(data, segment.end, len(data))
    if segment.debris is not None:
        segment.witnesses = find_witnesses(data, segment.end, file_id)
    return segment


def find_witnesses(data, start, file_id):
    """The frame headers at multiples of 8 from `start` on: evidence of what was written there."""
    witnesses = []
    at = data.find(FRAME_MAGIC, start)
    while at >= 0:
        if at % 8 == 0:
            header = decode_frame_header(data, at, len(data), file_id)
            if not isinstance(header, str):
                witnesses.append(header)
        at = data.find(FRAME_MAGIC, at + 1)
    return witnesses


def _decode_frame(data, at, end, file_id, log, kinds):
    """The frame at `at` with its records, or a text that says why it is not valid (R3).

    A frame that is valid, and whose content violates section 5 or 6, raises DecodeError.
    """
    frame = decode_frame_header(data, at, end, file_id)
    if isinstance(frame, str):
        return frame
    if frame.length > end - at:
        return f"a frame of {frame.length} bytes passes the end"
    most = limits.FRAME + limits.FRAME_PER_RECORD * frame.record_count + frame.table_length
    if frame.length > most:
        return f"a frame of {frame.length} bytes, more than {frame.record_count} records can have"
    if frame.kind not in kinds:
        return f"a frame of kind {frame.kind} in this place"
    last = log.last.sequence
    is_packed = frame.kind == KIND_PACKED
    if not (frame.sequence > last if is_packed else follows(frame.sequence, last)):
        return f"sequence {frame.sequence:#x} does not follow {last:#x}"
    if frame.sequence >> 32 > log.epoch:
        return f"epoch {frame.sequence >> 32} is above the manifest's"
    if frame.previous_checksum != log.last.checksum:
        return "previousChecksum is not that of the frame before"

    frame_end = at + frame.length
    body = at + FRAME.size
    blocks = body + frame.label_length + frame.table_length
    if blocks > frame_end:
        return "label and table pass the end of the frame"
    checksum = crc(data[body:blocks])
    position = blocks
    offsets = []
    for _ in range(frame.block_count):
        block_end = block.find(data, position, frame_end, file_id)
        if isinstance(block_end, str):
            return block_end
        checksum = crc(data[position : position + 4], checksum)
        offsets.append(position)
        position = block_end
    if checksum != frame.body_checksum:
        return "wrong bodyChecksum"
    if first_nonzero(data, position, frame_end) is not None:
        return "the padding of a frame is not zero"

    _check_frame(frame, position, log)
    frame.file = file_name(file_id)
    frame.block_offsets = offsets
    frame.transactions = _transactions(frame, data, log)
    _decode_records(frame, data, log)
    return frame


def _check_frame(frame, body_end, log):
    """The rules of section 5 that no crash breaks: a frame that breaks one is corruption."""

    def require(condition, name, message):
        if not condition:
            offset = frame.offset + FRAME.offset_of(name)
            raise DecodeError(f"frame {name}: {message}", file_name(frame.segment), offset)

    require(frame.length == padded(body_end - frame.offset), "length", "more than 7 of padding")
    earlier = log.last_commit_date
    require(earlier is None or frame.commit_date >= earlier, "commit_date", "goes back")


def _transactions(frame, data, log):
    """The commits in a frame: the one that it is, or those of its table."""
    start = frame.offset + FRAME.size
    end = start + frame.label_length + frame.table_length
    if frame.kind == KIND_PACKED:
        last, date = log.last.sequence, log.last_commit_date
        return packed.decode(data, start, end, frame, last, date)
    label = bytes(data[start:end])
    try:
        label.decode("utf-8")
    except UnicodeDecodeError:
        raise DecodeError("the author label is not UTF-8", frame.file, start) from None
    fields = (frame.sequence, frame.commit_date, frame.checksum, label, frame.record_count)
    return [packed.Transaction(*fields)]


def _decode_records(frame, data, log):
    """Fills `frame.records` with pairs of a block's offset and a record, and checks limits."""
    frame.records = []
    for at in frame.block_offsets:
        count = len(frame.records)
        is_packed = frame.kind == KIND_PACKED
        records = block.decode(
            data, at, frame.file, frame.offset, count, log.hlc_format, is_packed
        )
        frame.records += [(at, record) for record in records]
    if len(frame.records) != frame.record_count:
        message = f"frame record_count: the blocks have {len(frame.records)} records"
        raise DecodeError(message, frame.file, frame.offset + FRAME.offset_of("record_count"))
    start = 0
    for transaction in frame.transactions:
        placed = frame.records[start : start + transaction.record_count]
        start += transaction.record_count
        size = sum(record.field_bytes for _, record in placed)
        if size > limits.BATCH:
            raise DecodeError("a batch of more than 1 GiB", frame.file, placed[-1][0])
        ordinals = [record.ordinal for _, record in placed]
        if is_packed and any(a >= b for a, b in zip(ordinals, ordinals[1:])):
            raise DecodeError("the ordinals of a commit do not ascend", frame.file, placed[0][0])
