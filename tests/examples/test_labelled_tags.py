"""Tagged words from every layout; schemes; places in running text and on sub-words."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sememe.errors import InputError, OptionError
from sememe.examples import tagging
from sememe.examples.labelled.rows import TagRow
from sememe.examples.labelled.tags import read_tags
from sememe.examples.running_words import word_places
from sememe.examples.tagging import Span, convert_tags, detect_scheme, spans_of, tags_of
from sememe.metrics import entities

CONLL = """-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O
German JJ I-NP I-MISC
call NN I-NP O

Peter NNP I-NP I-PER
Blackburn NNP I-NP I-PER
"""


def _read(path, **options):
    notes = []
    rows = read_tags(path, on_note=notes.append, **options)
    return rows, " ".join(notes)


def _write(folder, name, text):
    path = folder / name
    path.write_bytes(text.encode())
    return path


# ---- files --------------------------------------------------------------------------------


def test_conll_columns(tmp_path):
    rows, notes = _read(_write(tmp_path, "eng.train", CONLL))
    assert rows[0].words == ("EU", "rejects", "German", "call")
    assert rows[1].tags == ("I-PER", "I-PER") and rows[1].source.endswith("eng.train, line 8")
    assert "4 columns; words = column 1, tags = the last column" in notes and "IOB1" in notes
    assert _read(tmp_path / "eng.train", target="bioes")[0][1].tags == ("B-PER", "E-PER")
    parts, notes = _read(tmp_path / "eng.train", tag_column=1)
    assert parts[1].tags == ("NNP", "NNP") and "no scheme of spans" in notes


def test_chinese_by_character_with_tabs_and_crlf(tmp_path):
    rows, _ = _read(
        _write(tmp_path, "msra.txt", "中\tB-ORG\r\n共\tI-ORG\r\n\r\n　\tO\r\n"), skip_bad=True
    )
    assert [row.words for row in rows] == [("中", "共")] and rows.num_skipped == 1
    rows, _ = _read(_write(tmp_path, "plain.txt", "当 O\n北 B-LOC\n京 I-LOC\n"))
    assert rows[0].tags == ("O", "B-LOC", "I-LOC")


def test_conllu_has_comments_and_ranges(tmp_path):
    text = "# text = don't\n1-2\tdon't\t_\t_\n1\tdo\tdo\tAUX\n2\tn't\tnot\tPART\n1.1\tx\tx\tX\n"
    rows, _ = _read(_write(tmp_path, "a.conllu", text), word_column=1, tag_column=3)
    assert (rows[0].words, rows[0].tags) == (("do", "n't"), ("AUX", "PART"))


def test_tags_may_be_long_lists_and_notes_that_no_one_reads_longer(tmp_path):
    features = "Case=Acc|Gender=Masc|Number=Plur|Person=3|Poss=Yes|PronType=Prs|Reflex=Yes"
    path = _write(tmp_path, "a.conllu", f"1\tsuos\tPRON\t{features}\tGloss={'his ' * 40}\n")
    rows, _ = _read(path, word_column=1, tag_column=3)
    assert rows[0].tags == (features,)
    rows, _ = _read(path, word_column=1, labelled=False)
    assert rows[0].words == ("suos",)


def test_marked_texts_keep_the_places_of_characters(tmp_path):
    text = "叶老桂用iPhone 😀ＡＢＣ"
    marked = {"text": text, "label": {"name": {"叶老桂": [[0, 2]]}, "brand": {"Phone": [[5, 9]]}}}
    line = json.dumps(marked, ensure_ascii=False)
    rows, notes = _read(_write(tmp_path, "train.json", line + "\n"))
    (row,) = rows
    assert row.words == ("叶", "老", "桂", "用", "i", "Phone", "😀", "ＡＢＣ")
    assert row.tags == ("B-name", "I-name", "I-name", "O", "O", "B-brand", "O", "O")
    assert all(text[s:e] == w for s, e, w in zip(row.starts, row.ends, row.words, strict=True))
    assert "text with" in notes or "text = “text”" in notes
    listed = [
        {"start": 4, "end": 10, "label": "B"},
        {"start": 0, "end": 2, "type": "P", "text": "叶老桂"},
    ]
    for marks in (listed, [[4, 10, "B"], [0, 3, "P"]]):
        (row,) = read_tags([{"text": text, "entities": marks}])
        assert row.tags == ("B-P", "I-P", "I-P", "O", "B-B", "O", "O")


BAD_MARKS = [
    ({"x": {"叶桂": [[0, 1]]}}, "characters 0 to 2 are '叶老', not '叶桂'"),
    ([[0, 99, "x"]], "the span 0 to 99 .x. leaves the text"),
    ([[0, 3, "x"], [2, 4, "y"]], "the spans '叶老桂' .x. and '桂用' .y. overlap"),
    ([[3, 3, "x"]], "leaves the text"),
    ([[0, "3", "x"]], "is not two whole numbers"),
    ([{"start": 0, "end": 3}], "has no type"),
    ([[10, 11, "x"]], "holds no word"),
]


@pytest.mark.parametrize(("marks", "message"), BAD_MARKS)
def test_marks_that_do_not_fit_are_named_or_counted(marks, message):
    good = {"text": "张三", "entities": [[0, 2, "x"]]}
    bad = {"text": "叶老桂用iPhone 😀", "entities": marks}
    with pytest.raises(InputError, match=f"row 1: .*{message}"):
        read_tags([good, bad])
    assert read_tags([good, bad], skip_bad=True).num_skipped == 1


BAD = [
    ("EU I-ORG\nrejects\n\nPeter I-PER\n", "line 2: 1 columns, where the first line has 2"),
    ("EU I-ORG\nrejects VBZ O\n\nPeter I-PER\n", "line 2: 3 columns"),
    ("EU I-ORG\n\nPeter X-PER\n", "line 3: the tag 'X-PER' is not among"),
    (f"1\t{'房间太小' * 20}\n\nPeter\tI-PER\n", "line 1: the tag “房间太小.*…” is a text"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_lines_are_named_or_counted(tmp_path, text, message):
    path = _write(tmp_path, "a.txt", text)
    options = {"labels_known": ["I-ORG", "I-PER", "O"], "scheme": "iob1"}
    with pytest.raises(InputError, match=rf"a\.txt, {message}"):
        _read(path, **options)
    rows, _ = _read(path, skip_bad=True, **options)
    assert len(rows) == rows.num_skipped == 1


def test_words_and_tags_as_lists_strings_and_tables(tmp_path):
    lines = '{"tokens": ["a", "b"], "ner_tags": ["O", "B-X"]}\n{"tokens": ["c"], "ner_tags": []}\n'
    path = _write(tmp_path, "a.jsonl", lines)
    with pytest.raises(InputError, match="line 2: 1 words but 0 tags"):
        _read(path)
    rows, notes = _read(path, skip_bad=True)
    assert rows[0].tags == ("O", "B-X") and "words = “tokens”, tags = “ner_tags”" in notes
    table = _write(tmp_path, "b.tsv", "text_a\tlabel\n海\x02南\tB-L\x02I-L\n")
    assert _read(table)[0][0] == TagRow(("海", "南"), ("B-L", "I-L"), f"{table}, line 2")
    assert read_tags([(["a"], ["O"]), (["b", "c"], ["O", "B-X"])])[1].words == ("b", "c")
    with pytest.raises(InputError, match="Row 0 is not"):
        read_tags(["a text"])


def test_numbers_of_classes_have_the_names_that_datasets_notes(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    names = {"names": ["O", "B-X", "I-X"], "_type": "ClassLabel"}
    features = {
        "tokens": {"feature": {"dtype": "string", "_type": "Value"}, "_type": "Sequence"},
        "ner_tags": {"feature": names, "_type": "Sequence"},
    }
    table = pa.table({"tokens": [["a", "b", "c"]], "ner_tags": [[1, 2, 0]]})
    noted = {"huggingface": json.dumps({"info": {"features": features}})}
    pq.write_table(table.replace_schema_metadata(noted), tmp_path / "a.parquet")
    assert read_tags(tmp_path / "a.parquet")[0].tags == ("B-X", "I-X", "O")
    pq.write_table(table, tmp_path / "b.parquet")
    assert read_tags(tmp_path / "b.parquet")[0].tags == ("1", "2", "0")


def test_rows_without_tags(tmp_path):
    prose = _write(tmp_path, "a.txt", "Jim sings.\n他来了。\n")
    rows, notes = _read(prose, labelled=False)
    assert [row.words for row in rows] == [("Jim", "sings", "."), ("他", "来", "了", "。")]
    assert "running text" in notes
    words = _write(tmp_path, "b.txt", "Jim\nsings\n\nhe\n")
    assert [row.words for row in _read(words, labelled=False)[0]] == [("Jim", "sings"), ("he",)]
    assert [row.words for row in _read(_write(tmp_path, "c", CONLL), labelled=False)[0]][1] == (
        "Peter", "Blackburn",
    )  # fmt: skip
    by_character = read_tags(["用iPhone"], labelled=False, by_character=True)
    assert by_character[0].words == ("用", *"iPhone")
    with pytest.raises(InputError, match="line 1: one column"):
        _read(words)


# ---- running text -------------------------------------------------------------------------


def test_words_of_running_text():
    text = "Dr. O'Neil’s 3.14, e\u0301té; 👩‍👩‍👧‍👦❤️ ＡＢ café—好的!\u200b\n"
    words = [text[start:end] for start, end in word_places(text)]
    assert words[:7] == ["Dr", ".", "O'Neil’s", "3.14", ",", "e\u0301té", ";"]
    assert words[7:] == ["👩‍👩‍👧‍👦", "❤️", "ＡＢ", "café", "—", "好", "的", "!"]


@settings(deadline=None)
@given(
    st.text(alphabet="aÉ好 \u0301\n,.'9😀\ufe0f\u200dＡ", max_size=30), st.sets(st.integers(0, 30))
)
def test_places_rise_cover_all_that_is_seen_and_keep_borders(text, borders):
    places = word_places(text, borders)
    flat = [place for pair in places for place in pair]
    assert flat == sorted(flat) and all(start < end for start, end in places)
    seen = {index for start, end in places for index in range(start, end)}
    assert not {char for index, char in enumerate(text) if index not in seen} - set(" \n\ufe0f")
    assert not any(start < border < end for start, end in places for border in borders)


# ---- schemes ------------------------------------------------------------------------------


def test_schemes_of_one_sentence():
    spans = [Span("PER", 0, 2), Span("PER", 2, 3), Span("LOC", 4, 5)]
    written = {
        "iob1": ["I-PER", "I-PER", "B-PER", "O", "I-LOC"],
        "iob2": ["B-PER", "I-PER", "B-PER", "O", "B-LOC"],
        "bioes": ["B-PER", "E-PER", "S-PER", "O", "S-LOC"],
    }
    for scheme, tags in written.items():
        assert tags_of(spans, 5, scheme) == tags
        assert spans_of(tags, scheme) == spans
        assert detect_scheme([tags]) == scheme
        for other, expected in written.items():
            assert convert_tags(tags, scheme, other) == expected
    assert spans_of(["B-X", "M-X", "L-X", "U_X"], "bioes") == [Span("X", 0, 3), Span("X", 3, 4)]
    assert detect_scheme([["NN", "VB"]]) == "none"
    assert spans_of(["NN", "NN", "O"], "none") == [Span("NN", 0, 2)]


def test_other_spellings_of_a_scheme_become_those_that_scores_know():
    for target in ("same", "iob2"):
        rows = read_tags([(["Jim", "Henson", "sings"], ["B_PER", "I_PER", "O"])], target=target)
        assert rows[0].tags == ("B-PER", "I-PER", "O")
    rows = read_tags([(list("中国人民好"), ["B-X", "M-X", "E-X", "U-X", "O"])])
    assert rows[0].tags == ("B-X", "I-X", "E-X", "S-X", "O")
    assert read_tags([(["a", "b"], ["NN", "B_VB"])])[0].tags == ("NN", "B_VB")


def test_wrong_spans_and_schemes_are_refused():
    with pytest.raises(InputError, match="overlaps another"):
        tags_of([Span("X", 0, 2), Span("Y", 1, 3)], 3)
    with pytest.raises(InputError, match="leaves the 2 words"):
        tags_of([Span("X", 0, 3)], 2)
    with pytest.raises(OptionError, match="scheme must be one of"):
        read_tags([(["a"], ["O"])], scheme="bio")
    with pytest.raises(OptionError, match="cannot change"):
        convert_tags(["NN"], "none", "iob2")


TAGS = st.lists(
    st.sampled_from(["O"] + [f"{letter}-{kind}" for letter in "BIES" for kind in "XY"]), max_size=8
)


@settings(deadline=None)
@given(TAGS)
def test_spans_are_those_of_the_scorer(tags):
    assert spans_of(tags, "bioes") == [tuple(entity) for entity in entities(tags)]


@settings(deadline=None)
@given(TAGS, st.sampled_from(["iob1", "iob2", "bioes"]))
def test_conversion_keeps_every_span(tags, target):
    converted = convert_tags(tags, "bioes", target) if target != "bioes" else tags
    assert spans_of(converted, target) == spans_of(tags, "bioes")


# ---- sub-words ----------------------------------------------------------------------------


def test_the_tag_of_a_word_lies_on_its_first_piece():
    """Jim Hen ##son was a puppet ##eer carries I-PER I-PER X O O O X (Devlin et al. 2018)."""
    cut = [["Jim"], ["Hen", "##son"], ["was"], ["a"], ["puppet", "##eer"]]
    pieces = [piece for word in cut for piece in word]
    numbers = {piece: index for index, piece in enumerate(pieces)}
    joined = tagging.join_pieces([np.array([numbers[p] for p in word]) for word in cut], 99)
    labels = ["I-PER", "O"]
    tags = convert_tags(["B-PER", "I-PER", "O", "O", "O"], "iob2", "iob1")
    targets = tagging.targets_of(joined, [labels.index(tag) for tag in tags])
    assert [pieces[i] for i in joined.ids] == pieces
    assert ["X" if t == tagging.IGNORE_ID else labels[t] for t in targets] == [
        "I-PER", "I-PER", "X", "O", "O", "O", "X",
    ]  # fmt: skip


