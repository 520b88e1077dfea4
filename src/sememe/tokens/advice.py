"""What the words of a text say about the options it was read with."""

from __future__ import annotations

from collections.abc import Callable

from sememe.text.settings import TextSettings
from sememe.tokens.vocabulary import Vocabulary

_NUM_WORDS = 200  # the most frequent ones tell enough
_NUM_NAMED = 5
_KANA = ("\u3041", "\u30ff")
_HAN = ("\u4e00", "\u9fff")


def note_uncut_chinese(
    vocabulary: Vocabulary, settings: TextSettings, note: Callable[[str], None]
) -> None:
    """Tell of `--language zh` where Chinese was read character by character."""
    if settings.mode == "unicode" and _is_uncut_chinese(vocabulary):
        note("The text is Chinese, read character by character: --language zh cuts it into words.")


def note_dictionary(
    vocabulary: Vocabulary, min_count: int, settings: TextSettings, note: Callable[[str], None]
) -> None:
    """Tell how many words of the user's dictionary the text has, and some that it has not."""
    if not settings.dictionary:
        return
    from sememe.text.chinese import narrow, read_dictionary

    words = [word for word, *_ in read_dictionary(settings.dictionary)]
    as_cut = [narrow(word).lower() if settings.lowercase else word for word in words]
    missing = [word for word, own in zip(words, as_cut, strict=True) if own not in vocabulary]
    named = "、".join(missing[:_NUM_NAMED]) + " …" * (len(missing) > _NUM_NAMED)
    often = f" {min_count:,} times or more" if min_count > 1 else ""
    found = f"{len(words) - len(missing):,} of its {len(words):,} words are in the text{often}"
    note(f"{settings.dictionary}: {found}" + (f"; without: {named}" if missing else ""))


def _is_uncut_chinese(vocabulary: Vocabulary) -> bool:
    """Whether most words are Han characters, none longer than one, and no kana stand by them."""
    words = vocabulary[:_NUM_WORDS]
    han = [word for word in words if _HAN[0] <= word[0] <= _HAN[1]]
    has_kana = any(_KANA[0] <= word[0] <= _KANA[1] for word in words)
    return 2 * len(han) > len(words) and not has_kana and all(len(word) == 1 for word in han)
