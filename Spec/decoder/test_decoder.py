#!/usr/bin/env python3
"""Tests of the decoder: `python3 test_decoder.py`, or `python3 -m unittest discover -s` here."""

import io
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import fuzz
import make_hexdump
import make_store
import make_vectors
from airdb import block, hlc, index, lz4block, manifest, segment, siphash, varint
from airdb.crc32c import bound, crc
from airdb.directory import MemoryDirectory
from airdb.store import Store
from airdb_decode import DAMAGE, FINE, UNSUPPORTED, USAGE, run

HERE = os.path.dirname(os.path.abspath(__file__))
VECTORS = os.path.join(HERE, "..", "vectors")

SEGMENT_1 = segment.file_name(1)
SEGMENT_2 = segment.file_name(2)


def vectors(name):
    with open(os.path.join(VECTORS, name), encoding="utf-8") as file:
        return json.load(file)


def decode(files, mode="--jsonl"):
    """Exit status, records or other output, and messages."""
    out, err = io.StringIO(), io.StringIO()
    status = run(MemoryDirectory(files), mode, out, err)
    return status, out.getvalue(), err.getvalue()


def identifiers(files):
    status, out, _ = decode(files)
    return [json.loads(text)["id"] for text in out.splitlines()]


def patched(content, at, replacement):
    return content[:at] + replacement + content[at + len(replacement) :]


def with_manifest(files, **values):
    """The store with other manifest fields, under a right checksum."""
    content = files["MANIFEST"]
    for name, value in values.items():
        at, size, _, _ = next(row for row in manifest.HEADER.rows if row[3] == name)
        content = patched(content, at, value.to_bytes(size, "little"))
    checksum = bound(b"MANI", 0, 0, content[12:])
    return dict(files, MANIFEST=patched(content, 8, checksum.to_bytes(4, "little")))


def simple(count, **options):
    """A writer with `count` commits of one record each, ids "0", "1", ..., all in one session."""
    store = make_store.StoreWriter(**options)
    store.begin_session()
    for number in range(count):
        commit(store, number)
    return store


def commit(store, number):
    stamp = f"{1_700_000_000_000 + number}-0-n"
    store.commit([make_store.Change("c", str(number), stamp, b"payload %d" % number)])


class Checksums(unittest.TestCase):
    def test_check_value_and_rfc_3720(self):
        self.assertEqual(crc(b"123456789"), 0xE3069283)
        self.assertEqual(crc(bytes(32)), 0x8A9136AA)
        self.assertEqual(crc(b"\xff" * 32), 0x62A8AB43)
        self.assertEqual(crc(bytes(range(32))), 0x46DD794E)
        self.assertEqual(crc(bytes(range(31, -1, -1))), 0x113FDB5C)

    def test_a_checksum_can_be_continued(self):
        self.assertEqual(crc(b"56789", crc(b"1234")), crc(b"123456789"))

    def test_vectors(self):
        for vector in vectors("checksum.json")["crc"]:
            self.assertEqual(f"{crc(bytes.fromhex(vector['bytes'])):08x}", vector["crc"], vector)
        for vector in vectors("checksum.json")["bound"]:
            content = bytes.fromhex(vector["bytes"])
            place = (vector["tag"].encode(), int(vector["file"]), int(vector["offset"]))
            self.assertEqual(f"{bound(*place, content):08x}", vector["crc"], vector)


class KeyHashes(unittest.TestCase):
    # From the reference implementation's list of vectors, lengths 0, 1, 7, 8, 15 and 63.
    REFERENCE = {
        0: "a3817f04ba25a8e66df67214c7550293",
        1: "da87c1d86b99af44347659119b22fc45",
        7: "a1f1ebbed8dbc153c0b84aa61ff08239",
        8: "3b62a9ba6258f5610f83e264f31497b4",
        15: "5493e99933b0a8117e08ec0f97cfc3d9",
        63: "5150d1772f50834a503e069a973fbd7c",
    }

    def test_reference_vectors(self):
        for length, expected in self.REFERENCE.items():
            found = siphash.siphash128(bytes(range(16)), bytes(range(length)))
            self.assertEqual(found.hex(), expected, length)

    def test_vectors(self):
        for vector in vectors("keyhash.json")["siphash"]:
            found = siphash.siphash128(bytes(range(16)), bytes(range(vector["length"])))
            self.assertEqual(found.hex(), vector["hash"], vector)
        for vector in vectors("keyhash.json")["keys"]:
            key = (vector["collection"].encode(), vector["id"].encode())
            found = siphash.key_hash(bytes.fromhex(vector["secret"]), *key)
            self.assertEqual(found.hex(), vector["hash"], vector)


