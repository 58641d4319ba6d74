"""Blocks and the records in them (section 6)."""

import struct
from typing import NamedTuple, Optional

from . import hlc, limits, lz4block, varint
from .crc32c import bound, crc
from .cursor import Cursor
from .errors import DecodeError
from .layout import Layout

HEADER = Layout(
    (0, "u32", "checksum"),
    (4, "u32", "record_count"),
    (8, "u32", "metadata_length"),
    (12, "u32", "stored_length"),
    (16, "u32", "raw_length"),
    (20, "u8", "codec"),
    (21, "u8", "flags"),
    (22, "2 bytes", "reserved"),
    (24, "u32", "first_record"),
    (28, "u32", "frame_distance"),
)

CODEC_STORED, CODEC_LZ4 = 0, 1
FLAG_ORDINALS = 1

# Row flags (6.1)
ID_TEXT, ID_UUID_LOWER, ID_UUID_UPPER = 0, 1, 2
FLAG_AUTHOR, FLAG_SIGNATURE = 1 << 2, 1 << 3
EXPLICIT_TYPE = 3

_UUID_HYPHENS = (8, 13, 18, 23)


class Record(NamedTuple):
    """A record as it is in a block. Texts are UTF-8 bytes."""

    slot: int  # row in the block
    collection: bytes
    id: bytes
    type: int
    hlc: bytes
    timestamp: hlc.Timestamp
    author: Optional[bytes]
    signature: Optional[bytes]
    payload: bytes
    content_checksum: int
    ordinal: Optional[int]  # in its commit; None where the frame is the commit

    @property
    def field_bytes(self):
        """What the record counts towards the limit of a batch."""
        fields = (self.collection, self.id, self.hlc, self.author, self.signature, self.payload)
        return sum(len(field) for field in fields if field is not None)


def uuid_form(identifier):
    """The id form (6.1) of an id, and its 16 bytes if it is a canonical UUID."""
    if len(identifier) != 36 or any(identifier[at] != ord("-") for at in _UUID_HYPHENS):
        return ID_TEXT, None
    digits = identifier.replace(b"-", b"")
    if len(digits) != 32 or any(byte not in b"0123456789abcdefABCDEF" for byte in digits):
        return ID_TEXT, None
    packed = bytes.fromhex(digits.decode())
    if digits == digits.lower():
        return ID_UUID_LOWER, packed
    if digits == digits.upper():
        return ID_UUID_UPPER, packed
    return ID_TEXT, None


def uuid_text(packed, form):
    """The id that 16 bytes of form 1 or 2 stand for."""
    digits = packed.hex() if form == ID_UUID_LOWER else packed.hex().upper()
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return "-".join(parts).encode()


def content_checksum(kind, author, signature, payload):
    """Section 6.2."""
    author_bytes, signature_bytes = author or b"", signature or b""
    prefix = struct.pack("<qBI", kind, author is not None, len(author_bytes)) + author_bytes
    prefix += struct.pack("<BI", signature is not None, len(signature_bytes)) + signature_bytes
    return crc(payload, crc(prefix))


def find(data, at, end, segment):
    """The block at `at`, if its header fits and its checksum matches: what R3 asks of a block.

    Returns its header with `offset` and `end`, or a text that says what is wrong.
    """
    if end - at < HEADER.size:
        return "a block header is cut off"
    stated, _, metadata_length, stored_length = struct.unpack_from("<IIII", data, at)
    block_end = at + HEADER.size + metadata_length + stored_length
    if block_end > end:
        return "a block passes the end of its frame"
    if bound(b"BLCK", segment, at, data[at + 4 : block_end]) != stated:
        return "wrong block checksum"
    return block_end


