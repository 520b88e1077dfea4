"""Kernels of vectors: means of rows, products of small numbers, the lines of text files."""

import numpy as np

from sememe.machine import exact_kernel, kernel


@exact_kernel
def mean_rows(ends, rows, table, step, out):
    """out[word] = the mean of its rows; row r of the flat table starts at r · step."""
    start = 0
    for word in range(len(ends)):
        total = out[word]
        total[:] = np.float32(0)
        for index in range(start, ends[word]):
            row = np.int64(rows[index]) * step
            for d in range(len(total)):
                total[d] += table[row + d]
        _scale(total, ends[word] - start)
        start = ends[word]


@exact_kernel
def mean_quantized(ends, rows, codes, norm_codes, centroids, norms, num_parts, part_size, out):
    """The same for a quantised table: row r is norms[norm_codes[r]] times its centroids."""
    start, dim = 0, out.shape[1]
    last_size = dim - (num_parts - 1) * part_size
    for word in range(len(ends)):
        total = out[word]
        total[:] = np.float32(0)
        for index in range(start, ends[word]):
            row = np.int64(rows[index])
            norm = np.float64(norms[norm_codes[row]])
            for part in range(num_parts):
                size = part_size if part < num_parts - 1 else last_size
                place = part * 256 * part_size + np.int64(codes[row * num_parts + part]) * size
                for d in range(size):
                    # The product is exact in float64, so this rounds as a fused step does.
                    product = norm * np.float64(centroids[place + d])
                    at = part * part_size + d
                    total[at] = np.float32(np.float64(total[at]) + product)
        _scale(total, ends[word] - start)
        start = ends[word]


@exact_kernel
def _scale(total, num_rows):
    if num_rows > 0:
        factor = np.float32(1.0 / num_rows)
        for d in range(len(total)):
            total[d] *= factor


@kernel
def int8_dots(rows_VD, queries_QD, out_QV):
    """The products of int8 rows with float32 queries."""
    for row in range(len(rows_VD)):
        for query in range(len(queries_QD)):
            total = np.float32(0)
            for d in range(rows_VD.shape[1]):
                total += np.float32(rows_VD[row, d]) * queries_QD[query, d]
            out_QV[query, row] = total


@exact_kernel
def equal_bits(rows_VW, query_W, out_V):
    """The number of bits in which each row of 64-bit words equals a query."""
    for row in range(len(rows_VW)):
        num_other = np.uint64(0)
        for word in range(len(query_W)):
            bits = rows_VW[row, word] ^ query_W[word]
            # Sums of neighboring bits, pairs and fours; compilers know this form.
            bits -= (bits >> np.uint64(1)) & np.uint64(0x5555555555555555)
            bits = (bits & np.uint64(0x3333333333333333)) + (
                (bits >> np.uint64(2)) & np.uint64(0x3333333333333333)
            )
            bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
            num_other += (bits * np.uint64(0x0101010101010101)) >> np.uint64(56)
        out_V[row] = 64 * len(query_W) - np.int64(num_other)


# 10 to the power of -70 … 70: enough for 19 digits at either end of float32.
_POWERS = np.array([float(f"1e{power}") for power in range(-70, 71)])
_MAX_POWER = 70

SPACE, TAB, RETURN, LINE_END = 32, 9, 13, 10


@kernel
def _line_end(data, position, end):
    while position < end and data[position] != LINE_END:
        position += 1
    return position


@kernel
def _number(data, position, end):
    """A decimal number at `position`: (value, where it ends), or -1 if Python must parse it."""
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
def _numbers(data, position, line_end, row):
    """Fill `row` from the fields up to the line's end; False if the line is not simple."""
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
def parse_lines(data, start, end, rows, word_starts, word_ends, is_simple):
    """Parse the lines of data[start:end] into rows; return their number.

    A line that is not a word without spaces and plain numbers gets is_simple 0, and its own span
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
