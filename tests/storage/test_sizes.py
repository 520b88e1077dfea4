"""Amounts of memory as people write them."""

import pytest

from sememe.errors import OptionError
from sememe.options import parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4G", 4 << 30), ("512M", 512 << 20), ("1.5 GB", 3 << 29), ("64kib", 64 << 10),
        ("2t", 2 << 40), ("1000", 1000), (4096, 4096), ("12B", 12),
    ],
)  # fmt: skip
def test_amounts(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "-1G", "4X", "four", "4GG", "1e9", "1,000"])
def test_what_is_no_amount_is_refused_by_name(text):
    with pytest.raises(OptionError, match="memory must be an amount"):
        parse_size(text)