class Varints(unittest.TestCase):
    def test_vectors(self):
        for vector in vectors("varint.json")["unsigned"]:
            content, value = bytes.fromhex(vector["bytes"]), int(vector["value"])
            self.assertEqual(varint.encode(value), content)
            end = len(content)
            self.assertEqual(varint.decode(content + b"\xff", 0, end), (value, end))
        for vector in vectors("varint.json")["zigzag"]:
            self.assertEqual(varint.zigzag(int(vector["value"])), int(vector["mapped"]))
            self.assertEqual(varint.unzigzag(int(vector["mapped"])), int(vector["value"]))
        for vector in vectors("varint.json")["malformed"]:
            content = bytes.fromhex(vector["bytes"])
            with self.assertRaises(ValueError, msg=vector):
                varint.decode(content, 0, len(content))


class Lz4(unittest.TestCase):
    def test_blocks_made_by_hand(self):
        for stored, raw in (
            ("00", b""),
            ("1061", b"a"),
            ("f0003132333435363738394142434445 46", b"123456789ABCDEF"),
            ("f001" + "61" * 16, b"a" * 16),
            # A match that overlaps what it appends, then 5 literals.
            ("1261 0100 50 6263646566", b"a" + b"a" * 6 + b"bcdef"),
            ("40 61626364 0400 50 3132333435", b"abcdabcd12345"),
            # Period 3, a match of 15 + 0 + 4 bytes.
            ("3f 616263 0300 00 50 3132333435", b"abc" * 7 + b"a" + b"12345"),
            # A match of 15 + 255 + 1 + 4.
            ("1f 78 0100 ff01 50 3132333435", b"x" * 276 + b"12345"),
        ):
            self.assertEqual(lz4block.decompress(bytes.fromhex(stored), len(raw)), raw, stored)

    def test_malformed_blocks(self):
        for stored, length, why in (
            ("", 0, "no token"),
            ("20 61", 2, "literals cut off"),
            ("f0", 15, "length cut off"),
            ("f0 ffff", 600, "length cut off"),
            ("10 61", 2, "too few bytes"),
            ("20 6161", 1, "too many literals"),
            ("10 61 01", 9, "offset cut off"),
            ("10 61 0000 50 6161616161", 10, "offset 0"),
            ("10 61 0200 50 6161616161", 10, "offset before the first byte"),
            ("10 61 0100 50 6161616161", 9, "too many bytes"),
            ("10 61 0100", 5, "ends with a match"),
            ("10 61 0100 40 61616161", 9, "4 literals behind the last match"),
            ("1f 61 0100" + "ff" * 100, 100, "match length grows beyond the raw length"),
        ):
            with self.assertRaises(ValueError, msg=why):
                lz4block.decompress(bytes.fromhex(stored), length)

    def test_what_the_writer_compresses(self):
        rng = random.Random(1)
        for size in (0, 1, 11, 12, 13, 100, 5000, 70_000):
            for alphabet in (1, 2, 5, 256):
                raw = bytes(rng.randrange(alphabet) for _ in range(size))
                stored = make_store.compress_lz4(raw)
                self.assertEqual(lz4block.decompress(stored, size), raw)


