#!/usr/bin/env python3
"""The decoder against ../fixtures: stores made by the engine, good and damaged."""

import base64
import io
import json
import os
import unittest

from airdb.directory import DiskDirectory
from airdb_decode import DAMAGE, FINE, UNSUPPORTED, run

STORES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "stores")

# What the decoder calls an outcome, and its exit status.
CLASSES = {
    "clean": (None, FINE),
    "recovered": ("discarded tail", DAMAGE),
    "derived": ("derived data", DAMAGE),
    "damaged": ("corruption", DAMAGE),
    "consumers": ("corruption", DAMAGE),
    "corrupt": ("corruption", DAMAGE),
    "unsupportedFormat": ("unsupported format", UNSUPPORTED),
}


def fixtures():
    with open(os.path.join(STORES, "fixtures.json"), encoding="utf-8") as file:
        return json.load(file)


def decode(name, mode):
    out, err = io.StringIO(), io.StringIO()
    status = run(DiskDirectory(os.path.join(STORES, name)), mode, out, err)
    return status, out.getvalue(), err.getvalue()


def records(lines):
    for line in lines.split("\n")[:-1]:
        record = json.loads(line)
        if "payload" in record:
            record["payload64"] = base64.b64encode(record["payload"].encode()).decode()
        fields = ("collection", "id", "type", "hlc", "payload64", "author64", "signature64")
        yield {field: record[field] for field in fields if record[field] is not None}


class Fixtures(unittest.TestCase):
    def test_every_store_is_listed(self):
        listed = {fixture["name"] for fixture in fixtures()}
        stored = {entry.name for entry in os.scandir(STORES) if entry.is_dir()}
        self.assertEqual(listed, stored)

    def test_damage_is_told_as_expected(self):
        for fixture in fixtures():
            with self.subTest(fixture["name"]):
                status, _, messages = decode(fixture["name"], "--check")
                outcome = fixture["outcome"]
                kind, expected = CLASSES[fixture["code"] if outcome == "refused" else outcome]
                self.assertEqual(status, expected, messages)
                if kind:
                    self.assertTrue(messages.startswith(f"{kind}: {fixture['file']}: "), messages)
                if "discardedBytes" in fixture:
                    self.assertIn(f"{fixture['discardedBytes']} bytes", messages)

    def test_records_are_read_as_expected(self):
        for fixture in fixtures():
            with self.subTest(fixture["name"]):
                _, lines, _ = decode(fixture["name"], "--state")
                self.assertEqual(list(records(lines)), fixture.get("records", []))

    def test_consumers_are_read_as_expected(self):
        fields = ("name", "sequence", "retention", "maximumAge", "maximumBytes")
        for fixture in fixtures():
            with self.subTest(fixture["name"]):
                _, lines, _ = decode(fixture["name"], "--consumers")
                found = [json.loads(line) for line in lines.split("\n")[:-1]]
                found = [
                    {field: consumer[field] for field in fields if consumer[field] is not None}
                    for consumer in found
                ]
                self.assertEqual(found, fixture.get("consumers", []))

    def test_compaction_keeps_sequence_ordinal_date_and_label(self):
        """The same log, before a compaction and after it."""
        before = decode("compaction-output", "--jsonl")[1].splitlines()
        after = decode("compaction-inputs", "--jsonl")[1].splitlines()
        kept = set(after)
        self.assertEqual([line for line in before if line in kept], after)
        self.assertLess(len(after), len(before))


if __name__ == "__main__":
    unittest.main()
