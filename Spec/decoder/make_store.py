#!/usr/bin/env python3
"""A small writer of stores, to test the decoder and to draw HexDumps.md.

usage: make_store.py DIRECTORY [minimal | sealed | unclosed | utf8 | compacted | packed]

It is deterministic, keeps everything in memory, and trusts its caller: what it is given has to be
what an engine would log (winners only, dates that do not decrease). Section numbers are those of
Format.md.
"""

import hashlib
import os
import sys
from typing import NamedTuple, Optional

from airdb import block, consumers, hlc, index, liveness, manifest, packed, segment, varint
from airdb.crc32c import bound, crc
from airdb.layout import padded
from airdb.siphash import key_hash


class Change(NamedTuple):
    """A record to commit."""

    collection: str
    id: str
    hlc: str
    payload: bytes = b""
    type: int = 0
    author: Optional[bytes] = None
    signature: Optional[bytes] = None

    @property
    def key(self):
        return (self.collection.encode(), self.id.encode())


class Placed(NamedTuple):
    """A committed record and where it is."""

    change: Change
    commit: packed.Transaction
    ordinal: int
    block_offset: int
    slot: int


class OpenSegment:
    """A segment with its content so far."""

    def __init__(self, file_id, header):
        self.file_id = file_id
        self.content = bytearray(header)
        self.placed = []
        self.first_sequence = self.last_sequence = 0
        self.predecessor = segment.End()
        self.end = segment.End()
        self.last_commit_date = 0
        self.index_length = self.index_checksum = 0
        self.ranks = None  # of each key, once it is sealed
        self.dead = set()


