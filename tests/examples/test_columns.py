"""Which row names the columns, and which column is what: told by the cells, or refused."""

from __future__ import annotations

import csv
import io
import random

import pytest
from hypothesis import given, settings, strategies as st

from sememe.errors import InputError
from sememe.examples.labelled.columns import is_header
from sememe.examples.labelled.texts import read_texts

TOPICS = {
    "Hardware": ("The printer in room 3 shows an error", "My screen stays black after lunch"),
    "Accounts": ("I cannot log in since this morning", "Please unlock the account of Anna"),
    "Network": ("The VPN drops every ten minutes", "No wireless network in the new building"),
}
SHORT = {"硬件": ("打印机显示错误", "屏幕一直是黑的"), "账号": ("今天无法登录", "密码过期了怎么办")}
CHINESE = {
    "硬件": ("三号房间的打印机一直显示错误", "午饭以后我的屏幕一直是黑的"),
    "账号": ("从今天早上开始我无法登录系统", "请帮忙解锁安娜的账号谢谢"),
}


def tickets(num: int = 24, topics=TOPICS, mark="number") -> list[tuple[str, str]]:
    """Texts, each another, with labels that come again."""
    names = list(topics)
    marks = [str(n) if mark == "number" else "xyz"[n % 3] * n for n in range(num)]
    return [
        (f"{topics[names[n % len(names)]][n % 2]} ({marks[n]})", names[n % len(names)])
        for n in range(num)
    ]


def write(path, header, rows, *, delimiter=",", encoding="utf-8"):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerows([*([header] if header else []), *rows])
    path.write_bytes(text.getvalue().encode(encoding))
    return path


def read(path, **options):
    notes = []
    options = {"kind": "classify", "on_note": notes.append, **options}
    return read_texts(path, **options), " ".join(notes)


def test_a_ticket_system_is_read_by_what_its_columns_hold(tmp_path):
    rows = [
        (1000 + n, text, label, f"2024-03-{n + 1:02} 09:1{n % 10}:00")
        for n, (text, label) in enumerate(tickets())
    ]
    path = write(
        tmp_path / "tickets.csv", ("Ticket Nr", "Body Text", "Queue/Team", "Created"), rows
    )
    found, notes = read(path)
    assert found.columns == {"text": "Body Text", "label": "Queue/Team"}
    assert [(row.text, row.label) for row in found] == tickets()
    assert "text = “Body Text” (“The printer in room 3 shows an…”" in notes
    assert "label = “Queue/Team” (“Hardware”, “Accounts”)" in notes


@pytest.mark.parametrize(
    ("header", "topics"),
    [
        (("Betreff", "Abteilung"), TOPICS), (("工单内容", "负责部门"), CHINESE),
        (("内容一", "部门"), SHORT),
        (("Spalte A", "Nr."), TOPICS),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_label_first", [False, True])
@pytest.mark.parametrize("mark", ["number", "letters"])
def test_names_that_nobody_knows_are_names(tmp_path, header, topics, is_label_first, mark):
    order = slice(None, None, -1) if is_label_first else slice(None)
    rows = [row[order] for row in tickets(topics=topics, mark=mark)]
    path = write(tmp_path / "a.csv", header[order], rows, delimiter=";", encoding="utf-8-sig")
    found, _ = read(path)
    assert len(found) == 24 and found.columns == {"text": header[0], "label": header[1]}
    bare, notes = read(write(tmp_path / "b.csv", None, rows, delimiter=";"))
    assert [row.label for row in bare] == [row.label for row in found] and "no header row" in notes


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ([f"{n % 28 + 1:02}.03.2024" for n in range(24)], "dates"),
        ([f"3/{n % 28 + 1}/24 9:05 AM" for n in range(24)], "dates"),
        ([f"2024年3月{n % 28 + 1}日" for n in range(24)], "dates"),
        ([f"2024-{n % 12 + 1:02}" for n in range(24)], "dates"),
        ([f"{('Jan', 'März', 'Oct.')[n % 3]} 2024" for n in range(24)], "dates"),
        ([f"202403{n % 28 + 1:02}" for n in range(24)], "dates"),
        ([f"2024-03-{n % 9 + 1:02}" if n % 4 else "n/a" for n in range(24)], "dates"),
        ([f"Mon Mar {n % 9 + 1:2} 09:05:00 2024" for n in range(24)], "dates"),
        ([f"T-{n:05}" for n in range(24)], "another in each row"),
        ([f"T-{n:05}" for n in [*range(23), 0]], "another in each row"),
        ([str(n) for n in range(24)], "another in each row"),
        ([""] * 24, "empty"),
    ],
)  # fmt: skip
def test_what_is_no_label_is_refused_with_the_option_to_choose(tmp_path, column, why):
    rows = [(text, cell) for (text, _), cell in zip(tickets(), column, strict=True)]
    path = write(tmp_path / "a.csv", ("Body Text", "Something"), rows)
    with pytest.raises(InputError, match=rf"'Something' \({why}|Something.*{why}") as refusal:
        read(path)
    assert "--column label=NAME" in str(refusal.value) and str(path) in str(refusal.value)
    called = write(tmp_path / "b.csv", ("text", "label"), rows)
    with pytest.raises(InputError, match="label"):
        read(called)