class Timestamps(unittest.TestCase):
    FORMATS = {"hybrid": hlc.HYBRID, "utf8Order": hlc.UTF8_ORDER}

    def test_texts(self):
        for name, hlc_format in self.FORMATS.items():
            for vector in vectors("hlc.json")[name]:
                self.check_text(vector, hlc_format)

    def check_text(self, vector, hlc_format):
        text = vector["text"].encode()
        if vector.get("malformed"):
            with self.assertRaises(ValueError, msg=vector):
                hlc.parse(text, hlc_format)
            return
        timestamp = hlc.parse(text, hlc_format)
        kinds = {"decimal": hlc.DECIMAL, "iso8601": hlc.ISO8601, None: 0}
        self.assertEqual(timestamp.kind, kinds[vector["kind"]], vector)
        self.assertEqual(timestamp.physical, int(vector["physical"]), vector)
        self.assertEqual(timestamp.counter, int(vector["counter"]), vector)
        self.assertEqual(timestamp.node, (vector["node"] or "").encode(), vector)
        shape = vector["shape"] and hlc.Shape(*vector["shape"])
        self.assertEqual(timestamp.shape, shape, vector)
        if shape:
            values = (timestamp.physical, timestamp.counter, timestamp.node)
            self.assertEqual(hlc.render(shape, *values), text, vector)

    def test_orders(self):
        for vector in vectors("hlc.json")["orders"]:
            if vector["order"] not in self.FORMATS:
                continue
            hlc_format = self.FORMATS[vector["order"]]
            previous = None
            for group in vector["groups"]:
                orders = {hlc.parse(text.encode(), hlc_format).order for text in group}
                self.assertEqual(len(orders), 1, group)
                (order,) = orders
                self.assertTrue(previous is None or previous < order, group)
                previous = order

    def test_unrenderable(self):
        for vector in vectors("hlc.json")["unrenderable"]:
            values = (int(vector["physical"]), int(vector["counter"]), vector["node"].encode())
            with self.assertRaises(ValueError, msg=vector):
                hlc.render(hlc.Shape(*vector["shape"]), *values)


class Examples(unittest.TestCase):
    """What the writer writes is read back, and a full check finds nothing."""

    def test_full_check(self):
        for name, make in make_store.EXAMPLES.items():
            status, out, err = decode(make().files, "--check")
            self.assertEqual((status, err), (FINE, ""), name)

    def test_records_come_back(self):
        store = make_store.sealed()
        placed = [p.change for opened in store.sealed + store.tail for p in opened.placed]
        entries = list(Store(MemoryDirectory(store.files)).entries())
        self.assertEqual(len(entries), len(placed))
        for entry, change in zip(entries, placed):
            record = entry.record
            found = (record.collection.decode(), record.id.decode(), record.hlc.decode())
            self.assertEqual(found, (change.collection, change.id, change.hlc))
            found = (record.payload, record.type, record.author, record.signature)
            self.assertEqual(found, (change.payload, change.type, change.author, change.signature))

    def test_the_example_uses_everything(self):
        entries = list(Store(MemoryDirectory(make_store.sealed().files)).entries())
        forms = {block.uuid_form(entry.record.id)[0] for entry in entries}
        self.assertEqual(forms, {block.ID_TEXT, block.ID_UUID_LOWER, block.ID_UUID_UPPER})
        codecs = {
            opened.content[placed.block_offset + 20]
            for opened in make_store.sealed().sealed
            for placed in opened.placed
        }
        self.assertEqual(codecs, {block.CODEC_STORED, block.CODEC_LZ4})

    def test_json_fields(self):
        _, out, _ = decode(make_store.minimal().files)
        self.assertEqual(
            json.loads(out),
            {
                "sequence": 1 << 32 | 1,
                "ordinal": 0,
                "date": 1_700_000_000_544,
                "label": "app",
                "collection": "notes",
                "id": "a",
                "type": 0,
                "hlc": "2023-11-14T22:13:20.544Z-0000-node",
                "payload": '{"title":"Hello"}',
                "author64": "AQI=",
                "signature64": "",
            },
        )

    def test_state(self):
        files = make_store.sealed().files
        status, out, _ = decode(files, "--state")
        records = [json.loads(text) for text in out.splitlines()]
        keys = [(record["collection"], record["id"]) for record in records]
        self.assertEqual(len(keys), len(set(keys)))
        orders = [hlc.parse(record["hlc"].encode(), hlc.HYBRID).order for record in records]
        self.assertEqual(orders, sorted(orders))
        state = {key: record for key, record in zip(keys, records)}
        self.assertEqual(state[("notes", "plain")]["payload"], "newest")
        self.assertEqual(state[("many", "key 9")]["payload"], "back")
        self.assertEqual(state[("many", "key 18")]["type"], 2)

    def test_an_empty_store(self):
        files = make_store.StoreWriter().files
        self.assertEqual(decode(files), (FINE, "", ""))
        self.assertEqual(decode(files, "--check")[0], FINE)

    def test_foreign_files_are_ignored(self):
        files = dict(make_store.sealed().files)
        for name in (".DS_Store", "._MANIFEST", "MANIFEST.new", "0000000000000001.index.new"):
            files[name] = b"junk"
        for name in ("1.segment", "000000000000000A.segment", "ffffffffffffffff.segment"):
            files[name] = b"junk"
        self.assertEqual(decode(files, "--check")[0], FINE)


