"""The transaction table of packed frames (section 5.2)."""

from typing import NamedTuple

from . import limits, varint
from .cursor import Cursor


class Transaction(NamedTuple):
    """A commit, or what is left of one."""

    sequence: int
    date: int
    checksum: int  # header checksum of the frame in which it was committed
    label: bytes
    record_count: int


def decode(data, start, end, frame, last_sequence, last_date):
    """The transactions of the table at `start..<end`, behind a commit of `last_sequence`."""
    return _Reader(data, start, end, frame).transactions(last_sequence, last_date)


class _Reader(Cursor):
    subject = "transaction table"

    def __init__(self, data, start, end, frame):
        super().__init__(data, start, end, frame.file)
        self.frame = frame

    def count(self, name):
        start = self.position
        count = self.varint()
        if count > self.end - self.position:  # an item has at least one byte
            self.fail(f"more {name} than fit", start)
        return count

    def label(self):
        start = self.position
        length = self.varint()
        if length > limits.LABEL:
            self.fail("a label of more than 1,024 bytes", start)
        content = self.bytes(length)
        try:
            content.decode("utf-8")
        except UnicodeDecodeError:
            self.fail("a label is not UTF-8", start)
        return content

    def transactions(self, last_sequence, last_date):
        frame, start = self.frame, self.position
        labels = [self.label() for _ in range(self.count("labels"))]
        if len(set(labels)) != len(labels):
            self.fail("the labels are not distinct", start)
        count_offset = self.position
        count = self.count("transactions")
        if count == 0:
            self.fail("no transactions", count_offset)
        found = []
        sequence = date = used = 0
        for _ in range(count):
            at = self.position
            delta = self.varint()
            sequence += delta
            if delta == 0 or sequence <= last_sequence or sequence > frame.sequence:
                self.fail(f"sequence {sequence:#x} is not in order", at)
            if sequence & 0xFFFF_FFFF == 0 or sequence >> 32 == 0:
                self.fail(f"sequence {sequence:#x} is impossible", at)
            date_offset = self.position
            date += varint.unzigzag(self.varint())
            if last_date is not None and date < last_date:
                self.fail("a date goes back", date_offset)
            last_date = date
            checksum = int.from_bytes(self.bytes(4), "little")
            label_offset = self.position
            label = self.varint()
            if label >= len(labels) or label > used:
                self.fail("the labels are not in order of first use", label_offset)
            used = max(used, label + 1)
            records_offset = self.position
            records = self.varint()
            if records == 0:
                self.fail("a transaction without records", records_offset)
            found.append(Transaction(sequence, date, checksum, labels[label], records))
        if used != len(labels):
            self.fail("a label is not used", start)
        if self.position != self.end:
            self.fail("bytes behind the last transaction")
        if sequence != frame.sequence or date != frame.commit_date:
            self.fail("the last transaction is not that of the frame header", start)
        if sum(transaction.record_count for transaction in found) != frame.record_count:
            self.fail("the recordCounts do not make that of the frame", start)
        return found