def test_labels_with_years_in_their_names_are_labels(tmp_path):
    rows = [(text, f"Windows {(2000, 2012, 2019)[n % 3]}") for n, (text, _) in enumerate(tickets())]
    path = write(tmp_path / "a.csv", ("Body Text", "Product"), rows)
    assert read(path)[0].columns["label"] == "Product"


def test_a_column_that_is_always_the_same_is_no_label(tmp_path):
    rows = [(text, label, "ACME Ltd") for text, label in tickets()]
    path = write(tmp_path / "a.csv", ("Text body", "Team name", "Client"), rows)
    assert read(path)[0].columns["label"] == "Team name"


def test_two_columns_that_could_be_the_label_are_refused_unless_one_is_named(tmp_path):
    rows = [(text, label, ["low", "high"][n % 2]) for n, (text, label) in enumerate(tickets())]
    path = write(tmp_path / "a.csv", ("Message body", "Team", "Urgency"), rows)
    with pytest.raises(InputError, match=r"'Team' .*'Urgency'.*--column label=NAME"):
        read(path)
    assert {row.label for row in read(path, columns={"label": "urgency"})[0]} == {"low", "high"}
    bare = write(tmp_path / "b.csv", None, rows)
    with pytest.raises(InputError, match=r"--column label=NUMBER"):
        read(bare)
    assert {row.label for row in read(bare, columns={"label": "3"})[0]} == {"low", "high"}


def test_a_first_row_that_could_be_either_is_refused_unless_columns_are_told(tmp_path):
    path = tmp_path / "a.tsv"
    lines = ["ab\tx", "cd\ty", "ef\tz", "gh\ty", "ij\tz", "kl\ty"]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=r"line 1: it is not clear whether 'ab', 'x' names"):
        read(path)
    assert len(read(path, columns={"text": "1", "label": "2"})[0]) == 6
    assert len(read(path, columns={"text": "ab", "label": "x"})[0]) == 5


def test_questions_above_dates_are_no_row_in_silence(tmp_path):
    question = "What is your request about, and how urgent is it for you and for your team today?"
    rows = [(f"2024-03-{n + 1:02}", text, label) for n, (text, label) in enumerate(tickets())]
    path = write(tmp_path / "form.csv", ("Start time", question, "Team"), rows)
    with pytest.raises(InputError, match="not clear whether 'Start time'"):
        read(path)
    found, _ = read(path, columns={"label": "Team"})
    assert [(row.text, row.label) for row in found] == tickets()
    gap = write(tmp_path / "gap.csv", None, [("n/a", *rows[0][1:]), *rows[1:]])
    assert len(read(gap)[0]) == 24


def test_names_that_come_twice_say_where_they_stand(tmp_path):
    rows = [(text, "seen", label, "seen") for text, label in tickets()]
    path = write(tmp_path / "a.csv", ("Body", "Note", "Category", "Note"), rows)
    assert read(path)[0].columns == {"text": "Body", "label": "Category"}
    with pytest.raises(InputError, match=r"no column 'Note'.*'Note \(2\)'.*'Note \(4\)'"):
        read(path, columns={"label": "Note"})


def test_a_line_of_names_that_comes_again_is_a_bad_row(tmp_path):
    path = write(tmp_path / "a.csv", ("Body", "Category"), [*tickets(), ("Body", "Category")])
    with pytest.raises(InputError, match="line 26: the header row comes again"):
        read(path)
    assert read(path, skip_bad=True)[0].num_skipped == 1


def test_columns_of_earlier_rows_are_used_where_they_are(tmp_path):
    earlier = {"text": "Betreff", "label": "Abteilung"}
    short = write(tmp_path / "five.csv", ("Abteilung", "Betreff"), [("?", "Hilfe")] * 5)
    found, _ = read(short, labelled=False, earlier=earlier)
    assert [row.text for row in found] == ["Hilfe"] * 5
    other = write(
        tmp_path / "other.csv",
        ("Nr", "Message body"),
        [(n, t) for n, (t, _) in enumerate(tickets())],
    )
    found, notes = read(other, labelled=False, earlier=earlier)
    assert len(found) == 24 and "text = “Message body”" in notes
    bare = write(tmp_path / "bare.csv", None, [("Hilfe", "IT")] * 5)
    found, _ = read(bare, labelled=False, earlier={"text": "1", "label": "2"})
    assert [row.text for row in found] == ["Hilfe"] * 5
    rows = [("Der Drucker im Raum 3 druckt nicht", "IT"), ("Wo finde ich mein Gehalt?", "HR")]
    headed = write(tmp_path / "headed.csv", ("Betreff", "Abteilung"), rows)
    with pytest.raises(InputError, match="not clear whether 'Betreff', 'Abteilung' names"):
        read(headed, labelled=False, earlier={"text": "1", "label": "2"})
    found, _ = read(headed, labelled=False, columns={"text": "Betreff"})
    assert [row.text for row in found] == [text for text, _ in rows]