class Openings(unittest.TestCase):
    """R2."""

    def test_no_store(self):
        self.assertEqual(decode({})[0], USAGE)
        self.assertEqual(decode({"LOCK": b"", "MANIFEST.new": b"x", ".DS_Store": b""})[0], USAGE)

    def test_segments_without_a_manifest_are_corruption(self):
        files = dict(make_store.minimal().files)
        del files["MANIFEST"]
        status, out, err = decode(files)
        self.assertEqual((status, out), (DAMAGE, ""))
        self.assertTrue(err.startswith("corruption: MANIFEST"), err)

    def test_newer_formats_are_refused(self):
        files = make_store.minimal().files
        self.assertEqual(decode(with_manifest(files, format_version=2))[0], UNSUPPORTED)
        self.assertEqual(decode(with_manifest(files, required_features=1))[0], FINE)
        self.assertEqual(decode(with_manifest(files, required_features=2))[0], UNSUPPORTED)
        self.assertEqual(decode(with_manifest(files, optional_features=1))[0], FINE)

    def test_an_unclosed_store_shows_its_tail(self):
        store = simple(2)
        store.write_manifest()
        commit(store, 2)
        store.begin_segment()
        commit(store, 3)
        store.begin_segment()
        store.begin_segment()
        commit(store, 4)
        self.assertEqual(identifiers(store.files), ["0", "1", "2", "3", "4"])
        self.assertEqual(decode(store.files, "--check")[0], FINE)

    def test_a_torn_frame_is_discarded(self):
        store = simple(3)
        content = store.files[SEGMENT_1]
        for cut in range(store.tail[0].end.length - 1, 64, -9):
            files = dict(store.files, **{SEGMENT_1: content[:cut]})
            status, out, err = decode(files)
            whole = out.count("\n")
            self.assertEqual(identifiers(files), ["0", "1", "2"][:whole])
            if err:
                self.assertEqual(status, DAMAGE)
                self.assertTrue(err.startswith("discarded tail: " + SEGMENT_1), err)

    def test_a_hole_above_the_watermark_is_discarded(self):
        store = simple(3)
        second = store.tail[0].placed[1].block_offset
        files = dict(store.files)
        files[SEGMENT_1] = patched(files[SEGMENT_1], second, bytes(8))
        status, out, err = decode(files)
        self.assertEqual((status, identifiers(files)), (DAMAGE, ["0"]))
        self.assertIn("discarded tail", err)
        self.assertIn("2 frame headers", err)

    def test_a_hole_below_a_watermark_is_corruption(self):
        store = simple(2)
        store.sync()  # known from the frame behind it alone
        commit(store, 2)
        second = store.tail[0].placed[1].block_offset
        files = dict(store.files)
        files[SEGMENT_1] = patched(files[SEGMENT_1], second, bytes(8))
        status, out, err = decode(files)
        self.assertEqual((status, out), (DAMAGE, ""))
        self.assertTrue(err.startswith("corruption: " + SEGMENT_1), err)

    def test_a_watermark_in_a_segment_that_is_not_reached_counts(self):
        store = simple(2)
        store.sync()
        store.begin_segment()
        commit(store, 2)
        second = store.tail[0].placed[1].block_offset
        without_durable_end = with_manifest(
            store.files,
            end_segment=0,
            end_length=0,
            end_sequence=0,
            end_checksum=0,
            last_commit_date=0,
            greatest_hlc_length=0,
        )
        # The greatest HLC is 17 bytes in 24: without it the manifest is that much shorter.
        content = without_durable_end["MANIFEST"][:-24]
        without_durable_end["MANIFEST"] = content
        files = with_manifest(without_durable_end, length=len(content))
        self.assertEqual(identifiers(files), ["0", "1", "2"])
        files[SEGMENT_1] = patched(files[SEGMENT_1], second, bytes(8))
        self.assertTrue(decode(files)[2].startswith("corruption: " + SEGMENT_1))

    def test_damage_in_a_closed_store_is_corruption(self):
        store = simple(3)
        store.close()
        for at in (0, 8, 64, 70, 140, store.tail[0].end.length - 1):
            files = dict(store.files)
            byte = files[SEGMENT_1][at] ^ 1
            files[SEGMENT_1] = patched(files[SEGMENT_1], at, bytes([byte]))
            status, out, err = decode(files)
            self.assertEqual((status, out), (DAMAGE, ""), at)
            self.assertTrue(err.startswith("corruption"), err)

    def test_a_missing_segment(self):
        store = simple(1)
        store.begin_segment()
        commit(store, 1)
        store.begin_segment()
        commit(store, 2)
        files = dict(store.files)
        del files[SEGMENT_2]
        self.assertEqual(identifiers(files), ["0"])
        self.assertIn("discarded tail: " + segment.file_name(3), decode(files)[2])
        store.close()
        files = dict(store.files)
        del files[SEGMENT_2]
        self.assertTrue(decode(files)[2].startswith("corruption"))

    def test_a_segment_without_a_commit_is_no_loss(self):
        # As one prepared ahead of time and not used: nothing in it, reserved space, or the bytes of
        # another one's header.
        store = simple(2)
        header = store.files[SEGMENT_1][:64]
        for content in (b"", bytes(4096), header + bytes(4096)):
            files = dict(store.files, **{SEGMENT_2: content})
            status, _, err = decode(files)
            self.assertEqual((status, err), (0, ""))
            self.assertEqual(identifiers(files), ["0", "1"])

    def test_an_old_manifest_is_corruption(self):
        store = simple(1)
        old = store.files["MANIFEST"]
        store.begin_session()
        commit(store, 1)
        files = dict(store.files, MANIFEST=old)
        status, _, err = decode(files)
        self.assertEqual(status, DAMAGE)
        self.assertIn("an old manifest was put back", err)

    def test_a_stale_sealed_segment_is_corruption(self):
        store = make_store.sealed()
        for name in (SEGMENT_1, SEGMENT_2):
            other = segment.file_name(3)
            self.assertTrue(decode(dict(store.files, **{name: store.files[other]}))[2])

    def test_sequences(self):
        one = 1 << 32
        self.assertTrue(segment.follows(one + 1, 0))
        self.assertTrue(segment.follows(5 * one + 1, one + 9))
        self.assertTrue(segment.follows(one + 10, one + 9))
        for sequence, previous in (
            (0, 0),
            (1, 0),
            (one, 0),
            (one + 2, 0),
            (one + 9, one + 9),
            (one + 11, one + 9),
            (2 * one + 2, one + 9),
            (one + 1, 2 * one + 1),
            (2 * one, 2 * one - 1),
        ):
            self.assertFalse(segment.follows(sequence, previous), (sequence, previous))


