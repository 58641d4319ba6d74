#!/usr/bin/env python3
"""The consumer file: what is damaged reads as the other slot, or not at all."""

import os
import unittest

from airdb.consumers import PAGE, ConsumerFile
from airdb.directory import DiskDirectory
from airdb.errors import DecodeError
from airdb.store import Store

STORE = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "stores", "consumers"
)


def places(table):
    return [(consumer.name, consumer.sequence) for consumer in table.consumers]


class Damage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = DiskDirectory(STORE)
        cls.store_id = Store(directory).manifest.store_id
        cls.data = directory.read("CONSUMERS")
        cls.slots = [places(slot) for slot in ConsumerFile(cls.data, cls.store_id).slots]

    def decode(self, data):
        try:
            return places(ConsumerFile(bytes(data), self.store_id).table)
        except DecodeError:
            return None

    def test_the_slots_differ(self):
        self.assertNotEqual(self.slots[0], self.slots[1])
        self.assertEqual(self.decode(self.data), self.slots[0])

    def test_flipped_bits(self):
        expected = [None, self.slots[1], self.slots[0]]
        offsets = [page * PAGE + at for page in range(3) for at in range(0, 320, 5)]
        for offset in offsets + [PAGE - 1, 2 * PAGE - 1, 3 * PAGE - 1]:
            damaged = bytearray(self.data)
            damaged[offset] ^= 1 << offset % 8
            self.assertEqual(self.decode(damaged), expected[offset // PAGE], offset)

    def test_cut_short_and_too_long(self):
        for length in (0, 7, 63, 64, PAGE, PAGE + 100, 2 * PAGE - 1):
            self.assertIsNone(self.decode(self.data[:length]), length)
        for length in (2 * PAGE, 2 * PAGE + 100, 3 * PAGE - 1, 3 * PAGE):
            self.assertEqual(self.decode(self.data[:length]), self.slots[0], length)
        self.assertIsNone(self.decode(self.data + b"\0"))

    def test_slots_in_each_others_places(self):
        header, first, second = (self.data[at : at + PAGE] for at in range(0, 3 * PAGE, PAGE))
        self.assertEqual(self.decode(header + first + first), self.slots[0])
        self.assertEqual(self.decode(header + second + second), self.slots[1])
        self.assertIsNone(self.decode(header + second + first))


if __name__ == "__main__":
    unittest.main()
