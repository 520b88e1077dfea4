"""The view Predictions: generations, next sentences, predicted rows, which words matter."""

from __future__ import annotations

from typing import Any

import pytest

from sememe.explore.prediction_results import TaskRow, cut, importance_of, prediction_of, row_of
from sememe.tasks.importance import word_importance

TEXT = "the lovely film about the garden"
HOSTILE = '<script>alert(1)</script> "x" \u202e good'
PAIR = ("the king sees the dog", "the dog sleeps")


def ask(client: Any, path: str, **body: Any) -> Any:
    answer = client.post(f"/explore/api/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(client: Any, path: str, **body: Any) -> str:
    answer = client.post(f"/explore/api/{path}", json=body)
    assert answer.status_code in (400, 422), answer.text
    message: str = answer.json()["error"]["message"]
    assert message and "\n" not in message and "Traceback" not in message
    return message


def test_a_generation_has_the_steps_of_python(client: Any, opened: Any) -> None:
    options = {
        "count": 5,
        "max_tokens": 6,
        "temperature": 0.7,
        "top_k": 20,
        "top_p": 0.9,
        "seed": 3,
    }
    found = ask(client, "generation", model="gpt", prompt="The old king", **options)["steps"]
    wanted = list(opened("gpt").generate_steps("The old king", **options))
    assert [own["chosen"]["id"] for own in found] == [own.chosen.id for own in wanted]
    for own, step in zip(found, wanted, strict=True):
        assert own["num_kept"] == step.num_kept
        assert [one["text"] for one in own["tokens"]] == [one.text for one in step.tokens]
        for name in ("probability", "drawn"):
            said = [one[name] for one in own["tokens"]]
            assert said == pytest.approx([getattr(one, name) for one in step.tokens], abs=1e-6)


@pytest.mark.parametrize("model", ["gpt", "ngram", "ngram-chinese"])
def test_a_generation_goes_on_from_a_chosen_token(client: Any, opened: Any, model: str) -> None:
    prompt = "国王" if model == "ngram-chinese" else "the old"
    (step,) = ask(client, "generation", model=model, prompt=prompt, max_tokens=1, count=5)["steps"]
    chosen = next(own["id"] for own in step["tokens"][1:] if own["text"] not in ("", "<unk>"))
    body = {"model": model, "prompt": prompt, "max_tokens": 4, "count": 5}
    first, *found = ask(client, "generation", **body, choices={"0": chosen})["steps"]
    wanted = list(opened(model).generate_steps(prompt, ids=[chosen], max_tokens=3))
    assert first["chosen"]["id"] == chosen and first["tokens"] == step["tokens"]
    assert [own["chosen"]["id"] for own in found] == [own.chosen.id for own in wanted]
    # Two choices: the second is among the tokens after the first.
    other = wanted[0].tokens[1]
    again = ask(client, "generation", **body, choices={"1": other.id, "0": chosen})["steps"]
    assert [own["chosen"]["id"] for own in again[:2]] == [chosen, other.id]
    assert "not among" in refused(client, "generation", **body, choices={"0": 10**7})


def test_bad_generations_are_refused(client: Any) -> None:
    assert "temperature" in refused(client, "generation", model="ngram", temperature=0.5)
    assert "top_k" in refused(client, "generation", model="gpt", top_k=-1)
    refused(client, "generation", model="gpt", max_tokens=0)
    assert "continue" in refused(client, "generation", model="bert")


def test_next_sentences_are_those_of_python(client: Any, opened: Any) -> None:
    others = ["he has a dog", "<b>good</b>"]
    found = ask(client, "follows", model="bert", text="the king walks", others=others)
    wanted = [opened("bert").follows("the king walks", other) for other in others]
    assert found["probabilities"] == pytest.approx(wanted, abs=1e-6)
    refused(client, "follows", model="bert", text="the king walks", others=[])
    assert "follows" in refused(client, "follows", model="gpt", text="a", others=["b"])


ROWS: dict[str, tuple[dict[str, str], Any]] = {
    "classify": ({"text": TEXT}, TEXT),
    "pairs": ({"text": PAIR[0], "other": PAIR[1]}, PAIR),
    "regress": ({"text": PAIR[0], "other": PAIR[1]}, PAIR),
    "tag": ({"text": TEXT}, TEXT),
    "answer": ({"text": PAIR[0], "question": "who sees"}, ("who sees", PAIR[0])),
}


@pytest.mark.parametrize("name", sorted(ROWS))
def test_predictions_are_those_of_python(client: Any, opened: Any, name: str) -> None:
    body, row = ROWS[name]
    model = opened(name)
    found = ask(client, "predict", model=name, **body)
    wanted = model.prediction_json(model.predict_scores([row])[0])
    assert same(found["prediction"], wanted) and found["row"] == repr(row)
    assert "".join(text for text, _ in found["parts"]) == body["text"]
    if "probabilities" in wanted and name != "tag":
        assert {label: value for label, value, _ in found["items"]} == pytest.approx(
            wanted["probabilities"], abs=1e-6
        )
        assert [label for label, _, is_own in found["items"] if is_own] == [wanted["label"]]


@pytest.mark.parametrize("name", ["answer", "classify", "pairs", "regress"])
def test_drops_are_those_of_python(client: Any, opened: Any, name: str) -> None:
    body, row = ROWS[name]
    found = ask(client, "importance", model=name, **body)
    wanted = word_importance(opened(name), row)
    assert found["prediction"] == wanted.prediction and found["hidden_by"] == wanted.hidden_by
    texts = [row] if isinstance(row, str) else list(row)
    assert "".join(text for text, _ in found["parts"]) == "\n".join(texts)
    drops = [drop for _, drop in found["parts"] if drop is not None]
    assert drops == [own["drop"] for own in found["words"]]
    assert same(found["words"], [own._asdict() for own in wanted.words]) and found["words"]
    assert found["score"] == pytest.approx(wanted.score, abs=1e-6)


def same(found: Any, wanted: Any) -> bool:
    """Whether JSON values are equal, numbers to a millionth."""
    if isinstance(wanted, dict):
        return set(found) == set(wanted) and all(same(found[name], wanted[name]) for name in wanted)
    if isinstance(wanted, list | tuple):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, float):
        return bool(found == pytest.approx(wanted, abs=1e-6))
    return bool(found == wanted)


