"""The masking-rate study by command."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

TINY = (
    "--num-layers", 1, "--width", 32, "--num-heads", 2, "--length", 32, "--vocab-size", 200,
    "--batch-size", 8, "--workers", 1, "--steps", 3, "--evaluate-batches", 1, "--device", "cpu",
    "--validation-share", 0.3, "--quiet",
)  # fmt: skip


def test_a_study_by_command(sememe, tmp_path):
    rows = [
        json.dumps(
            {
                "text": f"The {word} eats the fish in the sea , near the old red house , today .",
                "by": by,
            }
        )
        for word, by in (("cat", "a"), ("dog", "b"))
        for _ in range(80)
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows) + "\n")
    options = ("rows.jsonl", "--label-field", "by", "--rates", "15,50", "--out", "study", *TINY)
    told = sememe("study", "masking", *options).out.splitlines()
    assert [line.split("\t")[0] for line in told[:2]] == ["15 %", "50 %"]
    assert told[2].startswith("downstream: which of 2 labels") and "3 steps each" in told[3]
    data = sememe("study", "masking", *options, "--resume", "--json").json
    assert [row["rate"] for row in data["rates"]] == [0.15, 0.5] and data["steps"] == 3
    assert told[0].split("\t")[1] == f"{data['rates'][0]['loss']:.3f}"
    assert (tmp_path / "study" / "study.png").stat().st_size > 1_000


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--rates", "a,b", "--out", "study"), "5,15,40,80"),
        (("--rates", "15,15", "--out", "study"), "different shares"),
        (("--rates", "15"), "--out"),
    ],
)
def test_what_is_wrong_with_a_study(sememe, corpus, options, says):
    result = sememe("study", "masking", corpus, *options, *TINY, fails=True)
    assert result.code == 2 and says in result.err