def decode(data, at, file, frame_offset, first_record, hlc_format, is_packed):
    """The records of the block at `at`, which `find` has accepted."""
    header = HEADER.decode(data, at, file)

    def require(condition, name, message):
        if not condition:
            raise DecodeError(f"block {name}: {message}", file, at + HEADER.offset_of(name))

    count = header.record_count
    require(1 <= count <= limits.BLOCK_RECORDS, "record_count", "not in 1...256")
    most = limits.METADATA_PER_RECORD * count
    require(header.metadata_length <= most, "metadata_length", f"more than {most} bytes")
    require(header.codec in (CODEC_STORED, CODEC_LZ4), "codec", "unknown")
    flags = FLAG_ORDINALS if is_packed else 0
    require(header.flags == flags, "flags", f"{header.flags}, not {flags}")
    require(header.raw_length <= limits.PAYLOAD, "raw_length", "more than 256 MiB")
    if header.codec == CODEC_STORED:
        require(header.stored_length == header.raw_length, "stored_length", "not rawLength")
    else:
        require(header.stored_length < header.raw_length, "stored_length", "not below rawLength")
    require(header.first_record == first_record, "first_record", f"not {first_record}")
    distance = at - frame_offset
    require(header.frame_distance == distance, "frame_distance", f"not {distance}")

    metadata_end = at + HEADER.size + header.metadata_length
    metadata = _Metadata(data, at + HEADER.size, metadata_end, file, hlc_format, is_packed)
    rows = metadata.rows(count)
    total = sum(row.payload_length for row in rows)
    require(total == header.raw_length, "raw_length", f"the payloads have {total} bytes")

    stored = bytes(data[metadata_end : metadata_end + header.stored_length])
    if header.codec == CODEC_LZ4:
        try:
            payloads = lz4block.decompress(stored, header.raw_length)
        except ValueError as error:
            raise DecodeError(f"{error}", file, metadata_end) from None
    else:
        payloads = stored

    records = []
    start = 0
    for slot, row in enumerate(rows):
        payload = payloads[start : start + row.payload_length]
        start += row.payload_length
        checksum = content_checksum(row.type, row.author, row.signature, payload)
        if checksum != row.content_checksum:
            raise DecodeError("wrong content checksum", file, row.offset)
        records.append(
            Record(
                slot,
                row.collection,
                row.id,
                row.type,
                row.hlc,
                row.timestamp,
                row.author,
                row.signature,
                payload,
                checksum,
                row.ordinal,
            )
        )
    return records


class _Row(NamedTuple):
    offset: int
    type: int
    collection: bytes
    content_checksum: int
    id: bytes
    hlc: bytes
    timestamp: hlc.Timestamp
    author: Optional[bytes]
    signature: Optional[bytes]
    payload_length: int
    ordinal: Optional[int]


class _Table:
    """A table of the metadata: distinct items, each used by a row."""

    def __init__(self, name, items, offset):
        self.name, self.items, self.offset = name, items, offset
        self.used = set()