@pytest.mark.parametrize("name", ["classify", "tag"])
def test_hostile_texts_come_back_as_they_are(client: Any, name: str) -> None:
    found = ask(client, "predict", model=name, text=HOSTILE)["prediction"]
    assert name != "tag" or found["text"] == HOSTILE
    if name == "classify":
        parts = ask(client, "importance", model=name, text=HOSTILE)["parts"]
        assert "".join(text for text, _ in parts) == HOSTILE


def test_bad_rows_are_refused(client: Any) -> None:
    assert "empty" in refused(client, "predict", model="classify", text=" \n")
    assert "second" in refused(client, "predict", model="pairs", text="the king")
    assert "question" in refused(client, "predict", model="answer", text="the king")
    assert "tag" in refused(client, "importance", model="tag", text=TEXT)
    assert "600" in refused(client, "importance", model="classify", text="word " * 600)
    assert "predict" in refused(client, "predict", model="gpt", text="the king")
    refused(client, "predict", model="classify", text=TEXT, unknown=1)


def test_a_choice_is_predicted(opened: Any) -> None:
    model = opened("choose")
    given = TaskRow(text="the king walks", choices=["to the garden", "a dog"])
    row = {"text": "the king walks", "choice1": "to the garden", "choice2": "a dog"}
    assert row_of(model, given) == row
    (wanted,) = model.predict([row])
    found = prediction_of(model, given)
    assert found["prediction"]["number"] == wanted.number
    assert [label for label, _, is_own in found["items"] if is_own] == [wanted.text]


def test_spans_are_cut_where_python_counts(opened: Any) -> None:
    # An emoji is two characters in JavaScript: the server cuts the text.
    assert cut("😀 the king", [(2, 5, "x")]) == [("😀 ", None), ("the", "x"), (" king", None)]
    row = "😀 the lovely film"
    found = importance_of(row, word_importance(opened("classify"), row))
    assert ["lovely", found["words"][1]["drop"]] in [list(own) for own in found["parts"]]