def test_a_word_that_is_cleaned_away_has_a_piece_too():
    joined = tagging.join_pieces([np.array([5, 6]), np.array([], int), np.array([7])], 1)
    assert joined.ids.tolist() == [5, 6, 1, 7] and joined.firsts.tolist() == [0, 2, 3]
    assert tagging.join_pieces([], 1).ids.tolist() == []


def test_broken_tags_are_fixed_in_their_own_scheme():
    broken = ["O", "E-PER", "B-LOC", "O", "I-LOC"]
    assert tagging.fixed_tags(broken, "bioes") == ["O", "S-PER", "S-LOC", "O", "S-LOC"]
    rows = [(["a", "b"], ["O", "E-X"])]
    assert read_tags(rows, target="bioes")[0].tags == ("O", "S-X")
    assert read_tags(rows, target="same")[0].tags == ("O", "E-X")


# ---- a word per row, below a header -------------------------------------------------------

SENTENCES = [
    [("The", "O"), ("trip", "O"), (name, tag), (".", "O")]
    for name, tag in [("Anna", "B-PER"), ("Paris", "B-LOC"), ("张三", "B-PER"), ("北京", "B-LOC")]
]


def by_word(header: str, mark: str, blank: bool = True, number: str = "") -> str:
    """The sentences, a word per line; `number` is every (each) or only the first word's."""
    lines = [header]
    for place, sentence in enumerate(SENTENCES, 1):
        for index, cells in enumerate(sentence):
            own = f"Sentence: {place}" if number == "each" or not index else ""
            lines.append(mark.join([own] * bool(number) + list(cells)))
        lines += [""] * blank
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.conll", by_word("Token Tag", " ")),
        ("a.txt", by_word("Wort\tMarke", "\t")),
        ("a.tsv", by_word("Token\tTag", "\t")),
        ("a.csv", by_word("word,label", ",")),
        ("a.csv", by_word("Sentence #,Word,Tag", ",", blank=False, number="first")),
        ("a.tsv", by_word("sentence_id\tword\tner", "\t", blank=False, number="each")),
        ("a.csv", by_word("句子编号,字,标签", ",", blank=False, number="each")),
    ],
)
@pytest.mark.parametrize("labelled", [True, False])
def test_a_header_above_words_is_no_word(tmp_path, name, text, labelled):
    notes = []
    path = _write(tmp_path, name, text)
    found = read_tags(path, on_note=notes.append, labelled=labelled)
    assert [list(zip(row.words, row.tags, strict=True)) for row in found] == SENTENCES
    assert not labelled or "The tags are written in IOB2." in notes


def test_columns_below_a_header_have_names(tmp_path):
    text = "Wort\tLemma\tMarke\n" + "Anna\tanna\tB-PER\nlacht\tlachen\tO\n\nJa\tja\tO\n"
    path = _write(tmp_path, "a.txt", text)
    found = read_tags(path, word_column="Lemma", tag_column="marke")
    assert [row.words for row in found] == [("anna", "lachen"), ("ja",)]
    with pytest.raises(InputError, match=r"no column 'NER'.*'Marke'"):
        read_tags(path, word_column="Wort", tag_column="NER")


def test_words_without_sentences_are_refused(tmp_path):
    path = _write(tmp_path, "a.csv", "word,tag\n" + "Anna,B-PER\nlacht,O\n" * 200)
    with pytest.raises(InputError, match="nothing separates its sentences"):
        read_tags(path)


@pytest.mark.parametrize("places", ["5", "null", '[{"a": 1}]', '["x"]'])
def test_wrong_places_of_mentions_are_bad_rows(tmp_path, places):
    line = f'{{"text": "张三说", "label": {{"name": {{"张三": {places}}}}}}}\n'
    path = _write(tmp_path, "a.jsonl", line)
    with pytest.raises(InputError, match="line 1"):
        read_tags(path)
