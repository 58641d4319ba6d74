"""Verification of a sealed segment's index against its frames (sections 7 and 8).

The index is a function of the frames, so everything in it has one right value. The frames give
the expected tables; the file is then compared with them structure by structure, in its order.
"""

from collections import Counter
from typing import NamedTuple

from . import limits
from .crc32c import bound
from .errors import DERIVED_DATA, UNSUPPORTED_FORMAT, DecodeError
from .layout import Layout, first_nonzero
from .siphash import key_hash

MAGIC = b"AIRDBIDX"
PAGE_SIZE = 4096
PAGE_CONTENT = 4092
FILTER_BLOCK_SIZE = 64


def _section_rows():
    order = ("hlc_entries", "key_entries", "hlc_fences", "key_fences", "filter", "collections")
    order += ("nodes", "unused")
    for number, name in enumerate(order):
        yield (112 + 8 * number, "u32", name + "_first")
        yield (116 + 8 * number, "u32", name + "_count")


PAGE_0 = Layout(
    (0, "u32", "checksum"),
    (4, "u32", "format_version"),
    (8, "8 bytes", "magic"),
    (16, "16 bytes", "store_id"),
    (32, "u64", "file_id"),
    (40, "u64", "segment_length"),
    (48, "u64", "first_sequence"),
    (56, "u64", "last_sequence"),
    (64, "u64", "record_count"),
    (72, "u64", "entry_count"),
    (80, "u32", "last_checksum"),
    (84, "u32", "page_count"),
    (88, "u64", "physical_base"),
    (96, "u8", "physical_width"),
    (97, "u8", "counter_width"),
    (98, "u8", "node_width"),
    (99, "u8", "collection_width"),
    (100, "u8", "block_width"),
    (101, "u8", "slot_width"),
    (102, "u8", "rank_width"),
    (103, "1 bytes", "reserved"),
    (104, "u32", "node_count"),
    (108, "u32", "collection_count"),
    *_section_rows(),
    (176, "u32", "filter_block_count"),
    (180, f"{PAGE_SIZE - 180} bytes", "reserved"),
)


def file_name(file_id):
    return f"{file_id:016x}.index"


class IndexEntry(NamedTuple):
    """The segment's last version of a key, as the index has it."""

    physical: int
    counter: int
    node: bytes
    arrival: int
    collection: bytes
    id: bytes
    block_offset: int
    slot: int
    is_deletion: bool
    content_checksum: int


def entries_of(entries, deletion_values):
    """The index entries of a segment's records, by rank."""
    last_versions = {}
    for arrival, entry in enumerate(entries):
        record, timestamp = entry.record, entry.record.timestamp
        last_versions[entry.key] = IndexEntry(
            timestamp.physical,
            timestamp.counter,
            timestamp.node,
            arrival,
            record.collection,
            record.id,
            entry.block_offset,
            record.slot,
            record.type in deletion_values,
            record.content_checksum,
        )
    return sorted(last_versions.values(), key=lambda entry: entry[:4])


def width(greatest):
    """The least number of bytes that holds a value: 0 for 0."""
    return (greatest.bit_length() + 7) // 8


def verify(data, manifest, listed, segment, ranked):
    """Checks an index file, whose `ranked` entries come from the frames. Raises DecodeError."""
    _Verifier(data, manifest, listed, segment, ranked).run()


