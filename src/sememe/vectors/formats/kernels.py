"""Compiled parsers of vector files: bytes in, rows of float32 and the places of words out."""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel

# 10 to the power of -70 … 70: enough for 19 digits at either end of float32.
_POWERS = np.array([float(f"1e{power}") for power in range(-70, 71)])
_MAX_POWER = 70

SPACE, TAB, RETURN, LINE_END = 32, 9, 13, 10


@kernel
def _line_end(data, position, end):  # type: ignore[no-untyped-def]
    while position < end and data[position] != LINE_END:
        position += 1
    return position


@kernel
def _number(data, position, end):  # type: ignore[no-untyped-def]
    """A decimal number at `position`: (value, where it ends), or -1 where Python must look."""
    is_negative = data[position] == 45
    if is_negative or data[position] == 43:
        position += 1
    mantissa, num_digits, power, seen_point, seen_digit = np.uint64(0), 0, 0, False, False
    while position < end:
        byte = data[position]
        if 48 <= byte <= 57:
            seen_digit = True
            mantissa = mantissa * np.uint64(10) + np.uint64(byte - 48)
            if mantissa != 0:
                num_digits += 1
            if seen_point:
                power -= 1
        elif byte == 46 and not seen_point:
            seen_point = True
        else:
            break
        position += 1
    if not seen_digit or num_digits > 19:
        return 0.0, -1
    if position < end and (data[position] | 32) == 101:
        position += 1
        sign = 1
        if position < end and (data[position] == 45 or data[position] == 43):
            sign = -1 if data[position] == 45 else 1
            position += 1
        start, exponent = position, 0
        while position < end and 48 <= data[position] <= 57 and exponent < 1000:
            exponent = exponent * 10 + (data[position] - 48)
            position += 1
        if position == start:
            return 0.0, -1
        power += sign * exponent
    if mantissa == 0:
        return (-0.0 if is_negative else 0.0), position
    if power < -_MAX_POWER or power > _MAX_POWER:
        return 0.0, -1
    value = np.float64(mantissa)
    if power < 0:
        value = value / _POWERS[_MAX_POWER - power]
    else:
        value = value * _POWERS[_MAX_POWER + power]
    if value < 1.2e-38 or value > 3.4e38:
        return 0.0, -1
    # `value` may be off by two units in its last place. That changes the float32 only when it is
    # as close as that to the middle between two of them, which Python then decides exactly.
    low_bits = np.float64(value).view(np.int64) & 0x1FFFFFFF
    if abs(low_bits - 0x10000000) <= 4:
        return 0.0, -1
    return (-value if is_negative else value), position


@kernel
def _numbers(data, position, line_end, row):  # type: ignore[no-untyped-def]
    """Fill `row` from the fields up to the line's end; False where the line is not that simple."""
    for column in range(len(row)):
        start = position
        while position < line_end and (data[position] == SPACE or data[position] == TAB):
            position += 1
        # The separator after the word is one; a second one would belong to the word.
        if position == start or position >= line_end or (column == 0 and position - start > 1):
            return False
        value, position = _number(data, position, line_end)
        if position < 0:
            return False
        row[column] = value
    while position < line_end and (
        data[position] == SPACE or data[position] == TAB or data[position] == RETURN
    ):
        position += 1
    return position == line_end


@kernel
def parse_lines(data, start, end, rows, word_starts, word_ends, is_simple):  # type: ignore[no-untyped-def]
    """Parse the lines of data[start:end] into rows; gives their number.

    A line that is not a word without spaces and plain numbers gets is_simple 0, and its place
    instead of its word's.
    """
    num_rows, position = 0, start
    while position < end and num_rows < len(rows):
        word_end = position
        while word_end < end and not (
            data[word_end] == SPACE or data[word_end] == TAB or data[word_end] == LINE_END
        ):
            word_end += 1
        line_end = _line_end(data, word_end, end)
        first = position
        position = line_end + 1
        is_blank = True
        for index in range(first, line_end):
            byte = data[index]
            if byte != SPACE and byte != TAB and byte != RETURN:
                is_blank = False
                break
        if is_blank:
            continue
        is_parsed = _numbers(data, word_end, line_end, rows[num_rows])
        is_simple[num_rows] = is_parsed
        word_starts[num_rows] = first
        word_ends[num_rows] = word_end if is_parsed else line_end
        num_rows += 1
    return num_rows


@kernel
def parse_binary(data, start, end, rows, word_starts, word_ends):  # type: ignore[no-untyped-def]
    """Copy whole binary rows of data[start:end]; gives their number and where the rest starts.

    `rows` holds bytes, 4 D a row. The newline that the C tool writes after a vector is skipped.
    """
    num_rows, position, width = 0, start, rows.shape[1]
    while num_rows < len(rows):
        first = position
        while first < end and data[first] == LINE_END:
            first += 1
        word_end = first
        while word_end < end and data[word_end] != SPACE:
            word_end += 1
        if word_end + 1 + width > end:
            break
        for index in range(width):
            rows[num_rows, index] = data[word_end + 1 + index]
        word_starts[num_rows], word_ends[num_rows] = first, word_end
        position = word_end + 1 + width
        num_rows += 1
    return num_rows, position