class StoreWriter:
    """Writes one store into `files`, a dictionary from names to contents."""

    def __init__(self, hlc_format=hlc.HYBRID, deletion_values=(2,), block_target=8192, reserve=0):
        self.files = {"LOCK": b""}
        self.store_id = bytes(range(0xA0, 0xB0))
        self.hash_secret = bytes(range(0xC0, 0xD0))
        self.hlc_format = hlc_format
        self.deletion_values = deletion_values
        self.block_target = block_target
        self.reserve = reserve
        self.created_date = 1_700_000_000_000
        self.generation = self.epoch = self.counter = 0
        self.physical_kind = 0
        self.file_id_limit = 1
        self.sealed, self.tail = [], []
        self.required_features = 0
        self.adoption = 0
        self.last = self.durable = self.sealed_end = segment.End()
        self.last_date = self.durable_date = 0
        self.greatest = self.durable_greatest = b""
        self.liveness = (0, 0, 0, 0)  # sequence, generation, length, checksum
        self.write_manifest()

    # Operations

    def begin_session(self):
        """Claims an epoch (5.1). An open has synced the tail, so all of the log is durable."""
        self.epoch += 1
        self.counter = 0
        self.sync()
        self.write_manifest()

    def begin_segment(self):
        """Starts a new segment behind the end of the log."""
        self.file_id_limit += 1
        self.write_manifest()
        opened = self.new_segment(self.file_id_limit - 1, self.last)
        self.tail.append(opened)
        self.last = self.last._replace(segment=opened.file_id, length=len(opened.content))
        self.store_segment(opened)

    def commit(self, changes, label="", date=None, power_loss=True):
        """Appends a frame (5)."""
        if not self.tail:
            self.begin_segment()
        opened = self.tail[-1]
        self.counter += 1
        sequence = self.epoch << 32 | self.counter
        self.last_date = self.last_date + 1000 if date is None else date

        places = self.frame(
            opened,
            label.encode(),
            changes,
            None,
            sequence=sequence,
            durable_sequence=self.durable.sequence,
            commit_date=self.last_date,
            previous_checksum=self.last.checksum,
            kind=segment.KIND_COMMIT,
            flags=segment.FLAG_POWER_LOSS if power_loss else 0,
            label_length=len(label.encode()),
            table_length=0,
        )
        self.last = opened.end
        fields = (sequence, self.last_date, opened.end.checksum, label.encode(), len(changes))
        made = packed.Transaction(*fields)
        for ordinal, (change, place) in enumerate(zip(changes, places)):
            opened.placed.append(Placed(change, made, ordinal, *place))
        opened.first_sequence = opened.first_sequence or sequence
        opened.last_sequence = sequence
        opened.last_commit_date = self.last_date
        for change in changes:
            self.note_timestamp(change.hlc.encode())
        self.store_segment(opened)

    def sync(self):
        """Makes all of the log durable."""
        self.durable, self.durable_date = self.last, self.last_date
        self.durable_greatest = self.greatest
        if self.last.sequence == 0:
            self.durable = segment.End()

    def seal(self):
        """Gives all segments of the tail an index, and the store a liveness file (8, 9)."""
        self.sync()
        for opened in self.tail:
            name = index.file_name(opened.file_id)
            self.files[name] = self.index(opened)
            self.store_segment(opened)
        self.sealed += self.tail
        self.tail = []
        self.sealed_end = self.durable
        self.write_liveness()
        self.write_manifest()

    def compact(
        self,
        first,
        count,
        keeps=lambda placed: False,
        frame_records=1 << 32,
        liveness_sequence=None,
    ):
        """Replaces `count` sealed segments, the first being number `first`, by one (5.2, R6).

        What is superseded goes, but for what `keeps` asks for. Frames get about `frame_records`.
        """
        self.sync()
        inputs = self.sealed[first : first + count]
        rest = [opened for opened in self.sealed + self.tail if opened not in inputs]
        rest = [placed for opened in rest for placed in opened.placed]
        newest = {}
        for placed in rest + [placed for opened in inputs for placed in opened.placed]:
            sequences = newest.setdefault(placed.change.key, [])
            sequences.append(placed.commit.sequence)
        kept = [
            placed
            for opened in inputs
            for placed in opened.placed
            if placed.commit.sequence == max(newest[placed.change.key]) or keeps(placed)
        ]
        self.sealed[first : first + count] = []
        if kept:
            self.required_features |= manifest.PACKED_FRAMES
            self.file_id_limit += 1
            self.write_manifest_of(inputs, first)
            opened = self.new_segment(self.file_id_limit - 1, inputs[0].predecessor)
            opened.first_sequence = inputs[0].first_sequence
            opened.last_sequence = inputs[-1].last_sequence
            opened.last_commit_date = inputs[-1].last_commit_date
            for commits in self.packed_runs(kept, frame_records):
                self.packed_frame(opened, commits)
            self.files[index.file_name(opened.file_id)] = self.index(opened)
            self.store_segment(opened)
            self.sealed.insert(first, opened)
        self.write_liveness(liveness_sequence)
        self.write_manifest()
        for opened in inputs:
            del self.files[segment.file_name(opened.file_id)]
            del self.files[index.file_name(opened.file_id)]

    def write_manifest_of(self, inputs, first):
        """Gives out a file id while the inputs are still listed."""
        self.sealed[first:first] = inputs
        self.write_manifest()
        self.sealed[first : first + len(inputs)] = []

    def packed_runs(self, placed, frame_records):
        """Divides records into frames of whole commits: lists of lists of one commit's records."""
        commits = {}
        for one in placed:
            commits.setdefault(one.commit.sequence, []).append(one)
        runs = [[]]
        for commit in commits.values():
            if runs[-1] and sum(map(len, runs[-1])) >= frame_records:
                runs.append([])
            runs[-1].append(commit)
        return runs

    def packed_frame(self, opened, commits):
        """Appends a packed frame (5.2)."""
        labels = Table()
        rows = varint.encode(len(commits))
        sequence = date = 0
        made = []
        for records in commits:
            commit = records[0].commit._replace(record_count=len(records))
            made += [commit] * len(records)
            rows += varint.encode(commit.sequence - sequence)
            rows += varint.encode(varint.zigzag(commit.date - date))
            rows += commit.checksum.to_bytes(4, "little") + labels.reference(commit.label)
            rows += varint.encode(len(records))
            sequence, date = commit.sequence, commit.date
        table = varint.encode(len(labels.items)) + b"".join(map(counted, labels.items)) + rows
        records = [placed for group in commits for placed in group]
        is_first = len(opened.content) == segment.HEADER.size
        places = self.frame(
            opened,
            table,
            [placed.change for placed in records],
            [placed.ordinal for placed in records],
            sequence=sequence,
            durable_sequence=sequence,
            commit_date=date,
            previous_checksum=opened.predecessor.checksum if is_first else opened.end.checksum,
            kind=segment.KIND_PACKED,
            flags=0,
            label_length=0,
            table_length=len(table),
        )
        for placed, commit, place in zip(records, made, places):
            opened.placed.append(Placed(placed.change, commit, placed.ordinal, *place))

    def close(self):
        """A clean close: the manifest names the end of the log as durable (R5)."""
        self.sync()
        self.reserve = 0
        for opened in self.tail:
            self.store_segment(opened)
        self.write_liveness()
        self.write_manifest()

    def write_consumers(self, entries):
        """A new consumer file (13) that holds the table twice."""
        table = b""
        for entry in sorted(entries, key=lambda entry: entry["name"]):
            fields = dict(entry)
            name = fields.pop("name")
            part = consumers.CONSUMER.encode(name_length=len(name), **fields) + name
            table += part + bytes(padded(len(part)) - len(part))
        length = consumers.SLOT.size + len(table)
        pages = -(-length // consumers.PAGE) * consumers.PAGE
        fields = {
            "magic": consumers.MAGIC,
            "format_version": 1,
            "store_id": self.store_id,
            "slot_length": pages,
        }
        header = consumers.HEADER.encode(checksum=0, **fields)
        checksum = bound(b"CONS", 0, 0, header[12:])
        header = consumers.HEADER.encode(checksum=checksum, **fields)
        content = header + bytes(consumers.PAGE - len(header))
        for number in range(2):
            fields = {
                "consumer_count": len(entries),
                "generation": number + 1,
                "store_id": self.store_id,
                "length": length,
                "next_number": max(entry["number"] for entry in entries) + 1,
            }
            slot = consumers.SLOT.encode(checksum=0, **fields) + table + bytes(pages - length)
            checksum = bound(b"CONS", number + 1, consumers.PAGE + number * pages, slot[4:])
            content += checksum.to_bytes(4, "little") + slot[4:]
        self.files[consumers.NAME] = content

    def save(self, path):
        os.makedirs(path, exist_ok=True)
        for name, content in self.files.items():
            with open(os.path.join(path, name), "wb") as file:
                file.write(content)

    # Segments

    def new_segment(self, file_id, predecessor):
        """A segment without frames (4)."""
        fields = {
            "magic": segment.MAGIC,
            "format_version": 1,
            "store_id": self.store_id,
            "file_id": file_id,
            "predecessor": predecessor.segment,
            "predecessor_length": predecessor.length,
            "predecessor_checksum": predecessor.checksum,
        }
        header = segment.HEADER.encode(checksum=0, **fields)
        checksum = bound(b"SEGH", file_id, 0, header[12:])
        opened = OpenSegment(file_id, segment.HEADER.encode(checksum=checksum, **fields))
        opened.predecessor = predecessor
        return opened

    def frame(self, opened, head, changes, ordinals, **fields):
        """Appends a frame whose label or table is `head`; returns block offset and slot of each."""
        at = len(opened.content)
        body = bytearray(head)
        body_checksum = crc(body)
        places = []
        runs = self.runs(changes)
        for run in runs:
            offset = at + segment.FRAME.size + len(body)
            count = len(places)
            numbers = ordinals and ordinals[count : count + len(run)]
            content = self.block(run, numbers, opened.file_id, offset, at, count)
            places += [(offset, slot) for slot in range(len(run))]
            body_checksum = crc(content[:4], body_checksum)
            body += content
        length = padded(segment.FRAME.size + len(body))
        fields.update(
            magic=segment.FRAME_MAGIC,
            length=length,
            record_count=len(changes),
            block_count=len(runs),
            body_checksum=body_checksum,
        )
        header = segment.FRAME.encode(checksum=0, **fields)
        checksum = bound(b"FRAM", opened.file_id, at, header[8:])
        opened.content += segment.FRAME.encode(checksum=checksum, **fields)
        opened.content += body + bytes(length - segment.FRAME.size - len(body))
        opened.end = segment.End(opened.file_id, at + length, fields["sequence"], checksum)
        return places

    def store_segment(self, opened):
        name = segment.file_name(opened.file_id)
        self.files[name] = bytes(opened.content) + bytes(self.reserve)

    def note_timestamp(self, text):
        timestamp = hlc.parse(text, self.hlc_format)
        self.physical_kind = timestamp.kind
        if not self.greatest or timestamp.order > hlc.parse(self.greatest, self.hlc_format).order:
            self.greatest = text

    def runs(self, changes):
        """Divides records into blocks: one ends when it reaches the target, or at 256 records."""
        runs, size = [[]], 0
        for change in changes:
            full = size >= self.block_target or len(runs[-1]) == 256
            if runs[-1] and (full or len(change.payload) > self.block_target):
                runs.append([])
                size = 0
            runs[-1].append(change)
            size += len(change.payload)
        return runs

    def block(self, changes, ordinals, file_id, at, frame_offset, first_record):
        """One block (6); in a packed frame its rows have ordinals."""
        metadata = self.metadata(changes, ordinals)
        raw = b"".join(change.payload for change in changes)
        stored, codec = compress_lz4(raw), block.CODEC_LZ4
        if len(stored) >= len(raw):
            stored, codec = raw, block.CODEC_STORED
        content = metadata + stored
        fields = {
            "record_count": len(changes),
            "metadata_length": len(metadata),
            "stored_length": len(stored),
            "raw_length": len(raw),
            "codec": codec,
            "flags": block.FLAG_ORDINALS if ordinals else 0,
            "first_record": first_record,
            "frame_distance": at - frame_offset,
        }
        header = block.HEADER.encode(checksum=0, **fields)
        checksum = bound(b"BLCK", file_id, at, header[4:] + content)
        return block.HEADER.encode(checksum=checksum, **fields) + content

    def metadata(self, changes, ordinals):
        """Tables and rows (6.1)."""
        collections, shapes, nodes, authors = Table(), Table(), Table(), Table()
        rows = bytearray()
        physical = 0
        for number, change in enumerate(changes):
            form, uuid = block.uuid_form(change.id.encode())
            kind = change.type if change.type in (0, 1, 2) else block.EXPLICIT_TYPE
            has_author = change.author is not None
            has_signature = change.signature is not None
            rows.append(form | has_author << 2 | has_signature << 3 | kind << 4)
            if kind == block.EXPLICIT_TYPE:
                rows += varint.encode(varint.zigzag(change.type))
            rows += collections.reference(change.collection.encode())
            rows += block.content_checksum(
                change.type, change.author, change.signature, change.payload
            ).to_bytes(4, "little")
            rows += uuid or counted(change.id.encode())
            text = change.hlc.encode()
            timestamp = hlc.parse(text, self.hlc_format)
            if timestamp.shape is None:
                rows += varint.encode(0) + counted(text)
            else:
                shape = bytes(timestamp.shape)
                rows += varint.encode(shapes.index(shape) + 1)
                delta = (timestamp.physical - physical + (1 << 63)) % (1 << 64) - (1 << 63)
                rows += varint.encode(varint.zigzag(delta)) + varint.encode(timestamp.counter)
                physical = timestamp.physical
                if timestamp.shape.separator2:
                    rows += nodes.reference(timestamp.node)
            if has_author:
                rows += authors.reference(change.author)
            if has_signature:
                rows += counted(change.signature)
            rows += varint.encode(len(change.payload))
            if ordinals:
                rows += varint.encode(ordinals[number])
        tables = (
            b"".join(map(counted, collections.items)),
            b"".join(shapes.items),
            b"".join(map(counted, nodes.items)),
            b"".join(map(counted, authors.items)),
        )
        counts = (len(table.items) for table in (collections, shapes, nodes, authors))
        return b"".join(varint.encode(n) + items for n, items in zip(counts, tables)) + rows

    # Index (8)

    def index(self, opened):
        last_versions = {}
        for arrival, placed in enumerate(opened.placed):
            last_versions[placed.change.key] = (arrival, placed)
        rows = []
        for key, (arrival, placed) in last_versions.items():
            timestamp = hlc.parse(placed.change.hlc.encode(), self.hlc_format)
            order = (timestamp.physical, timestamp.counter, timestamp.node, arrival)
            rows.append((order, key, placed))
        rows.sort(key=lambda row: row[0])
        opened.ranks = {key: rank for rank, (_, key, _) in enumerate(rows)}

        nodes = sorted({order[2] for order, _, _ in rows} | {b""})
        collections = sorted({key[0] for _, key, _ in rows})
        base = min(order[0] for order, _, _ in rows)
        widths = {
            "physical_width": least_width(max(order[0] - base for order, _, _ in rows)),
            "counter_width": least_width(max(order[1] for order, _, _ in rows)),
            "node_width": least_width(len(nodes) - 1),
            "collection_width": least_width(len(collections) - 1),
            "block_width": least_width(max(placed.block_offset for _, _, placed in rows)),
            "slot_width": least_width(max(placed.slot for _, _, placed in rows)),
            "rank_width": least_width(len(rows) - 1),
        }

        def fixed(value, name):
            return value.to_bytes(widths[name], "little")

        hlc_entries, hlc_fences, keys = [], [], []
        for rank, (order, key, placed) in enumerate(rows):
            prefix = fixed(order[0] - base, "physical_width") + fixed(order[1], "counter_width")
            prefix += fixed(nodes.index(order[2]), "node_width")
            collection = collections.index(key[0])
            hlc_entries.append(
                prefix
                + fixed(collection, "collection_width")
                + fixed(placed.block_offset, "block_width")
                + fixed(placed.slot, "slot_width")
                + bytes([placed.change.type in self.deletion_values])
            )
            hlc_fences.append(order[0].to_bytes(8, "little") + order[1].to_bytes(8, "little"))
            content = key_hash(self.hash_secret, *key)
            change = placed.change
            content_checksum = block.content_checksum(
                change.type, change.author, change.signature, change.payload
            )
            rest = prefix + fixed(rank, "rank_width") + content_checksum.to_bytes(4, "little")
            keys.append((collection, content, rest))
        keys.sort()

        filter_blocks = [bytearray(64) for _ in range(max(1, -(-len(rows) // 32)))]
        for _, content, _ in keys:
            h1 = int.from_bytes(content[:8], "little")
            h2 = int.from_bytes(content[8:], "little")
            bits = filter_blocks[((h1 >> 32) * len(filter_blocks)) >> 32]
            for k in range(7):
                bit = h2 >> 9 * k & 511
                bits[bit >> 3] |= 1 << (bit & 7)

        key_entries = [content + rest for _, content, rest in keys]
        key_fences = [
            collection.to_bytes(4, "little") + bytes(4) + content[:8]
            for collection, content, _ in keys
        ]
        hlc_fences = hlc_fences[:: 4092 // len(hlc_entries[0])]
        key_fences = key_fences[:: 4092 // len(key_entries[0])]
        sections = {
            "hlc_entries": array_pages(hlc_entries),
            "key_entries": array_pages(key_entries),
            "hlc_fences": array_pages(hlc_fences),
            "key_fences": array_pages(key_fences),
            "filter": array_pages(filter_blocks),
            "collections": stream_pages(collection_table(collections, [key[0] for key in keys])),
            "nodes": stream_pages(node_table(nodes)),
        }
        fields = {"unused_first": 0, "unused_count": 0}
        pages = []
        for name, section_pages in sections.items():
            fields[name + "_first"] = 1 + len(pages)
            fields[name + "_count"] = len(section_pages)
            pages += section_pages
        page_0 = index.PAGE_0.encode(
            checksum=0,
            format_version=1,
            magic=index.MAGIC,
            store_id=self.store_id,
            file_id=opened.file_id,
            segment_length=len(opened.content),
            first_sequence=opened.first_sequence,
            last_sequence=opened.last_sequence,
            record_count=len(opened.placed),
            entry_count=len(rows),
            last_checksum=opened.end.checksum,
            page_count=1 + len(pages),
            physical_base=base,
            node_count=len(nodes),
            collection_count=len(collections),
            filter_block_count=len(filter_blocks),
            **widths,
            **fields,
        )
        content = b""
        for page in [page_0[4:]] + pages:
            checksum = bound(b"PAGE", opened.file_id, len(content), page)
            content += checksum.to_bytes(4, "little") + page
        opened.index_length = len(content)
        opened.index_checksum = int.from_bytes(content[:4], "little")
        return content

    # Liveness (9)

    def write_liveness(self, sequence=None):
        """A liveness file as of the end of the log, named by the manifest to come.

        It can be said to be as of an earlier `sequence` where that makes no difference.
        """
        sequence = self.last.sequence if sequence is None else sequence
        segments = self.sealed + self.tail
        for number, opened in enumerate(self.sealed):
            following = segments[number + 1 :]
            later = {placed.change.key for after in following for placed in after.placed}
            opened.dead = {rank for key, rank in opened.ranks.items() if key in later}
        self.files.pop(liveness.file_name(self.liveness[1]), None)
        if not any(opened.dead for opened in self.sealed):
            self.liveness = (sequence, 0, 0, 0)
            return
        generation = self.generation + 1
        offset = liveness.HEADER.size + liveness.SEGMENT.size * len(self.sealed)
        entries, bitmaps = b"", b""
        for opened in self.sealed:
            content = bytearray(-(-len(opened.ranks) // 8))
            for rank in opened.dead:
                content[rank >> 3] |= 1 << (rank & 7)
            at = offset + len(bitmaps)
            checksum = bound(b"LIVE", generation, at, content)
            entries += liveness.SEGMENT.encode(
                file_id=opened.file_id,
                entry_count=len(opened.ranks),
                offset=at if opened.dead else 0,
                checksum=checksum if opened.dead else 0,
                dead_count=len(opened.dead),
            )
            if opened.dead:
                bitmaps += content + bytes(padded(len(content)) - len(content))
        fields = {
            "magic": liveness.MAGIC,
            "format_version": 1,
            "generation": generation,
            "sequence": sequence,
            "store_id": self.store_id,
            "segment_count": len(self.sealed),
        }
        header = liveness.HEADER.encode(checksum=0, **fields) + entries
        checksum = bound(b"LIVE", generation, 0, header[12:])
        content = liveness.HEADER.encode(checksum=checksum, **fields) + entries + bitmaps
        self.files[liveness.file_name(generation)] = content
        self.liveness = (sequence, generation, len(content), checksum)

    # Manifest (3)

    def write_manifest(self):
        self.generation += 1
        variable = b"".join(
            manifest.DELETION_VALUE.encode(value=value) for value in sorted(self.deletion_values)
        )
        variable += self.durable_greatest
        variable += bytes(padded(len(variable)) - len(variable))
        for opened in self.sealed:
            variable += manifest.SEGMENT.encode(
                file_id=opened.file_id,
                length=len(opened.content),
                first_sequence=opened.first_sequence,
                last_sequence=opened.last_sequence,
                last_checksum=opened.end.checksum,
                index_checksum=opened.index_checksum,
                record_count=len(opened.placed),
                entry_count=len(opened.ranks),
                dead_count=len(opened.dead),
                index_length=opened.index_length,
                last_commit_date=opened.last_commit_date,
            )
        fields = {
            "magic": manifest.MAGIC,
            "format_version": 1,
            "length": manifest.HEADER.size + len(variable),
            "generation": self.generation,
            "store_id": self.store_id,
            "hash_secret": self.hash_secret,
            "required_features": self.required_features,
            "optional_features": 0,
            "epoch": self.epoch,
            "hlc_format": self.hlc_format,
            "hlc_physical_kind": self.physical_kind,
            "file_id_limit": self.file_id_limit,
            "end_segment": self.durable.segment,
            "end_length": self.durable.length,
            "end_sequence": self.durable.sequence,
            "end_checksum": self.durable.checksum,
            "segment_count": len(self.sealed),
            "last_commit_date": self.durable_date,
            "liveness_sequence": self.liveness[0],
            "liveness_generation": self.liveness[1],
            "liveness_length": self.liveness[2],
            "liveness_checksum": self.liveness[3],
            "deletion_value_count": len(self.deletion_values),
            "retention_horizon": 0,
            "adoption": self.adoption,
            "created_date": self.created_date,
            "greatest_hlc_length": len(self.durable_greatest),
            "horizon_hlc_length": 0,
            "sealed_checksum": self.sealed_end.checksum,
            "sealed_segment": self.sealed_end.segment,
            "sealed_length": self.sealed_end.length,
            "sealed_sequence": self.sealed_end.sequence,
        }
        header = manifest.HEADER.encode(checksum=0, **fields)
        checksum = bound(b"MANI", 0, 0, header[12:] + variable)
        self.files["MANIFEST"] = manifest.HEADER.encode(checksum=checksum, **fields) + variable


class Table:
    """A table of a block's metadata: distinct items in the order of their first use."""

    def __init__(self):
        self.items = []

    def index(self, item):
        if item not in self.items:
            self.items.append(item)
        return self.items.index(item)

    def reference(self, item):
        return varint.encode(self.index(item))


def counted(content):
    return varint.encode(len(content)) + content


def least_width(greatest):
    size = 0
    while greatest >> (8 * size):
        size += 1
    return size


def array_pages(items):
    """The contents of the pages of an array section."""
    per_page = 4092 // len(items[0])
    groups = [items[at : at + per_page] for at in range(0, len(items), per_page)]
    return [b"".join(bytes(item) for item in group).ljust(4092, b"\0") for group in groups]


def stream_pages(content):
    return [content[at : at + 4092].ljust(4092, b"\0") for at in range(0, len(content), 4092)]


def collection_table(collections, collection_of_keys):
    items, names = b"", b""
    for number, name in enumerate(collections):
        first = collection_of_keys.index(number)
        items += first.to_bytes(8, "little")
        items += collection_of_keys.count(number).to_bytes(8, "little")
        items += len(names).to_bytes(4, "little") + len(name).to_bytes(4, "little")
        names += name
    return items + names


def node_table(nodes):
    offsets = [0]
    for node in nodes:
        offsets.append(offsets[-1] + len(node))
    return b"".join(offset.to_bytes(4, "little") for offset in offsets) + b"".join(nodes)


def compress_lz4(raw):
    """A greedy LZ4 block compressor: not a good one, but right."""
    out = bytearray()
    seen = {}
    position = literals_start = 0
    # A match begins 12 bytes before the end at the latest, and leaves 5 literals.
    while position + 12 <= len(raw):
        word = raw[position : position + 4]
        candidate = seen.get(word)
        seen[word] = position
        if candidate is None or position - candidate > 65_535:
            position += 1
            continue
        length = 4
        longest = len(raw) - 5 - position
        while length < longest and raw[candidate + length] == raw[position + length]:
            length += 1
        lz4_sequence(out, raw[literals_start:position], position - candidate, length)
        position += length
        literals_start = position
    lz4_sequence(out, raw[literals_start:], None, 4)
    return bytes(out)


def lz4_sequence(out, literals, offset, match_length):
    extra = match_length - 4
    out.append(min(len(literals), 15) << 4 | min(extra, 15))
    lz4_length(out, len(literals))
    out += literals
    if offset is not None:
        out += offset.to_bytes(2, "little")
        lz4_length(out, extra)


def lz4_length(out, length):
    if length >= 15:
        rest = length - 15
        out += b"\xff" * (rest // 255) + bytes([rest % 255])


# Examples


def minimal():
    """One segment with one frame of one record, cleanly closed."""
    store = StoreWriter()
    store.begin_session()
    stamp = "2023-11-14T22:13:20.544Z-0000-node"
    change = Change("notes", "a", stamp, b'{"title":"Hello"}', author=b"\x01\x02", signature=b"")
    store.commit([change], label="app", date=1_700_000_000_544)
    store.close()
    return store


def pseudo_random(seed, count):
    """Bytes that LZ4 does not make smaller."""
    out, number = b"", 0
    while len(out) < count:
        out += hashlib.sha256(f"{seed} {number}".encode()).digest()
        number += 1
    return out[:count]


def stamp(tick, node="node", separator="-"):
    return f"{1_700_000_000_000 + tick * 7 // 3}{separator}{tick:04x}{separator}{node}"


UUID = "550e8400-e29b-41d4-a716-446655440000"
DIGITS_UUID = "77777777-7777-7777-7777-777777777777"


def first_commits(store):
    """Records of every form: id forms, types, absent and empty fields, shapes, payloads."""
    store.begin_session()
    store.commit(
        [
            Change("notes", "plain", stamp(1), b"a" * 300),
            Change("notes", UUID, stamp(2), b"lower", type=1),
            Change("notes", UUID.upper(), stamp(3), b"upper", type=1, author=b""),
            Change("notes", UUID.replace("-", "0"), stamp(3), b"text", signature=b"\xff\xfe"),
            Change("", "", stamp(3, "other", ":"), b"", type=-5, author=b"k", signature=b"s"),
            Change("tags", DIGITS_UUID, stamp(9, "n-1"), b"\xff", type=1 << 62),
            Change("tags", "mixed", "1700000000100-0aB-node", b"no shape"),
            Change("tags", "no node", "001700000000100_0", bytes(70)),
        ],
        label="åuthor",
    )
    store.commit([Change("notes", "big", stamp(20), pseudo_random("big", 9000))], power_loss=False)
    many = [Change("many", f"key {n}", stamp(100 + n, f"n{n % 3}"), b"%d" % n) for n in range(300)]
    store.commit(many)


def sealed():
    """Sealed segments with indexes of many pages, dead entries, several sessions, and a tail."""
    store = StoreWriter(deletion_values=(-1, 2), block_target=512, reserve=100)
    first_commits(store)
    store.commit([Change("notes", "plain", stamp(900), b"newer", type=1)])
    store.seal()
    store.begin_session()
    store.commit([Change("many", f"key {n}", stamp(1000 + n), type=2) for n in range(0, 300, 9)])
    store.begin_segment()
    store.commit([Change("notes", "big", stamp(2000), b"small again", type=1)])
    store.seal()
    store.commit([Change("notes", "plain", stamp(2100), b"newest", type=1)])
    store.begin_segment()
    store.commit([Change("many", "key 9", stamp(2200), b"back", type=0)], label="other")
    store.close()
    return store


def unclosed():
    """A store whose writer was killed: frames behind the durable end, reserved space."""
    store = StoreWriter(reserve=256)
    first_commits(store)
    store.sync()
    store.commit([Change("notes", "plain", stamp(900), b"newer", type=1)])
    store.begin_segment()
    store.commit([Change("notes", "late", stamp(901), b"late", type=1)])
    return store


def utf8():
    """A store of UTF-8 order, sealed."""
    store = StoreWriter(hlc_format=hlc.UTF8_ORDER, deletion_values=())
    store.begin_session()
    texts = ["a", "a\0", "\0", "b" * 40, "é", "0123456789abcdef", "0123456789abcdefg"]
    store.commit([Change("c", f"id {text}", text, text.encode()) for text in texts])
    store.commit([Change("c", "id a", "z", b"newer")])
    store.seal()
    store.close()
    return store


def compacted():
    """Packed frames, a segment that is packed twice, others as they were written, and a tail.

    It is a copy that was adopted.
    """
    store = StoreWriter(deletion_values=(-1, 2), block_target=512, reserve=100)
    store.adoption = 0xFEDCBA9876543210
    first_commits(store)
    store.seal()
    for session in range(5):
        store.begin_session()
        for number in range(4):
            tick = 1000 + 100 * session + 10 * number
            keys = range(number, 300, 7 + session)
            changes = [Change("many", f"key {n}", stamp(tick + n % 7), b"%d" % tick) for n in keys]
            store.commit(changes, label=f"device {number % 3}" if number else "")
        store.seal()
    store.compact(0, 3, frame_records=150)
    store.compact(0, 2, frame_records=60)
    store.compact(2, 1, keeps=lambda placed: placed.change.id == "key 21")
    store.commit([Change("many", "key 9", stamp(2200), b"back", type=0)], label="other")
    store.close()
    return store


def packed_only():
    """A packed frame of two commits, of which one has lost a record; cleanly closed."""
    store = StoreWriter()
    store.begin_session()
    changes = [Change("notes", id, f"170000000000{n}-0-n", b"%d" % n) for n, id in enumerate("ab")]
    store.commit(changes, label="app", date=1_700_000_000_544)
    store.commit([Change("notes", "a", "1700000000002-0-n", b"2")], date=1_700_000_000_600)
    store.seal()
    store.compact(0, 1)
    store.close()
    return store


def followed():
    """Two consumers of a store of two commits; cleanly closed."""
    store = StoreWriter()
    store.begin_session()
    store.commit([Change("notes", "a", "1700000000000-0-n", b"1")], date=1_700_000_000_100)
    seen = store.last
    store.commit([Change("notes", "b", "1700000000001-0-n", b"2")], date=1_700_000_000_200)
    none = {"sequence": 0, "checksum": 0, "horizon": 0, "resets": 0}
    none.update(flags=0, maximum_age=0, maximum_bytes=0, registered_date=1_700_000_000_050)
    mirror = {**none, "number": 1, "name": b"mirror", "retention": consumers.HISTORY}
    mirror.update(flags=consumers.HAS_AGE, maximum_age=86_400_000)
    mirror.update(sequence=seen.sequence, checksum=seen.checksum)
    search = {**none, "number": 2, "name": b"search", "retention": consumers.LATEST_VERSIONS}
    store.write_consumers([mirror, search])
    store.close()
    return store


EXAMPLES = {
    "minimal": minimal,
    "sealed": sealed,
    "unclosed": unclosed,
    "utf8": utf8,
    "compacted": compacted,
    "packed": packed_only,
    "followed": followed,
}


def main(arguments):
    if len(arguments) not in (1, 2) or (arguments[1:] and arguments[1] not in EXAMPLES):
        sys.stderr.write(__doc__)
        return 3
    EXAMPLES[arguments[1] if arguments[1:] else "minimal"]().save(arguments[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