class Violations(unittest.TestCase):
    """Content that no crash writes, under right checksums, is corruption (R3)."""

    def assert_corruption(self, store, message):
        status, out, err = decode(store.files, "--check")
        self.assertEqual(status, DAMAGE)
        self.assertIn(message, err)
        self.assertIn("corruption", err)

    def test_commit_dates_do_not_decrease(self):
        store = simple(1)
        store.commit([make_store.Change("c", "x", "1800000000000-0-n")], date=-5)
        self.assert_corruption(store, "goes back")

    def test_only_winners_are_logged(self):
        store = simple(2)
        commit(store, 1)
        self.assert_corruption(store, "not greater than the one before")

    def test_the_greatest_timestamp_of_the_manifest(self):
        store = simple(3)
        store.greatest = b"1700000000001-0-n"
        store.close()
        self.assert_corruption(store, "below one of the log")
        store.greatest = b"1700000000009-0-n"
        store.close()
        self.assert_corruption(store, "of no record")

    def test_a_key_occurs_once_in_a_frame(self):
        store = simple(0)
        changes = [make_store.Change("c", "x", f"180000000000{n}-0-n") for n in range(2)]
        store.commit(changes)
        self.assert_corruption(store, "twice in a commit")

    def test_one_kind_of_physical_part(self):
        store = simple(1)
        store.commit([make_store.Change("c", "x", "2030-01-01T00:00:00Z-0-n")])
        self.assert_corruption(store, "not of the store's kind")

    def test_metadata(self):
        """Rows and tables of a block, changed under right checksums."""
        store = make_store.minimal()
        metadata = store.tail[0].placed[0].block_offset + block.HEADER.size
        for at, content, message in (
            (0, "02", "more nodes than fit"),  # collections: count
            (1, "06", "not UTF-8"),  # collection 0: length
            (2, "ff", "not UTF-8"),
            (8, "03", "of no kind"),  # shape 0: kind
            (9, "02", "cannot spell"),  # shape 0: fewer digits than the instant needs
            (10, "2e", "malformed"),  # shape 0: separator
            (12, "01", "cannot spell"),  # shape 0: upper case without letters
            (24, "3c", "not in them"),
            (24, "4c", "reserved flags"),
            (24, "0f", "form 3"),
            (24, "0d", "beyond the shapes"),  # a UUID eats what follows
            (25, "01", "beyond the collections"),
            (26, "00000000", "content checksum"),
            (32, "02", "beyond the shapes"),
            (43, "01", "beyond the nodes"),
            (44, "01", "beyond the authors"),
            (46, "12", "the payloads have 18 bytes"),
            (45, "8000", "shortest form"),
        ):
            with self.subTest(at=at, content=content):
                files = self.with_metadata(store, metadata + at, bytes.fromhex(content))
                status, out, err = decode(files)
                self.assertEqual((status, out), (DAMAGE, ""))
                self.assertTrue(err.startswith("corruption: " + SEGMENT_1), err)
                self.assertIn(message, err)

    def with_metadata(self, store, at, content):
        files = dict(store.files)
        files[SEGMENT_1] = patched(files[SEGMENT_1], at, content)
        return fuzz.forge(files, store.files)


