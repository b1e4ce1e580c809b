"""Lines of a word and its numbers, read in one pass over the bytes.

A number of at most 2^53 without its point, times or over a power of ten up to 10^22, is one exact number and
one exact power in float64, so that one operation rounds it correctly (Clinger, 1990). Lines with any other
number, or with another count of them, are marked and left to the caller.

A closed file: every jitted function called here lives here.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

__all__ = ["parse_lines"]

_BYTES = types.Array(types.uint8, 1, "C", readonly=True)
_LINES = types.Array(types.int64, 2, "C")
_ROWS = types.Array(types.float32, 2, "C")
_POWERS = np.array([10.0**k for k in range(23)])
_LARGEST = np.uint64(1 << 53)
_SPACE, _TAB, _NEWLINE, _RETURN = 32, 9, 10, 13


@njit(cache=True, nogil=True)
def _blank(byte):
    return byte == _SPACE or byte == _TAB or byte == _RETURN


@njit(cache=True, nogil=True)
def _number(text, i):
    """(value, where it ends, whether it could be read exactly)."""
    negative = text[i] == 45  # -
    if negative or text[i] == 43:
        i += 1
    mantissa, digits, power, ten = np.uint64(0), 0, 0, np.uint64(10)
    point = False
    while True:
        byte = text[i]
        if 48 <= byte <= 57:
            if mantissa > _LARGEST:
                return 0.0, i, False
            mantissa = mantissa * ten + np.uint64(byte - 48)
            digits += 1
            power -= point
        elif byte == 46 and not point:
            point = True
        else:
            break
        i += 1
    if digits > 0 and (text[i] == 101 or text[i] == 69):  # e E
        i += 1
        below = text[i] == 45
        if below or text[i] == 43:
            i += 1
        exponent, begin = 0, i
        while 48 <= text[i] <= 57 and i < begin + 4:
            exponent = 10 * exponent + (text[i] - 48)
            i += 1
        if i == begin:
            return 0.0, i, False
        power += -exponent if below else exponent
    if digits == 0 or mantissa > _LARGEST or power < -22 or power > 22:
        return 0.0, i, False
    value = np.float64(mantissa)
    value = value / _POWERS[-power] if power < 0 else value * _POWERS[power]
    return (-value if negative else value), i, True


@njit([types.int64(_BYTES, types.int64, _LINES, _ROWS)], cache=True, nogil=True)
def parse_lines(text, end, lines, rows):
    """How many lines there are in ``text[:end]``, which ends with a newline.

    Blank lines are left out, and those for which ``lines`` has no room. Of line k, ``rows[k]`` gets the
    numbers and ``lines[k]`` (beginning, end of the word, end of the line, state, how many lines of any kind
    stand before it); the state is 0 if it was read, 1 if care is needed.
    """
    count, number, i, size = 0, 0, 0, rows.shape[1]
    while i < end and count < len(lines):
        start = i
        while not _blank(text[i]) and text[i] != _NEWLINE:
            i += 1
        after = i
        good, j = i > start, 0
        while good:
            while _blank(text[i]):
                i += 1
            if text[i] == _NEWLINE:
                break
            if j == size:
                good = False
                break
            value, i, good = _number(text, i)
            good = good and (_blank(text[i]) or text[i] == _NEWLINE)
            if good:
                rows[count, j] = value
                j += 1
        while text[i] != _NEWLINE:
            i += 1
        k = start
        while _blank(text[k]):
            k += 1
        if k < i:
            lines[count, 0], lines[count, 1], lines[count, 2] = start, after, i
            lines[count, 3], lines[count, 4] = 0 if good and j == size else 1, number
            count += 1
        number += 1
        i += 1
    return count