class _Verifier:
    def __init__(self, data, manifest, listed, segment, ranked):
        self.data = data
        self.manifest = manifest
        self.listed = listed
        self.segment = segment
        self.ranked = ranked
        self.file = file_name(segment.file_id)

        # What the frames say
        self.nodes = sorted({b""} | {entry.node for entry in ranked})
        self.collections = sorted({entry.collection for entry in ranked})
        self.node_index = {node: index for index, node in enumerate(self.nodes)}
        self.collection_index = {name: index for index, name in enumerate(self.collections)}
        self.base = min(entry.physical for entry in ranked)
        self.hashes = [
            key_hash(manifest.hash_secret, entry.collection, entry.id) for entry in ranked
        ]
        self.by_key = sorted(
            range(len(ranked)),
            key=lambda rank: (self.collection_index[ranked[rank].collection], self.hashes[rank]),
        )

    def run(self):
        self.verify_pages()
        self.page_0 = PAGE_0.decode(self.data, 0, self.file, DERIVED_DATA)
        self.verify_page_0()
        self.verify_widths()
        self.verify_sections()

    def fail(self, message, offset):
        raise DecodeError(message, self.file, offset, DERIVED_DATA)

    # Pages

    def verify_pages(self):
        size = len(self.data)
        if size < PAGE_SIZE or size % PAGE_SIZE:
            self.fail(f"{size} bytes are not whole pages", size)
        if bytes(self.data[8:16]) != MAGIC:
            self.fail("not an index: wrong magic", 8)
        for at in range(0, size, PAGE_SIZE):
            stated = int.from_bytes(self.data[at : at + 4], "little")
            content = self.data[at + 4 : at + PAGE_SIZE]
            if bound(b"PAGE", self.segment.file_id, at, content) != stated:
                self.fail(f"wrong checksum of page {at // PAGE_SIZE}", at)

    def expect(self, name, expected):
        found = getattr(self.page_0, name)
        if found != expected:
            self.fail(f"{name} is {found}, not {expected}", PAGE_0.offset_of(name))

    def verify_page_0(self):
        version = self.page_0.format_version
        if version > limits.FORMAT_VERSION:
            raise DecodeError(f"formatVersion {version}", self.file, 4, UNSUPPORTED_FORMAT)
        self.expect("format_version", limits.FORMAT_VERSION)
        self.expect("store_id", self.manifest.store_id)
        self.expect("file_id", self.segment.file_id)
        self.expect("segment_length", self.listed.length)
        self.expect("first_sequence", self.listed.first_sequence)
        self.expect("last_sequence", self.listed.last_sequence)
        self.expect("record_count", self.listed.record_count)
        self.expect("entry_count", len(self.ranked))
        self.expect("last_checksum", self.listed.last_checksum)
        self.expect("page_count", len(self.data) // PAGE_SIZE)
        if self.listed.index_length != len(self.data):
            self.fail(f"the manifest has length {self.listed.index_length}", len(self.data))
        if self.listed.index_checksum != self.page_0.checksum:
            self.fail(f"the manifest has checksum {self.listed.index_checksum:#x}", 0)

    def verify_widths(self):
        ranked = self.ranked
        self.expect("physical_base", self.base)
        self.expect("physical_width", width(max(e.physical for e in ranked) - self.base))
        self.expect("counter_width", width(max(e.counter for e in ranked)))
        self.expect("node_width", width(len(self.nodes) - 1))
        self.expect("collection_width", width(len(self.collections) - 1))
        self.expect("block_width", width(max(e.block_offset for e in ranked)))
        self.expect("slot_width", width(max(e.slot for e in ranked)))
        self.expect("rank_width", width(len(ranked) - 1))
        self.expect("node_count", len(self.nodes))
        self.expect("collection_count", len(self.collections))
        self.expect("filter_block_count", self.filter_block_count())

    # Sections

    def verify_sections(self):
        self.next_page = 1
        self.verify_array("hlc_entries", self.hlc_entries())
        hlc_per_page = PAGE_CONTENT // len(self.hlc_entry(0))
        self.verify_array("key_entries", self.key_entries())
        key_per_page = PAGE_CONTENT // len(self.key_entry(0))
        self.verify_array("hlc_fences", self.hlc_fences(hlc_per_page))
        self.verify_array("key_fences", self.key_fences(key_per_page))
        self.verify_array("filter", self.filter_blocks())
        self.verify_stream("collections", self.collection_stream())
        self.verify_stream("nodes", self.node_stream())
        self.expect("unused_first", 0)
        self.expect("unused_count", 0)
        if self.next_page * PAGE_SIZE != len(self.data):
            self.fail("pages behind the last section", self.next_page * PAGE_SIZE)

    def enter(self, name, page_count):
        """Checks where a section is, and returns its first page."""
        first = self.next_page
        self.expect(name + "_first", first)
        self.expect(name + "_count", page_count)
        self.next_page += page_count
        if self.next_page * PAGE_SIZE > len(self.data):
            offset = PAGE_0.offset_of(name + "_first")
            self.fail(f"section {name} passes the end of the file", offset)
        return first

    def verify_array(self, name, items):
        """A section of entries of one size, none split over pages."""
        size = len(items[0])
        per_page = PAGE_CONTENT // size
        first = self.enter(name, -(-len(items) // per_page))
        for number, expected in enumerate(items):
            page, slot = divmod(number, per_page)
            at = (first + page) * PAGE_SIZE + 4 + slot * size
            found = bytes(self.data[at : at + size])
            if found != expected:
                message = f"{name} {number} is {found.hex()}, not {expected.hex()}"
                self.fail(message, at)
            if slot == per_page - 1 or number == len(items) - 1:
                self.verify_unused(at + size, (first + page + 1) * PAGE_SIZE)

    def verify_stream(self, name, expected):
        """A section that is one stream of bytes over the contents of its pages."""
        page_count = -(-len(expected) // PAGE_CONTENT)
        first = self.enter(name, page_count)
        for number in range(page_count):
            part = expected[number * PAGE_CONTENT : (number + 1) * PAGE_CONTENT]
            at = (first + number) * PAGE_SIZE + 4
            found = bytes(self.data[at : at + len(part)])
            if found != part:
                differing = next(i for i in range(len(part)) if found[i] != part[i])
                self.fail(f"the {name} differ from those of the frames", at + differing)
            self.verify_unused(at + len(part), at + PAGE_CONTENT)

    def verify_unused(self, start, end):
        unused = first_nonzero(self.data, start, end)
        if unused is not None:
            self.fail("unused bytes of a page are not zero", unused)

    # What the sections should hold

    def field(self, value, name):
        return value.to_bytes(getattr(self.page_0, name), "little")

    def timestamp(self, entry):
        return (
            self.field(entry.physical - self.base, "physical_width")
            + self.field(entry.counter, "counter_width")
            + self.field(self.node_index[entry.node], "node_width")
        )

    def hlc_entry(self, rank):
        entry = self.ranked[rank]
        return (
            self.timestamp(entry)
            + self.field(self.collection_index[entry.collection], "collection_width")
            + self.field(entry.block_offset, "block_width")
            + self.field(entry.slot, "slot_width")
            + bytes([entry.is_deletion])
        )

    def hlc_entries(self):
        return [self.hlc_entry(rank) for rank in range(len(self.ranked))]

    def key_entry(self, position):
        rank = self.by_key[position]
        entry = self.ranked[rank]
        return (
            self.hashes[rank]
            + self.timestamp(entry)
            + self.field(rank, "rank_width")
            + entry.content_checksum.to_bytes(4, "little")
        )

    def key_entries(self):
        return [self.key_entry(position) for position in range(len(self.by_key))]

    def hlc_fences(self, per_page):
        return [
            entry.physical.to_bytes(8, "little") + entry.counter.to_bytes(8, "little")
            for entry in self.ranked[::per_page]
        ]

    def key_fences(self, per_page):
        fences = []
        for rank in self.by_key[::per_page]:
            collection = self.collection_index[self.ranked[rank].collection]
            fences.append(collection.to_bytes(4, "little") + bytes(4) + self.hashes[rank][:8])
        return fences

    def filter_block_count(self):
        return max(1, -(-len(self.ranked) // 32))

    def filter_blocks(self):
        count = self.filter_block_count()
        blocks = [bytearray(FILTER_BLOCK_SIZE) for _ in range(count)]
        for content in self.hashes:
            h1 = int.from_bytes(content[:8], "little")
            h2 = int.from_bytes(content[8:], "little")
            chosen = blocks[((h1 >> 32) * count) >> 32]
            for k in range(7):
                bit = (h2 >> (9 * k)) & 511
                chosen[bit >> 3] |= 1 << (bit & 7)
        return [bytes(content) for content in blocks]

    def collection_stream(self):
        counts = Counter(entry.collection for entry in self.ranked)
        items, names, first_key = b"", b"", 0
        for name in self.collections:
            items += first_key.to_bytes(8, "little") + counts[name].to_bytes(8, "little")
            items += len(names).to_bytes(4, "little") + len(name).to_bytes(4, "little")
            names += name
            first_key += counts[name]
        return items + names

    def node_stream(self):
        offsets, content = bytes(4), b""
        for node in self.nodes:
            content += node
            offsets += len(content).to_bytes(4, "little")
        return offsets + content
