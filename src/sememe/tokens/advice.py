"""What the words of a text say about the options it was read with."""

from __future__ import annotations

from collections.abc import Callable

from sememe.text.settings import TextSettings
from sememe.tokens.vocabulary import Vocabulary

_NUM_WORDS = 200  # the most frequent ones tell enough
_KANA = ("\u3041", "\u30ff")
_HAN = ("\u4e00", "\u9fff")


def note_uncut_chinese(
    vocabulary: Vocabulary, settings: TextSettings, note: Callable[[str], None]
) -> None:
    """Tell of `--language zh` where Chinese was read character by character."""
    if settings.mode == "unicode" and _is_uncut_chinese(vocabulary):
        note("The text is Chinese, read character by character: --language zh cuts it into words.")


def _is_uncut_chinese(vocabulary: Vocabulary) -> bool:
    """Whether most words are Han characters, none longer than one, and no kana stand by them."""
    words = vocabulary[:_NUM_WORDS]
    han = [word for word in words if _HAN[0] <= word[0] <= _HAN[1]]
    has_kana = any(_KANA[0] <= word[0] <= _KANA[1] for word in words)
    return 2 * len(han) > len(words) and not has_kana and all(len(word) == 1 for word in han)
