"""The built-in corpus: prose out of docstrings, the same every time, kept once."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sememe.machine import cache_dir
from sememe.text import docstrings as markup, library, stream
from sememe.text.docstrings import plain, prose
from sememe.text.settings import TextSettings


def test_prose_keeps_sentences_and_leaves_code():
    text = prose(
        """Return the *mean* of `values` along an axis.

        See :func:`numpy.mean` and :class:`~a.b.Thing` [1]_, or
        `the guide <https://example.org/x>`_ at https://example.org.

        .. versionadded:: 1.2
        .. note:: Read this.
            And this too.
        .. code-block:: python

            x = mean(y)

        Parameters
        ----------
        axis : int, optional
            Axis along which
            the mean is taken.

        Use it so::

            secret_code(1)

        >>> mean([1, 2])
        1.5

        ===== =====
        A     B
        ===== =====
        table words
        ===== =====

        - First item
          goes on.
        - Second item.

        ```python
        fenced_code()
        ```
        .. [1] A. Author, A book.
        """
    )
    lines = text.split("\n")
    assert lines[0] == "Return the mean of values along an axis."
    assert lines[1].startswith("See numpy.mean and Thing , or the guide at")
    for line in ("And this too.", "Axis along which the mean is taken.", "Use it so"):
        assert line in lines
    assert "First item goes on." in lines and "Second item." in lines
    assert "A. Author, A book." in lines
    for gone in ("versionadded", "code", "1.5", ">>>", "table", "----", "Parameters", "http", "`"):
        assert gone not in text


PIECES = ["`", ":math:", ":ref:", "<", ">", "_", "$", "*", "[", "]", "(", ")", "!", "#", "~"]
PIECES += ["\\", "{", "|", "://", "http", "https", "ftp", "www", ".", "word", " ", "中文", "."]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_text_that_seems_to_have_no_markup_has_none(text):
    slowly = markup._FOOTNOTE.sub("", text)
    for pattern, replacement in markup._INLINE:
        slowly = pattern.sub(replacement, slowly)
    assert plain(text) == markup._SPACES.sub(" ", slowly).strip()


def test_docstrings_of_a_source():
    source = b'''"""Module."""
if True:
    class A:
        """Class."""
        x = 1
        """Attribute."""
        async def f(self):
            """Method."""
            "no docstring"
try:
    pass
except E:
    pass
else:
    def g():
        """Other."""
add_newdoc("m", "f", """
    Added.""")
'''
    found = [text.strip() for text in library.docstrings(source)]
    assert found == ["Module.", "Class.", "Attribute.", "Method.", "Other.", "Added."]
    assert list(library.docstrings(b"def broken(:")) == []


@pytest.fixture
def small_library(tmp_path, monkeypatch):
    """A library of two small packages and a cache folder of its own."""
    for name, body in (
        ("alpha", "Alpha counts all words well."),
        ("beta", "Beta knows nothing at all."),
    ):
        folder = tmp_path / "site" / name
        (folder / "tests").mkdir(parents=True)
        (folder / "__init__.py").write_text(f'"""{body}"""\nraise SystemExit("imported")')
        (folder / "inner.py").write_text('"""Both say the very same thing."""')
        (folder / "tests" / "test_x.py").write_text('"""Tests are not prose at all."""')
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr(library, "PACKAGES", ("beta", "alpha", "absent_package"))
    monkeypatch.setattr(library, "installed_versions", lambda names: dict.fromkeys(names, "1.0"))
    monkeypatch.setattr(library.sysconfig, "get_path", lambda name: str(tmp_path / "none"))
    monkeypatch.setenv("SEMEME_CACHE", str(tmp_path / "cache"))


def test_documents_labels_and_order(small_library):
    assert list(library.documents()) == [
        ("Beta knows nothing at all.", "beta beta"),
        ("Both say the very same thing.", "beta beta.inner"),
        ("Alpha counts all words well.", "alpha alpha"),
    ]


def test_the_corpus_is_kept_and_fixed(small_library):
    first = {name: array.copy() for name, array in library.collect().items()}
    (kept,) = (cache_dir() / "library").iterdir()
    whole = kept.read_bytes()
    for place in range(len(whole) - 200, len(whole), 10):
        kept.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert all(np.array_equal(first[name], own) for name, own in library.collect().items())
    for content in (None, b"broken"):
        if content is not None:
            kept.write_bytes(content)
        again = library.collect()
        assert all(np.array_equal(first[name], again[name]) for name in first)
    records = list(stream.segment(None, TextSettings()))
    assert records[0].labels == ["beta beta", "beta beta.inner", "alpha alpha"]
    assert library.size() == stream.total_bytes(None)


def test_fingerprint_names_the_versions(small_library):
    found = stream.fingerprint(None, TextSettings())
    assert found["library"]["alpha"] == "1.0"
    assert "absent_package" not in found["library"]


def test_the_standard_library_gives_english():
    texts = []
    for text, label in library.documents():
        assert label.startswith("python ")
        texts.append(text)
        if len(texts) == 300:
            break
    words = " ".join(texts).split()
    assert len(words) > 3_000
    assert words.count("the") > 100
    assert not any(">>>" in text for text in texts)