def test_control_characters_of_samples_do_not_reach_the_terminal(tmp_path):
    rows = [(f"\x1b[31m{text}\x07", label) for text, label in tickets()]
    _, notes = read(write(tmp_path / "a.csv", ("text", "label"), rows))
    assert "\x1b" not in notes and "\x07" not in notes and "[31mThe printer" in notes


# ---- any table ----------------------------------------------------------------------------

WORDS = [
    "server",
    "mail",
    "login",
    "screen",
    "paper",
    "order",
    "invoice",
    "late",
    "broken",
    "slow",
    "again",
    "please",
    "help",
    "new",
    "old",
]
NAMES = [
    "Alpha",
    "Beta",
    "Gamma",
    "Delta",
    "Epsilon",
    "Zeta",
    "Eta",
    "Theta",
    "Iota",
    "内容一",
    "说明",
    "Größe",
    "Straße",
    "Ort",
    "Kürzel",
]


def cells_of(kind: str, num: int, rng: random.Random) -> list[str]:
    """The cells of a column of one kind."""
    if kind == "text":
        made = [" ".join(rng.choices(WORDS, k=rng.randint(8, 20))) + "." for _ in range(num)]
        return [f"{text[:-1]} {n}." for n, text in enumerate(made)]
    if kind == "label":
        names = rng.sample(
            ["mail", "print", "login", "phone", "other", "1", "2"], rng.randint(2, 4)
        )
        return [names[n] if n < len(names) else rng.choice(names) for n in range(num)]
    return {
        "id": lambda: [str(10_000 + n) for n in range(num)],
        "code": lambda: [f"T-{n:04}" for n in range(num)],
        "date": lambda: [
            f"2024-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}" for _ in range(num)
        ],
        "constant": lambda: ["ACME"] * num,
        "empty": lambda: [""] * num,
        "decimal": lambda: [f"{rng.uniform(0, 99):.3f}" for _ in range(num)],
    }[kind]()


KINDS = ["id", "code", "date", "constant", "empty", "decimal", "label"]


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    num=st.integers(8, 60),
    others=st.lists(st.sampled_from(KINDS), max_size=5),
    has_names=st.booleans(),
    delimiter=st.sampled_from([",", ";", "\t"]),
)  # fmt: skip
def test_any_table_is_read_right_or_refused(
    tmp_path_factory, seed, num, others, has_names, delimiter
):
    rng = random.Random(seed)
    kinds = ["text", "label", *others]
    rng.shuffle(kinds)
    columns = [cells_of(kind, num, rng) for kind in kinds]
    names = rng.sample(NAMES, len(kinds)) if has_names else None
    rows = list(zip(*columns, strict=True))
    path = write(tmp_path_factory.mktemp("t") / "a.csv", names, rows, delimiter=delimiter)
    place = kinds.index("text")
    try:
        found, _ = read(path)
    except InputError as refusal:
        assert "--column" in str(refusal)
        # Nothing but a second column of labels makes it unclear.
        assert kinds.count("label") > 1 or any(kind in ("constant", "empty") for kind in kinds), (
            refusal
        )
        return
    assert kinds.count("label") == 1
    label = kinds.index("label")
    assert [(row.text, row.label) for row in found] == [(row[place], row[label]) for row in rows]


@pytest.mark.parametrize(
    ("first", "below", "expected"),
    [
        (["a film", "pos"], [["another film", "pos"], ["a third", "neg"]], False),
        (["name", "amount"], [["x", "3"], ["y", "4"]], True),
        (["12", "text"], [["13", "more"]], False),
        (["Ein langer Satz, der kein Name sein kann.", "x"], [["noch einer", "y"]], False),
    ],
)  # fmt: skip
def test_the_first_row(first, below, expected):
    assert is_header(first, below) is expected


IDS = {
    "numbers": [str(1000 + n) for n in range(20)],
    "dates": [f"2024-03-{n + 1:02} 09:10" for n in range(20)],
    "codes": [f"TCK-{n:05}-{n * n:x}" for n in range(20)],
}


@pytest.mark.parametrize("kind", IDS)
def test_ids_are_never_guessed_to_be_the_text(tmp_path, kind):
    rows = [(cell, ("red", "blue")[n % 2]) for n, cell in enumerate(IDS[kind])]
    path = write(tmp_path / "a.csv", ("Ref", "Team"), rows)
    with pytest.raises(InputError, match="--column") as refused:
        read(path)
    assert "'Ref'" in str(refused.value)
    found, notes = read(path, columns={"text": "Ref", "label": "Team"})
    assert len(found) == 20 and "ids, numbers or dates" in notes
    whole = [(cell, "a text about that", label) for cell, label in rows]
    found, notes = read(write(tmp_path / "b.csv", ("Ref", "Body", "Team"), whole))
    assert found[0].text == "a text about that" and "ids, numbers" not in notes
