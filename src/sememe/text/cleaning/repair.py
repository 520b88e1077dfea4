"""Repair broken characters where the repair is certain.

Text in one encoding that was read in another ("Ã©" for "é") is read again; ftfy knows the Western
and Cyrillic cases, and the Chinese ones are here. Control characters are left out. What cannot be
restored, such as U+FFFD, which stands for a lost character, makes a line unusable.
"""

import re

from sememe.text.characters import HAN

_BLANKS = re.compile("[\v\f\r\x1c-\x1f\x85]+")
_CONTROLS = re.compile("[\0-\x08\x0e-\x1b\x7f-\x9f\ufeff]")
_LOST = re.compile("\ufffd|锟斤拷")
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_FOREIGN_RUN = re.compile(r"[^\x00-\x7f]{4,}")
_LATIN_RUN, _LATIN_PAIRS = (re.compile(f"[\xa1-\xfe]{{{least},}}") for least in (6, 2))
_HAN = re.compile(f"[{HAN}]")
_MOST_CONTROLS = 0.1  # of the characters; more is not text
_DENSE = 25  # characters per sign of a wrong encoding, of which there must be two


def repair(line: str) -> str | None:
    """The line with its characters restored; None if some are lost."""
    text = line
    if _FOREIGN.search(text):
        import ftfy

        text = _LATIN_RUN.sub(lambda run: _reread(run[0], "latin-1", "gb2312"), text)
        if text != line:  # now the shorter runs are certain, too
            text = _LATIN_PAIRS.sub(lambda run: _reread(run[0], "latin-1", "gb2312"), text)
        text = _FOREIGN_RUN.sub(lambda run: _reread(run[0], "gb18030", "utf-8"), text)
        text = ftfy.fix_encoding(text)
    text = _BLANKS.sub(" ", text.rstrip("\r"))
    clean = _CONTROLS.sub("", text)
    if len(text) - len(clean) > max(1, _MOST_CONTROLS * len(text)) or _LOST.search(clean):
        return None
    return None if _is_garbled(clean) else clean


def _reread(run: str, wrong: str, right: str) -> str:
    """The characters of a run that was read in a wrong encoding; the run where that is unsure."""
    try:
        data = run.encode(wrong)
        text = data.decode(right)
    except UnicodeError:
        return run
    # Most bytes of Chinese in GB2312 are not letters in Latin-1: no list of accented letters.
    is_sure = right == "utf-8" or (
        min(data) < 0xC0 and 5 * sum(byte < 0xD8 for byte in data[::2]) >= 4 * len(data[::2])
    )
    return text if is_sure and 2 * len(_HAN.findall(text)) > len(text) else run


def _is_garbled(text: str) -> bool:
    if not _FOREIGN.search(text):
        return False
    from ftfy.badness import badness

    signs: int = badness(text)
    return signs >= 2 and _DENSE * signs >= len(text)
