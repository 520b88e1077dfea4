"""The text of a plan: small corpora as they are, large ones by a sample, pipes not at all."""

import io
import json
import lzma
from pathlib import Path

import pytest

from sememe.errors import InputError
from sememe.planning import sample
from sememe.planning.sample import sample_of
from sememe.text.settings import TextSettings

TEXT = TextSettings()


def test_a_small_corpus_is_read_as_it_is(own_cache, tmp_path):
    (tmp_path / "a.txt").write_text("One sentence here.\n" * 50)
    found = sample_of([str(tmp_path / "a.txt")], TEXT)
    assert found.is_whole and found.corpus == [str(tmp_path / "a.txt")]
    assert found.num_bytes == 19 * 50 and json.dumps(found.text)


def test_a_large_corpus_is_sampled_from_all_over_it(own_cache, tmp_path, monkeypatch):
    monkeypatch.setattr(sample, "_WHOLE", 3 << 20)
    path = tmp_path / "large.txt"
    lines = [
        f"The {number}th line is about nothing, as all others are." for number in range(300_000)
    ]
    path.write_text("\n".join(lines))
    found = sample_of(str(path), TEXT)
    assert not found.is_whole and 3 < found.scale < 9
    lines = Path(found.corpus[0]).read_text("utf-8").splitlines()
    rows = [json.loads(line)["text"] for line in lines]
    kept = sum(len(row.encode()) for row in rows)
    assert kept * found.scale == pytest.approx(path.stat().st_size, rel=0.03)
    numbers = [int(row.split("th")[0].split()[1]) for row in rows]
    assert min(numbers) == 0 and max(numbers) > 150_000
    assert sample_of(str(path), TEXT) == found  # which is kept


def test_compressed_text_is_sampled_by_its_text(own_cache, tmp_path, monkeypatch):
    monkeypatch.setattr(sample, "_WHOLE", 3 << 20)
    content = b"".join(b"The %dth line is about nothing.\n" % number for number in range(600_000))
    (tmp_path / "large.txt.xz").write_bytes(lzma.compress(content, preset=0))
    assert (tmp_path / "large.txt.xz").stat().st_size < 3 << 20 < len(content)
    found = sample_of(str(tmp_path / "large.txt.xz"), TEXT)
    assert not found.is_whole and found.scale > 1.5
    assert found.num_bytes == pytest.approx(len(content), rel=0.01)


def test_a_mix_keeps_the_share_of_every_language(own_cache, tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("One sentence here.\n" * 50)
    (tmp_path / "b.txt").write_text("这里有一句话。\n" * 300_000)
    found = sample_of({"en": str(tmp_path / "a.txt"), "zh": str(tmp_path / "b.txt")}, TEXT)
    assert set(found.corpus) == {"en", "zh"} and found.is_whole
    monkeypatch.setattr(sample, "_WHOLE", 3 << 20)
    with pytest.raises(InputError, match="mix"):
        sample_of({"en": str(tmp_path / "a.txt"), "zh": str(tmp_path / "b.txt")}, TEXT)


def test_text_that_can_be_read_once_is_refused(own_cache):
    with pytest.raises(InputError, match="once"):
        sample_of("-", TEXT)
    with pytest.raises(InputError, match="once"):
        sample_of(iter(io.StringIO("One.\nTwo.\n")), TEXT)