class Compaction(unittest.TestCase):
    """Packed frames (5.2), and what R6 says."""

    def test_commits_keep_sequence_ordinal_date_and_label(self):
        for name in ("compacted", "packed"):
            kept = []
            compact = make_store.StoreWriter.compact

            def spy(store, *arguments, **options):
                if not kept:
                    kept.append(decode(store.files)[1].splitlines())
                compact(store, *arguments, **options)

            with unittest.mock.patch.object(make_store.StoreWriter, "compact", spy):
                files = make_store.EXAMPLES[name]().files
            lines = decode(files)[1].splitlines()
            before = [text for text in kept[0] if text in set(lines)]
            self.assertEqual(lines[: len(before)], before)
            self.assertLess(len(before), len(kept[0]))
            self.assertLessEqual(len(lines) - len(before), 1)  # what was committed afterwards

    def test_the_state_is_that_of_the_log_before(self):
        store = make_store.sealed()
        before = decode(store.files, "--state")
        for first, count in ((0, 1), (1, 2), (0, 2)):
            store.compact(first, count)
            self.assertEqual(decode(store.files, "--state"), before)
            self.assertEqual(decode(store.files, "--check")[::2], (FINE, ""))

    def test_a_segment_of_which_nothing_is_left(self):
        store = simple(2)
        store.seal()
        stamp = "1800000000000-0-n"
        store.commit([make_store.Change("c", str(number), stamp) for number in range(2)])
        store.compact(0, 1)
        self.assertEqual((store.sealed, store.required_features), ([], 0))
        store.close()
        self.assertEqual(identifiers(store.files), ["0", "1"])
        self.assertEqual(decode(store.files, "--check")[::2], (FINE, ""))

    def test_what_a_crash_leaves_is_no_damage(self):
        store = make_store.sealed()
        before = dict(store.files)
        store.file_id_limit += 1  # the id is given out by a manifest that still lists the inputs
        store.write_manifest()
        store.file_id_limit -= 1
        with_id = dict(store.files)
        store.compact(0, 2)
        for files in ({**before, **store.files}, {**store.files, **with_id}):
            self.assertEqual(decode(files, "--check")[::2], (FINE, ""))
            self.assertEqual(decode(files, "--state")[1], decode(before, "--state")[1])

    def test_an_id_that_was_not_given_out(self):
        store = make_store.sealed()
        old = store.files["MANIFEST"]
        store.begin_segment()
        status, out, err = decode(dict(store.files, MANIFEST=old))
        self.assertEqual((status, out), (DAMAGE, ""))
        self.assertIn("an old manifest was put back", err)

    def test_the_feature_bit_is_required(self):
        files = with_manifest(make_store.packed_only().files, required_features=0)
        self.assertIn("feature bit", decode(files)[2])

    def test_the_sealed_end(self):
        store = make_store.compacted()
        for name in ("segment", "length", "sequence", "checksum"):
            value = getattr(store.sealed_end, name) ^ 8
            status, out, err = decode(with_manifest(store.files, **{f"sealed_{name}": value}))
            self.assertEqual((status, out), (DAMAGE, ""), name)
            self.assertTrue(err.startswith("corruption"), err)

    def test_tables(self):
        """Transaction tables and ordinals, changed under right checksums."""
        store = make_store.packed_only()
        table = segment.HEADER.size + segment.FRAME.size
        name = segment.file_name(2)
        for at, content, message in (
            (0, "7f", "more labels than fit"),
            (5, "03", "a label is not UTF-8"),
            (1, "03617070 03617070", "not distinct"),
            (6, "00", "no transactions"),
            (7, "8180808000", "shortest form"),
            (7, "8180808020", "not in order"),
            (12, "c2a8abfef962", "not that of the frame header"),
            (22, "01", "first use"),
            (23, "00", "without records"),
            (24, "00", "not in order"),
            (24, "02", "not in order"),
            (25, "6f", "goes back"),
            (30, "00", "not used"),
            (31, "02", "do not make"),
            (32 + 21, "00", "flags: 0"),
            (32 + 21, "03", "flags: 3"),
        ):
            with self.subTest(at=at, content=content):
                content = patched(store.files[name], table + at, bytes.fromhex(content))
                files = fuzz.forge(dict(store.files, **{name: content}), store.files)
                status, out, err = decode(files)
                self.assertEqual((status, out), (DAMAGE, ""))
                self.assertTrue(err.startswith("corruption: " + name), err)
                self.assertIn(message, err)

    def test_ordinals_ascend(self):
        store = simple(0)
        changes = [make_store.Change("c", str(n), f"180000000000{n}-0-n") for n in range(3)]
        store.commit(changes)
        store.seal()
        opened = store.sealed[0]
        opened.placed = [placed._replace(ordinal=2 - placed.ordinal) for placed in opened.placed]
        store.compact(0, 1)
        self.assertIn("the ordinals of a commit do not ascend", decode(store.files)[2])

    def test_packed_frames_are_in_sealed_segments_only(self):
        store = make_store.packed_only()
        files = store.files
        content = files[segment.file_name(2)]
        self.assertEqual(segment.find_witnesses(content, 0, 2)[0].kind, segment.KIND_PACKED)
        log = segment.Log(1, hlc.HYBRID)
        self.assertIn("kind 2", segment.scan(content, 2, log).stop)

    def test_a_witness_needs_no_body(self):
        content = simple(1).files[SEGMENT_1][: segment.HEADER.size + segment.FRAME.size]
        self.assertEqual(len(segment.find_witnesses(content, 0, 1)), 1)

    def test_bits_outlive_what_superseded(self):
        """Compaction takes a version between an older one and one above livenessSequence: that the
        older one was superseded before, its bit alone says."""
        store = simple(2)
        store.seal()
        store.commit([make_store.Change("c", "0", "1800000000000-0-n")])
        commit(store, 5)
        store.seal()
        sealed = store.last.sequence
        store.commit([make_store.Change("c", "0", "1900000000000-0-n")])
        store.compact(1, 1, liveness_sequence=sealed)
        self.assertEqual([opened.dead for opened in store.sealed], [{0}, set()])
        self.assertEqual(decode(store.files, "--check")[::2], (FINE, ""))


