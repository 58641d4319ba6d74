"""The consumer file (section 13)."""

from . import limits
from .crc32c import bound
from .errors import UNSUPPORTED_FORMAT, DecodeError
from .layout import Layout, first_nonzero, padded

NAME = "CONSUMERS"
MAGIC = b"AIRDBCON"
PAGE = 4096

HEADER = Layout(
    (0, "8 bytes", "magic"),
    (8, "u32", "checksum"),
    (12, "u32", "format_version"),
    (16, "16 bytes", "store_id"),
    (32, "u64", "slot_length"),
    (40, "24 bytes", "reserved"),
)

SLOT = Layout(
    (0, "u32", "checksum"),
    (4, "u32", "consumer_count"),
    (8, "u64", "generation"),
    (16, "16 bytes", "store_id"),
    (32, "u64", "length"),
    (40, "u64", "next_number"),
    (48, "16 bytes", "reserved"),
)

CONSUMER = Layout(
    (0, "u64", "number"),
    (8, "u64", "sequence"),
    (16, "u64", "horizon"),
    (24, "u32", "checksum"),
    (28, "u8", "retention"),
    (29, "u8", "flags"),
    (30, "u16", "name_length"),
    (32, "i64", "maximum_age"),
    (40, "u64", "maximum_bytes"),
    (48, "i64", "registered_date"),
    (56, "u64", "resets"),
)

LATEST_VERSIONS, HISTORY = 1, 2
HAS_AGE, HAS_BYTES = 1, 2


class ConsumerFile:
    """A file that can be used. `slots` are the tables, None for a slot that is not valid."""

    def __init__(self, data, store_id):
        self.slot_length = _decode_header(data, store_id)
        end = PAGE + 2 * self.slot_length
        if len(data) > end:
            raise DecodeError("bytes behind the slots", NAME, end)
        self.slots, reasons = [], []
        for at in (PAGE, PAGE + self.slot_length):
            try:
                self.slots.append(_decode_slot(data, at, self.slot_length, store_id))
            except DecodeError as error:
                self.slots.append(None)
                reasons.append(error)
        if len(reasons) == 2:
            raise reasons[0]

    @property
    def table(self):
        """The slot in force."""
        return max((slot for slot in self.slots if slot), key=lambda slot: slot.generation)


def _decode_header(data, store_id):
    if bytes(data[:8]) != MAGIC:
        raise DecodeError("not a consumer file: wrong magic", NAME, 0)
    if len(data) < PAGE:
        raise DecodeError("the header is cut short", NAME, len(data))
    if int.from_bytes(data[8:12], "little") != bound(b"CONS", 0, 0, data[12 : HEADER.size]):
        raise DecodeError("wrong checksum of the header", NAME, 8)
    version = int.from_bytes(data[12:16], "little")
    if version > limits.FORMAT_VERSION:
        raise DecodeError(f"formatVersion {version}", NAME, 12, UNSUPPORTED_FORMAT)
    if version != limits.FORMAT_VERSION:
        raise DecodeError("formatVersion never existed", NAME, 12)
    header = HEADER.decode(data, 0, NAME)
    if header.store_id != store_id:
        raise DecodeError("names another store", NAME, 16)
    if header.slot_length == 0 or header.slot_length % PAGE:
        raise DecodeError(f"slotLength {header.slot_length}", NAME, 32)
    beyond = first_nonzero(data, HEADER.size, PAGE)
    if beyond is not None:
        raise DecodeError("reserved bytes are not zero", NAME, beyond)
    return header.slot_length


