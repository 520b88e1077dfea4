"""Where sentences end in European and in Chinese punctuation."""

import pytest

from sememe.text import characters


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One two. Three four.", ["one two", "three four"]),
        ("Really?! Yes. ok", ["really", "yes ok"]),
        ('He said "Stop!" Then he left.', ["he said stop", "then he left"]),
        ('"What?" he asked. (It was late.) She slept.',
         ["what he asked", "it was late", "she slept"]),
        ("Mr. Smith met Dr. Jones. They spoke.", ["mr smith met dr jones", "they spoke"]),
        ("J. R. R. Tolkien wrote. He did.", ["j r r tolkien wrote", "he did"]),
        ("See e.g. Berlin or i.e. Rome. Next.", ["see e g berlin or i e rome", "next"]),
        ("Pi is 3.14 today. Fine.", ["pi is 3.14 today", "fine"]),
        ("Wait... what? No... Never.", ["wait what", "no", "never"]),
        ("See No. 5 and Fig. 3 now. I said no. Then I left.",
         ["see no 5 and fig 3 now", "i said no", "then i left"]),
        ("In 1990. The end", ["in 1990", "the end"]),
        ("first line\nsecond line", ["first line", "second line"]),
        ("example.com is up. Go", ["example com is up", "go"]),
        ("你好。世界！再见；好", ["你 好", "世 界", "再 见", "好"]),
        ("यह है। वह है।", ["यह है", "वह है"]),
        ("Été. Écoute! ça va", ["été", "écoute ça va"]),
    ],
)  # fmt: skip
def test_sentences(words_of, text, expected):
    found = words_of(iter([text]))
    assert [" ".join(sentence) for sentence in found[0]] == expected


def test_without_splitting_a_line_is_a_sentence(words_of):
    found = words_of(iter(["One. Two.\nThree. Four。五"]), sentences=False)
    assert found == [[["one", "two"], ["three", "four", "五"]]]


def test_abbreviations_fit_the_kernel():
    for word in characters.ABBREVIATIONS:
        assert word.isascii() and word.islower() and len(word) <= 8
