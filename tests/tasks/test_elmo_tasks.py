"""ELMo under heads: rows of texts, the mix, vectors beside, every task, folders, ensembles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sememe import Answer, Choose, Classify, ELMo, Pairs, Regress, Tag
from sememe.errors import ArtifactError, InputError, OptionError
from sememe.models.elmo.encoder import ELMoCoder, ELMoEncoder
from sememe.nn.encoders import inputs_of
from sememe.tasks.objective import Item, labelled_of
from sememe.vectors import WordVectors
from sememe.vectors.lexicon import Lexicon

TEXTS = [
    "The good film was long. A bad story was dull!", "Paris is nice, and the cat sat there.",
    "国王 看见 苹果 。 the film was good", "A lovely song about a poor king in Rome.",
] * 4  # fmt: skip
QUICK: dict[str, Any] = {
    "device": "cpu", "workers": 1, "length": 40, "batch_size": 8, "epochs": 8.0,
    "reader_width": 16, "learning_rate": 0.02, "dropout": 0.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def elmo(tmp_path_factory) -> ELMo:
    """A small ELMo that has seen next to nothing: its characters tell words apart already."""
    return ELMo(
        "tiny", num_cells=24, width=12, filters="1:8 2:8 3:8", num_highways=1, steps=20,
        min_count=1, length=12, batch_size=4, workers=1, device="cpu", learning_rate=0.02,
        evaluate_batches=0,
    ).fit(TEXTS, store=tmp_path_factory.mktemp("elmo") / "store")  # fmt: skip


@pytest.fixture
def vectors() -> WordVectors:
    words = ["good", "bad", "film", "story", "paris"]
    return WordVectors(words, np.random.default_rng(1).normal(0, 1, (5, 6)))


@pytest.fixture
def vector_file(vectors, tmp_path) -> str:
    vectors.save(tmp_path / "vectors")
    return str(tmp_path / "vectors")


def encoder_of(elmo: ELMo, reads: Any, vectors: Any = None, **options: Any) -> Any:
    coder = ELMoCoder(Lexicon(vectors, is_written=True), elmo.text, 40)
    encoder = ELMoEncoder(
        elmo.opened, coder.lexicon, reads=reads, reader_width=0, dropout=0.0, **options
    )
    return coder, encoder.eval()


def framed(coder: ELMoCoder, first: str, second: str | None = None) -> Any:
    ids = [own.ids for own in coder.encode([first] if second is None else [first, second])]
    return coder.frame(*ids).sequence


def test_each_text_is_a_row_of_its_own(elmo):
    coder, encoder = encoder_of(elmo, "texts", features="last")
    pairs = [("The good film", "Paris is nice"), ("A king", ""), ("Rome", "The bad film was long")]
    inputs = inputs_of([framed(coder, *pair) for pair in pairs])
    found = encoder.in_context(inputs).detach().numpy()
    place = 0
    for first, second in pairs:
        for text in (first, second):
            place += 1  # the mark
            words = text.split()
            if words:
                wanted = elmo.embed_words([words])[0]
                np.testing.assert_allclose(found[place : place + len(words)], wanted, atol=1e-5)
            place += len(words)
        if not second:
            assert framed(coder, first, second).ids_T.tolist()[-1] == 2  # a mark stands there
    assert place == len(found)


def test_a_mix_weighs_the_layers_and_its_weights_learn(elmo):
    coder, encoder = encoder_of(elmo, "words")
    inputs = inputs_of([framed(coder, "The good film")])
    with torch.no_grad():
        encoder.mix.weights_L.copy_(torch.tensor([0.3, -1.0, 2.0]))
        encoder.mix.scale.fill_(1.7)
    layers = elmo.layers([["The", "good", "film"]])[0]
    shares = np.exp([0.3, -1.0, 2.0]) / np.exp([0.3, -1.0, 2.0]).sum()
    found = encoder.in_context(inputs)
    wanted = 1.7 * np.tensordot(shares, layers, 1)
    np.testing.assert_allclose(found[1:].detach(), wanted, atol=1e-5)
    found.square().sum().backward()
    assert encoder.mix.weights_L.grad.abs().sum() > 0 and encoder.mix.scale.grad is not None
    assert not any(parameter.requires_grad for parameter in elmo.network.parameters())
    assert not any(name.startswith("_frozen") for name in encoder.state_dict())


def test_what_all_words_share_is_taken_away_at_the_start(elmo):
    coder, encoder = encoder_of(elmo, "words")
    inputs = inputs_of([framed(coder, text) for text in TEXTS[:4]])
    encoder.learn_words(len(coder.lexicon), torch.Generator())
    found = encoder.in_context(inputs).detach()
    assert 0.5 < float(found.square().mean().sqrt()) < 2
    assert float(found.mean(0).abs().mean()) < 0.5


def test_padding_and_neighbors_change_nothing(elmo):
    coder, encoder = encoder_of(elmo, "texts")
    one = framed(coder, "The good film", "Rome")
    long = framed(coder, "A lovely song about a poor king in Rome", "the film was good " * 3)
    alone, beside = encoder.tokens(inputs_of([one])), encoder.tokens(inputs_of([long, one]))
    torch.testing.assert_close(beside[len(long.ids_T) :], alone, atol=1e-5, rtol=0)


def test_vectors_stand_beside_whatever_the_case(elmo, vectors):
    coder, encoder = encoder_of(elmo, "words", vectors)
    inputs = inputs_of([framed(coder, "Paris film Film king")])
    found = encoder.vectors(inputs)
    assert found.shape == (5, 6 + 24)
    rows, is_known = coder.lexicon.rows(0, 4)
    np.testing.assert_array_equal(rows[0], vectors["paris"])
    assert is_known.tolist() == [True, True, True, False]
    assert found[1, :6].abs().sum() > 0 and not torch.equal(found[1, :6], found[2, :6])
    assert torch.equal(found[2, :6], found[3, :6])  # one vector, two words to ELMo
    assert not torch.allclose(found[2, 6:], found[3, 6:])
    assert found[4, :6].abs().sum() == 0


def test_attention_is_over_the_words_of_a_text(elmo):
    coder = ELMoCoder(Lexicon(None, is_written=True), elmo.text, 40)
    encoder = ELMoEncoder(elmo.opened, coder.lexicon, reads="text", reader_width=8, dropout=0.0)
    encoder.initialise(torch.Generator().manual_seed(1))
    texts = ["A", "A king in Rome"]
    items = [Item((framed(coder, text),), index) for index, text in enumerate(texts)]
    inputs = labelled_of(items, Classify(elmo).make_head(16, dropout=0.0, has_bias=True)).inputs
    tokens = torch.randn(7, 16, generator=torch.Generator().manual_seed(2))
    found = encoder.sequences(tokens, inputs)
    torch.testing.assert_close(found[0], tokens[1])  # one word has all the weight
    scores = encoder.pool.score(encoder.pool.hidden(tokens[3:]).tanh()).softmax(0)
    torch.testing.assert_close(found[1], (scores * tokens[3:]).sum(0))


# ---- tasks --------------------------------------------------------------------------------------


GOOD, BAD = ("good", "lovely", "nice"), ("bad", "poor", "dull")
OPINIONS = [
    (f"the {word} {thing}", label)
    for label, words in (("yes", GOOD), ("no", BAD))
    for word in words
    for thing in ("film", "story", "song", "Rome")
]
SENTENCES = [
    (["the", word, place, "sat", "."], ["O", "O", "B-LOC", "O", "O"])
    for word in ("king", "cat", "film")
    for place in ("Paris", "Rome", "U.S.")
] * 3


def test_a_tagger_with_a_crf_learns_words_as_they_are(elmo, vector_file, tmp_path):
    task = Tag(elmo, crf=True, vectors=vector_file, **QUICK)
    task.fit(SENTENCES, dev=SENTENCES[:9], out=tmp_path / "tag")
    assert task.scores.value > 0.9
    assert "U.S." in task.coder.lexicon.words and "." in task.coder.lexicon.words
    again = Tag.load(tmp_path / "tag")
    row = ["the", "dog", "Paris", "sat", "!"]  # dog and ! were never met
    (said,), (repeated,) = task.predict([row]), again.predict([row])
    assert said.tags == repeated.tags
    assert said.probabilities == pytest.approx(repeated.probabilities, abs=1e-5)
    assert (tmp_path / "tag" / "elmo" / "sememe.json").exists()
    assert len(again.coder.lexicon.vectors) == 5


def test_a_classifier_learns_is_kept_and_goes_on(elmo, tmp_path):
    longer = {**QUICK, "epochs": 16.0}
    task = Classify(elmo, **longer).fit(OPINIONS, dev=OPINIONS[::3], out=tmp_path / "task")
    assert task.scores.value > 0.9
    again = Classify.load(tmp_path / "task")
    texts = ["a lovely king", "dull!"]
    assert [p.label for p in again.predict(texts)] == [p.label for p in task.predict(texts)]
    further = Classify(tmp_path / "task", **{**longer, "epochs": 4.0}).fit(OPINIONS, dev=OPINIONS)
    assert further.scores.value > 0.9
    wider = {**QUICK, "epochs": 0.0, "steps": 1, "reader_width": 24}
    assert Classify(tmp_path / "task", **wider).fit(OPINIONS).objective.encoder.pool is not None
    finished = Classify(elmo, **longer).fit(
        OPINIONS, dev=OPINIONS[::3], out=tmp_path / "task", resume=True
    )
    assert finished.scores == task.scores


def test_an_ensemble_shares_its_words(elmo, tmp_path):
    from sememe.tasks.trials import fit_trials

    task = fit_trials(
        lambda options: Classify(elmo, **{**QUICK, "epochs": 4.0, **options}),
        [{"seed": 1}, {"seed": 2}], OPINIONS, dev=OPINIONS[::2], out=tmp_path / "both",
        ensemble=True,
    )  # fmt: skip
    again = Classify.load(tmp_path / "both")
    assert len(again.others) == 1
    assert again.evaluate(OPINIONS).value == pytest.approx(task.evaluate(OPINIONS).value)


@pytest.mark.parametrize("task_class", [Pairs, Regress, Choose, Answer])
def test_other_tasks_learn_too(elmo, task_class, tmp_path):
    rows: Any
    if task_class is Pairs:
        second = {"yes": "it is fine", "no": "it is sad"}
        rows = [(text, second[label], label) for text, label in OPINIONS]
    elif task_class is Regress:
        rows = [(text, 1.0 if label == "yes" else -1.0) for text, label in OPINIONS]
    elif task_class is Choose:
        rows = [
            {"text": text, "choices": ["yes it is", "no it is not"], "label": int(label == "no")}
            for text, label in OPINIONS
        ]
    else:
        rows = [
            {
                "question": "where is it", "context": f"the {word} cat sat in {place} there",
                "answers": [{"text": place, "answer_start": len(f"the {word} cat sat in ")}],
            }
            for word in (*GOOD, *BAD) for place in ("Paris", "Rome", "London")
        ]  # fmt: skip
    options = {**QUICK, "epochs": 20.0}
    task = task_class(elmo, **options).fit(rows, dev=rows[::5], out=tmp_path / "task")
    assert task.scores.value > 0.8
    assert task_class.load(tmp_path / "task").evaluate(rows).value > 0.8


def test_what_does_not_fit_is_named(elmo, vector_file, vectors, tmp_path):
    with pytest.raises(OptionError, match="features of ELMo"):
        Classify(elmo, **{**QUICK, "features": "sum-last-four"}).fit(OPINIONS)
    with pytest.raises(OptionError, match="vectors are combined with ELMo"):
        Classify(vectors, **{**QUICK, "vectors": vector_file}).fit(OPINIONS)
    with pytest.raises(OptionError, match="not learned yet"):
        Classify(ELMo("tiny"), **QUICK).fit(OPINIONS)
    with pytest.raises(OptionError, match="not int"):
        Classify(3, **QUICK).fit(OPINIONS)
    with pytest.raises(ArtifactError, match="nothing"):
        Classify(tmp_path / "nothing", **QUICK).fit(OPINIONS)


def roles(verbs=("eats", "sees")) -> str:
    """Sentences with two verbs: who does what depends on the one that is marked."""
    columns = []
    for name in ("king", "cat", "Paris", "Rome"):
        words = ["the", name, verbs[0], "fish", "and", "song", verbs[1], "film"]
        first = ["O", "B-A0", "B-V", "B-A1", "O", "O", "O", "O"]
        second = ["O", "O", "O", "O", "O", "B-A0", "B-V", "B-A1"]
        for place, tags in ((2, first), (6, second)):
            lines = [
                f"{word}\t{'-' if i != place else word}\t{tag}"
                for i, (word, tag) in enumerate(zip(words, tags, strict=True))
            ]
            columns.append("\n".join(lines) + "\n")
    return "\n".join(columns * 3)


@pytest.mark.parametrize("start", ["elmo", "vectors", "bert"])
def test_roles_are_those_of_the_marked_predicate(start, request, tmp_path):
    model = request.getfixturevalue(start)
    rows = tmp_path / "roles.tsv"
    rows.write_text(roles(), encoding="utf-8")
    options = {**QUICK, "epochs": 45.0, "learning_rate": 3e-3 if start == "bert" else 0.02}
    task = Tag(model, predicate_column=2, **options)
    task.fit(str(rows), dev=str(rows), out=tmp_path / "task")
    assert task.scores.value > 0.9
    again = Tag.load(tmp_path / "task")
    words = ["the", "king", "eats", "fish", "and", "song", "sees", "film"]
    said = again.predict([{"words": words, "marks": [word == "sees" for word in words]}])[0]
    assert said.tags[5:] == ("B-A0", "B-V", "B-A1") and said.tags[1:4] == ("O", "O", "O")
    with pytest.raises(InputError, match="no word is marked"):
        again.predict([words])