def _decode_slot(data, at, length, store_id):
    def require(condition, message, offset):
        if not condition:
            raise DecodeError(message, NAME, at + offset)

    require(at + length <= len(data), "a slot is cut short", max(0, len(data) - at))
    generation = int.from_bytes(data[at + 8 : at + 16], "little")
    checksum = bound(b"CONS", generation, at, data[at + 4 : at + length])
    require(int.from_bytes(data[at : at + 4], "little") == checksum, "wrong checksum", 0)
    slot = SLOT.decode(data, at, NAME)
    require(slot.store_id == store_id, "names another store", 16)
    require(1 <= generation < limits.NUMBER, f"generation {generation}", 8)
    require(1 <= slot.next_number < limits.NUMBER, f"nextNumber {slot.next_number}", 40)
    require(slot.consumer_count <= limits.CONSUMERS, f"{slot.consumer_count} consumers", 4)
    slot.consumers = []
    place = SLOT.size
    for _ in range(slot.consumer_count):
        require(place + CONSUMER.size <= length, "a consumer is cut short", place)
        consumer = CONSUMER.decode(data, at + place, NAME)
        _check(consumer, at + place)
        name = place + CONSUMER.size
        end = name + consumer.name_length
        require(end <= length, "a name is cut short", name)
        consumer.name = bytes(data[at + name : at + end])
        try:
            consumer.name.decode()
        except UnicodeDecodeError:
            require(False, "a name that is not UTF-8", name)
        if slot.consumers:
            require(slot.consumers[-1].name < consumer.name, "consumers out of order", place)
        numbers = {other.number for other in slot.consumers}
        is_given = 1 <= consumer.number < slot.next_number and consumer.number not in numbers
        require(is_given, f"number {consumer.number}", place)
        slot.consumers.append(consumer)
        place = padded(end)
        require(not any(data[at + end : at + place]), "padding is not zero", end)
    require(slot.length == place, f"length {slot.length}, not {place}", 32)
    beyond = first_nonzero(data, at + place, at + length)
    require(beyond is None, "not zero behind the table", place)
    return slot


def _check(consumer, at):
    def require(condition, message, name):
        if not condition:
            raise DecodeError(message, NAME, at + CONSUMER.offset_of(name))

    has_commit = consumer.sequence > 0
    require(has_commit or consumer.checksum == 0, "a checksum without a commit", "checksum")
    is_known = consumer.retention in (LATEST_VERSIONS, HISTORY)
    require(is_known, f"retention {consumer.retention}", "retention")
    allowed = HAS_AGE | HAS_BYTES if consumer.retention == HISTORY else 0
    require(consumer.flags & ~allowed == 0, f"flags {consumer.flags:#x}", "flags")
    require(1 <= consumer.name_length <= limits.CONSUMER_NAME, "no such length", "name_length")
    require(consumer.maximum_age >= 0, "a negative age", "maximum_age")
    has_age, has_bytes = consumer.flags & HAS_AGE, consumer.flags & HAS_BYTES
    require(has_age or consumer.maximum_age == 0, "an age that is not given", "maximum_age")
    require(has_bytes or consumer.maximum_bytes == 0, "bytes not given", "maximum_bytes")


def check(store):
    """All that the specification says of the file; nothing if there is none."""
    data = store.directory.read(NAME)
    if data is None:
        return
    try:
        file = ConsumerFile(data, store.manifest.store_id)
    except DecodeError as error:
        yield error
        return
    yield from _check_slots(file)
    commits = {commit.sequence: commit.checksum for commit in store.commits}
    for consumer in file.table.consumers:
        if consumer.sequence > store.end.sequence:
            message = f"consumer {consumer.number} is beyond the end of the log"
            yield DecodeError(message, NAME, 0)
        elif commits.get(consumer.sequence, consumer.checksum) != consumer.checksum:
            message = f"consumer {consumer.number} names another commit than the log has"
            yield DecodeError(message, NAME, 0)


def _check_slots(file):
    """Two valid slots differ in generation and progress only, and the later one's is not less."""
    if None in file.slots:
        return
    earlier, later = sorted(file.slots, key=lambda slot: slot.generation)
    if earlier.generation + 1 != later.generation:
        yield DecodeError("generations that do not follow each other", NAME, PAGE)
    fields = ("number", "name", "retention", "flags", "maximum_age", "maximum_bytes")
    fields += ("registered_date", "resets")

    def fixed(slot):
        rows = [[getattr(consumer, field) for field in fields] for consumer in slot.consumers]
        return slot.next_number, rows

    if fixed(earlier) != fixed(later):
        yield DecodeError("slots that differ in more than progress", NAME, PAGE)
        return
    for before, after in zip(earlier.consumers, later.consumers):
        if before.sequence > after.sequence:
            yield DecodeError(f"consumer {after.number} went back", NAME, PAGE)