class DerivedData(unittest.TestCase):
    """Damage of an index or a liveness file leaves the records readable."""

    def check_damage(self, files, name):
        right = decode(make_store.sealed().files)[1]
        self.assertEqual(decode(files), (FINE, right, ""))
        status, _, err = decode(files, "--check")
        self.assertEqual(status, DAMAGE)
        self.assertTrue(err.startswith("derived data: " + name), err)

    def test_every_page_and_section(self):
        store = make_store.sealed()
        name = index.file_name(1)
        content = store.files[name]
        rng = random.Random(3)
        for page in range(0, len(content), 4096):
            at = page + rng.randrange(4096)
            damaged = patched(content, at, bytes([content[at] ^ 0x10]))
            self.check_damage(dict(store.files, **{name: damaged}), name)
            # The same, under a right checksum: every byte of an index has one right value.
            forged = fuzz.forge(dict(store.files, **{name: damaged}), store.files)
            if page or not 180 > at > 0:
                self.check_damage(forged, name)

    def test_absent_files(self):
        store = make_store.sealed()
        for name in store.files:
            if name.endswith((".index", ".liveness")):
                files = dict(store.files)
                del files[name]
                self.check_damage(files, name)

    def test_a_wrong_live_bit(self):
        store = make_store.sealed()
        (name,) = [name for name in store.files if name.endswith(".liveness")]
        content = store.files[name]
        for at in range(64 + 32 * 3, len(content)):
            damaged = patched(content, at, bytes([content[at] ^ 1]))
            files = dict(store.files, **{name: damaged})
            self.check_damage(files, name)