class _Metadata(Cursor):
    """Reads the tables and rows of section 6.1 in a single pass."""

    subject = "block metadata"

    def __init__(self, data, start, end, file, hlc_format, has_ordinals):
        super().__init__(data, start, end, file)
        self.hlc_format = hlc_format
        self.has_ordinals = has_ordinals
        self.previous_physical = 0

    def rows(self, count):
        self.collections = self.table("collections", self.collection_name)
        self.shapes = self.table("shapes", self.shape)
        self.nodes = self.table("nodes", self.node)
        self.authors = self.table("authors", self.author_key)
        rows = [self.row() for _ in range(count)]
        if self.position != self.end:
            self.fail("bytes behind the last row")
        for table in (self.collections, self.shapes, self.nodes, self.authors):
            if len(table.used) != len(table.items):
                self.fail(f"an item of the {table.name} is not used", table.offset)
        return rows

    # Primitives

    def counted(self, limit, name):
        start = self.position
        length = self.varint()
        if length > limit:
            self.fail(f"{name} of {length} bytes, more than {limit}", start)
        return self.bytes(length)

    def text(self, limit, name):
        start = self.position
        content = self.counted(limit, name)
        try:
            content.decode("utf-8")
        except UnicodeDecodeError:
            self.fail(f"{name} is not UTF-8", start)
        return content

    # Tables

    def table(self, name, read_item):
        start = self.position
        count = self.varint()
        if count > self.end - self.position:  # an item has at least one byte
            self.fail(f"more {name} than fit", start)
        items = [read_item() for _ in range(count)]
        if len(set(items)) != count:
            self.fail(f"the {name} are not distinct", start)
        return _Table(name, items, start)

    def collection_name(self):
        return self.text(limits.COLLECTION, "a collection")

    def shape(self):
        return hlc.Shape(*self.bytes(6))

    def node(self):
        return self.text(limits.HLC_TEXT, "a node")

    def author_key(self):
        return self.counted(limits.AUTHOR_KEY, "an author key")

    def item(self, table, index, start):
        if index >= len(table.items):
            self.fail(f"index {index} is beyond the {table.name}", start)
        table.used.add(index)
        return table.items[index]

    # Rows

    def row(self):
        start = self.position
        flags = self.bytes(1)[0]
        if flags >> 6:
            self.fail("reserved flags of a row are set", start)
        kind = flags >> 4 & 3
        if kind == EXPLICIT_TYPE:
            kind = varint.unzigzag(self.varint())
            if kind in (0, 1, 2):
                self.fail("a type that fits the flags is not in them", start)
        collection = self.item(self.collections, self.varint(), start)
        checksum = int.from_bytes(self.bytes(4), "little")
        identifier = self.id(flags & 3)
        text, timestamp = self.timestamp()
        author = signature = None
        if flags & FLAG_AUTHOR:
            author = self.item(self.authors, self.varint(), start)
        if flags & FLAG_SIGNATURE:
            signature = self.counted(limits.SIGNATURE, "a signature")
        length_offset = self.position
        payload_length = self.varint()
        if payload_length > limits.PAYLOAD:
            self.fail("a payload of more than 256 MiB", length_offset)
        ordinal_offset = self.position
        ordinal = self.varint() if self.has_ordinals else None
        if ordinal is not None and ordinal >= 1 << 32:
            self.fail("an ordinal of more than 32 bits", ordinal_offset)
        return _Row(
            start,
            kind,
            collection,
            checksum,
            identifier,
            text,
            timestamp,
            author,
            signature,
            payload_length,
            ordinal,
        )

    def id(self, form):
        start = self.position
        if form == ID_TEXT:
            identifier = self.text(limits.ID, "an id")
        elif form in (ID_UUID_LOWER, ID_UUID_UPPER):
            identifier = uuid_text(self.bytes(16), form)
        else:
            self.fail("id form 3 is reserved")
        if uuid_form(identifier)[0] != form:
            self.fail("the id has another form", start)
        return identifier

    def timestamp(self):
        start = self.position
        selector = self.varint()
        try:
            if selector == 0:
                text = self.text(limits.HLC_TEXT, "an HLC text")
                timestamp = hlc.parse(text, self.hlc_format)
                if timestamp.shape is not None:
                    self.fail("an HLC text that has a shape is stored without", start)
                return text, timestamp
            shape = self.item(self.shapes, selector - 1, start)
            if self.hlc_format != hlc.HYBRID:
                self.fail("an HLC shape in a store of UTF-8 order", start)
            delta = varint.unzigzag(self.varint())
            physical = (self.previous_physical + delta) % (1 << 64)
            self.previous_physical = physical
            counter = self.varint()
            node = b""
            if shape.separator2:
                node = self.item(self.nodes, self.varint(), start)
            text = hlc.render(shape, physical, counter, node)
        except ValueError as error:
            self.fail(str(error), start)
        if len(text) > limits.HLC_TEXT:
            self.fail("an HLC text of more than 1,024 bytes", start)
        return text, hlc.parse(text, self.hlc_format)
