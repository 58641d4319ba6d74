"""Hybrid logical clock text (HLC.md): reading, order, shapes. Errors are ValueErrors."""

import re
from typing import NamedTuple, Optional

HYBRID, UTF8_ORDER = 1, 2  # formats, as the manifest numbers them
DECIMAL, ISO8601 = 1, 2  # kinds of the physical part

_NO_FRACTION = 255
_SEPARATORS = b"-:_"
_GREATEST_INSTANT = 18_429_292_799_999_999_999
_GREATEST_COUNTER_DIGITS = 12
_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"

_TIMESTAMP = re.compile(
    rb"(?:(?P<decimal>[0-9]{10,19})"
    rb"|(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})T(?P<time>[0-9]{2}:[0-9]{2}:[0-9]{2})"
    rb"(?:\.(?P<fraction>[0-9]{1,9}))?Z)"
    rb"(?P<separator1>[-:_])(?P<counter>[0-9A-Za-z]{1,16})"
    rb"(?:(?P<separator2>[-:_])(?P<node>.+))?",
    re.DOTALL,
)


class Shape(NamedTuple):
    """How a timestamp is spelled (HLC.md 4): six bytes, in this order."""

    kind: int
    physical_digits: int
    separator1: int
    counter_digits: int
    counter_is_upper: int
    separator2: int


class Timestamp(NamedTuple):
    """What a text says: its key (HLC.md 2 and 3), and its shape if it has one."""

    kind: int  # 0 in `utf8Order`
    physical: int
    counter: int
    node: bytes  # empty: absent
    shape: Optional[Shape]

    @property
    def order(self):
        return (self.kind, self.physical, self.counter, self.node)


def parse(text, hlc_format):
    """The timestamp that `text` is in a store of this format."""
    return _parse_hybrid(text) if hlc_format == HYBRID else _parse_utf8_order(text)


def _parse_utf8_order(text):
    if not text:
        raise ValueError("the HLC text is empty")
    prefix = text[:16]
    padded = prefix.ljust(16, b"\0")
    node = text[len(prefix.rstrip(b"\0")) :]
    physical, counter = int.from_bytes(padded[:8], "big"), int.from_bytes(padded[8:], "big")
    return Timestamp(0, physical, counter, node, None)


def _parse_hybrid(text):
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError("the HLC text is malformed")
    digits = match["counter"]
    if len(digits.lstrip(b"0")) > _GREATEST_COUNTER_DIGITS:
        raise ValueError("the HLC counter has more than 12 digits")
    if match["decimal"]:
        kind, physical_digits = DECIMAL, len(match["decimal"])
        physical = int(match["decimal"])
    else:
        fraction = match["fraction"]
        kind, physical_digits = ISO8601, len(fraction) if fraction else _NO_FRACTION
        physical = _instant(match["date"], match["time"], fraction or b"")

    shape = None
    is_upper, is_lower = digits != digits.lower(), digits != digits.upper()
    if not (is_upper and is_lower):
        shape = Shape(
            kind,
            physical_digits,
            match["separator1"][0],
            len(digits),
            int(is_upper),
            match["separator2"][0] if match["node"] else 0,
        )
    return Timestamp(kind, physical, int(digits, 36), match["node"] or b"", shape)


def _instant(date, time, fraction):
    """Nanoseconds since 1970."""
    year, month, day = (int(part) for part in date.split(b"-"))
    hour, minute, second = (int(part) for part in time.split(b":"))
    if not 1970 <= year <= 2553:
        raise ValueError("the HLC year is not in 1970...2553")
    if not (1 <= month <= 12 and 1 <= day <= _days_in_month(year, month)):
        raise ValueError("the HLC date is not in the calendar")
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError("the HLC time is not on the clock")
    days = _days_before_year(year) - _days_before_year(1970) + day - 1
    days += sum(_days_in_month(year, earlier) for earlier in range(1, month))
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    return seconds * 1_000_000_000 + int(fraction.ljust(9, b"0"))


def _is_leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _days_in_month(year, month):
    if month == 2:
        return 29 if _is_leap(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _days_before_year(year):
    past = year - 1
    return past * 365 + past // 4 - past // 100 + past // 400


def render(shape, physical, counter, node):
    """The text of a shape and values, which is always read back as the same (HLC.md 4)."""
    if shape.kind == DECIMAL:
        start = str(physical).encode().rjust(shape.physical_digits, b"0")
    elif shape.kind == ISO8601:
        start = _render_instant(physical, shape.physical_digits)
    else:
        raise ValueError("the HLC shape is of no kind")
    digits = _base36(counter).rjust(shape.counter_digits, b"0")
    if shape.counter_is_upper:
        digits = digits.upper()
    text = start + bytes([shape.separator1]) + digits
    if shape.separator2:
        text += bytes([shape.separator2]) + node

    # One check for all that HLC.md 4 lists: what is rendered reads back as what it came from.
    if _parse_hybrid(text) != Timestamp(shape.kind, physical, counter, node, shape):
        raise ValueError("the HLC shape cannot spell these values")
    return text


def _render_instant(nanoseconds, digits):
    if nanoseconds > _GREATEST_INSTANT:
        raise ValueError("the HLC instant is after 2553")
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    days += _days_before_year(1970)
    year = days // 366 + 1
    while _days_before_year(year + 1) <= days:
        year += 1
    day = days - _days_before_year(year)
    month = 1
    while day >= _days_in_month(year, month):
        day -= _days_in_month(year, month)
        month += 1
    text = f"{year:04}-{month:02}-{day + 1:02}T{hour:02}:{minute:02}:{second:02}"
    if digits != _NO_FRACTION:
        text += "." + f"{fraction:09}"[:digits]
    return (text + "Z").encode()


def _base36(value):
    out = bytearray()
    while value:
        value, digit = divmod(value, 36)
        out.append(_DIGITS[digit])
    return bytes(reversed(out)) or b"0"