class Rot(unittest.TestCase):
    def test_every_bit_of_a_minimal_store_counts(self):
        files = make_store.minimal().files
        for name, content in files.items():
            for bit in range(8 * len(content)):
                flipped = content[bit >> 3] ^ 1 << (bit & 7)
                damaged = dict(files, **{name: patched(content, bit >> 3, bytes([flipped]))})
                status, out, err = decode(damaged)
                self.assertIn(status, (DAMAGE, UNSUPPORTED), (name, bit))
                self.assertEqual(out, "")
                self.assertTrue(err)

    def test_every_length_of_a_minimal_store(self):
        files = make_store.minimal().files
        for name, content in files.items():
            for length in range(len(content)):
                self.assertEqual(decode(dict(files, **{name: content[:length]}))[0], DAMAGE)

    def test_bits_of_a_sealed_store_count(self):
        files = make_store.sealed().files
        rng = random.Random(4)
        names = [name for name in sorted(files) if files[name]]
        for _ in range(60):
            name = rng.choice(names)
            bit = rng.randrange(8 * len(files[name]))
            flipped = files[name][bit >> 3] ^ 1 << (bit & 7)
            damaged = patched(files[name], bit >> 3, bytes([flipped]))
            status, _, _ = decode(dict(files, **{name: damaged}), "--check")
            self.assertIn(status, (DAMAGE, UNSUPPORTED), (name, bit))

    def test_mutants(self):
        self.assertEqual(fuzz.main(["150", "7"]), 0)


class Outputs(unittest.TestCase):
    def test_vectors_are_up_to_date(self):
        for name in make_vectors.FILES:
            with open(os.path.join(VECTORS, name), encoding="utf-8", newline="") as file:
                self.assertEqual(file.read(), make_vectors.text_of(name), name)

    def test_the_hex_dump_is_up_to_date(self):
        with open(os.path.join(HERE, "..", "HexDumps.md"), encoding="utf-8", newline="") as file:
            self.assertEqual(file.read(), make_hexdump.text())

    def test_command_line(self):
        script = os.path.join(HERE, "airdb_decode.py")

        def status(*arguments):
            command = [sys.executable, script, *arguments]
            return subprocess.run(command, capture_output=True, check=False).returncode

        with tempfile.TemporaryDirectory() as path:
            self.assertEqual(status(path), USAGE)
            make_store.sealed().save(path)
            for mode in ("--jsonl", "--state", "--check"):
                self.assertEqual(status(path, mode), FINE)
            self.assertEqual(status(path, "--jsonl", "--check"), USAGE)
            self.assertEqual(status(path, "--other"), USAGE)
            self.assertEqual(status(), USAGE)
            self.assertEqual(status(os.path.join(path, "absent")), USAGE)
            os.remove(os.path.join(path, SEGMENT_1))
            self.assertEqual(status(path), DAMAGE)
            os.mkdir(os.path.join(path, SEGMENT_1))
            self.assertEqual(status(path), DAMAGE)


if __name__ == "__main__":
    unittest.main()
