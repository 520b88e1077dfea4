"""Models that translate: fit, resume, save, load, Chinese, bad input, what they look at."""

from __future__ import annotations

import json

import numpy as np
import pytest

from recorded_notes import Notes
from stopping import assert_equal

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")
pytest.importorskip("sacrebleu")

import sememe
from sememe.errors import ArtifactError, InputError, OptionError, UnsupportedError, WriteError
from sememe.examples.pair_batches import is_held_out
from sememe.models.translation.model import Seq2Seq, Transformer
from sememe.storage.checkpoints import Checkpoints

SMALL = {
    "num_layers": 1, "width": 32, "num_heads": 2, "vocab_size": 330, "dropout": 0.0,
    "attention_dropout": 0.0, "steps": 12, "batch_size": 256, "workers": 1, "device": "cpu",
    "bleu_pairs": 4, "evaluate_every": 4, "average": 2,
}  # fmt: skip
NOUNS = {"dog": "Hund", "cat": "Kater", "man": "Mann", "bird": "Vogel"}
VERBS = {"runs": "rennt", "sleeps": "schläft", "eats": "frisst"}
PLACES = {"here": "hier", "there": "dort", "today": "heute"}
PAIRS = [
    (f"The {noun} {verb} {place}.", f"{place_de.capitalize()} {verb_de} der {noun_de}.")
    for noun, noun_de in NOUNS.items()
    for verb, verb_de in VERBS.items()
    for place, place_de in PLACES.items()
]
CHINESE = [
    (f"The {noun} {verb}.", f"那{noun_zh}在{verb_zh}。")
    for noun, noun_zh in (("dog", "只狗"), ("man", "个男人"), ("bird", "只鸟"))
    for verb, verb_zh in (("runs", "跑"), ("sleeps", "睡觉"), ("eats", "吃东西"))
]


def model(**options) -> Transformer:
    return Transformer("tiny", **{**SMALL, **options})


def recurrent(**options) -> Seq2Seq:
    own = {name: value for name, value in SMALL.items() if "head" not in name}
    own.pop("attention_dropout")
    return Seq2Seq("tiny", **{**own, "embedding_size": 32, **options})


MAKERS = {"transformer": model, "seq2seq": recurrent}
both = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@pytest.fixture(scope="module")
def learned():
    """A model that has learned the pairs by heart."""
    options = {"steps": 120, "width": 64, "learning_rate": 5e-3, "bleu_pairs": 0, "average": 1}
    return model(**options, batch_size=512).fit(PAIRS, dev=PAIRS[:6])


def test_it_learns_a_language_whose_order_is_turned(learned):
    found = learned.evaluate(PAIRS)
    assert found["bleu"] > 90 and found["chrf"] > 90
    assert "tok:13a" in found["bleu_signature"] and "case:mixed" in found["bleu_signature"]
    assert learned.translate("The dog sleeps today.") == "Heute schläft der Hund."
    greedy = learned.translate([source for source, _ in PAIRS], beam=1)
    assert np.mean([own == target for own, (_, target) in zip(greedy, PAIRS, strict=True)]) > 0.9


@pytest.mark.parametrize(
    ("attention", "context"),
    [("multiplicative", "after"), ("additive", "before"), ("none", "after")],
)
def test_recurrent_layers_learn_it_too(attention, context, tmp_path):
    options = {"width": 64, "embedding_size": 64, "learning_rate": 1e-2, "steps": 200}
    trained = recurrent(
        **options,
        attention=attention,
        context=context,
        batch_size=512,
        bleu_pairs=0,
        average=1,
        evaluate_every=50,
        smoothing=0.0,
    ).fit(PAIRS, dev=PAIRS[:6])
    assert trained.evaluate(PAIRS)["bleu"] > 80
    trained.save(tmp_path / "model")
    opened = sememe.load(tmp_path / "model")
    assert isinstance(opened, Seq2Seq) and opened.config == trained.config
    assert opened.translate(PAIRS[5][0]) == trained.translate(PAIRS[5][0])
    assert trained.embed(["The dog", "a"]).shape == (2, 64)
    if attention == "none":
        assert "attention" not in trained.capabilities
        with pytest.raises(UnsupportedError, match="show its attention"):
            trained.attention("The dog runs here.")
        return
    found = trained.attention("The bird runs today.")
    np.testing.assert_allclose(found.of().sum(1), 1, atol=1e-5)
    assert found.weights_LHTS.shape[:2] == (1, 1)


def test_several_translations_of_a_text(learned):
    (own,) = learned.search(["The cat eats there."], beam=4, n_best=3)
    assert len(own) == 3 and own[0].text == "Dort frisst der Kater."
    assert own[0].score > own[1].score > own[2].score
    assert len({one.text for one in own}) == 3


def test_texts_without_words_and_texts_too_long(learned):
    assert learned.translate(["", "The dog runs here.", " \n"])[::2] == ["", ""]
    with pytest.raises(InputError, match=r"Text 2 has .* tokens"):
        learned.translate(["The dog.", "dog " * 2_000])
    with pytest.raises(OptionError, match="no option beams"):
        learned.translate("x", beams=3)


def test_a_dev_text_that_is_too_long_does_not_cost_the_training():
    dev = [("dog " * 60, "Hund"), *PAIRS[:5]]
    trained = model(max_length=30, length=30, steps=2).fit(PAIRS, dev=dev)
    assert trained.scores["pairs"] == 4
    again = model(max_length=30, length=30, steps=2).fit(PAIRS, dev=dev[:3])
    assert again.scores["pairs"] == 2
    short = [pair for pair in PAIRS if not is_held_out(pair[0], 0.02)]
    held = next(text for i in range(10_000) if is_held_out(text := f"dog {i} " * 60, 0.02))
    alone = model(max_length=30, length=30, steps=2, dev_share=0.02).fit([*short, (held, "Hund")])
    assert not alone.scores


def test_where_it_looks(learned):
    found = learned.attention("The bird runs today.")
    assert found.source == ["The", "bird", "runs", "today", ".", "⟨end⟩"]
    assert found.target == ["Heute", "rennt", "der", "Vogel", ".", "⟨end⟩"]
    np.testing.assert_allclose(found.of().sum(1), 1, atol=1e-5)
    # The first word comes from the fourth, the fourth from the second.
    assert found.of()[0].argmax() == 3 and found.of()[3].argmax() == 1
    given = learned.attention("The bird runs today.", "Hier", tokens=True)
    assert given.target[-1] == "⟨end⟩" and "".join(given.target[:-1]) == "Hier"
    nothing = learned.attention("The bird runs today.", "")
    assert nothing.target == ["⟨end⟩"] and nothing.of().shape == (1, 6)
    with pytest.raises(InputError, match="without words"):
        learned.attention(" ")
    for name in ("layer", "head"):
        with pytest.raises(OptionError, match=f"{name} must be"):
            found.of(**{name: 9})


def test_vectors_of_its_encoder(learned):
    texts = [PAIRS[0][0], PAIRS[20][0], "cat"]
    vectors = learned.embed(texts)
    assert vectors.shape == (3, 64)
    np.testing.assert_allclose(learned.embed(texts[1:2])[0], vectors[1], atol=1e-5)
    assert np.abs(learned.embed(texts, pool="max") - vectors).max() > 0.01
    assert learned.embed([]).shape == (0, 64)
    first, nothing = learned.embed_spans(["The  dog", ""])
    assert first.words == ["The", "dog"] and nothing.words == []
    assert first.starts.tolist() == [0, 5] and first.ends.tolist() == [3, 8]
    assert first.vectors_WD.shape == (2, 64) and nothing.vectors_WD.shape == (0, 64)
    # In context: the same word beside another one has another vector.
    (other,) = learned.embed_words(["The dog runs"])
    assert np.abs(other[1] - first.vectors_WD[1]).max() > 1e-3
    (cut,) = learned.embed_words([["The", "dog"]])
    np.testing.assert_allclose(cut, first.vectors_WD, atol=1e-5)
    (given,) = learned.embed_spans(["The  dog"], [np.array([[5, 8], [3, 5]])])
    np.testing.assert_allclose(given.vectors_WD[0], cut[1], atol=1e-5)
    assert given.is_known_W.tolist() == [True, False] and not given.vectors_WD[1].any()
    (long,) = learned.embed_words(["dog " * 700])  # in windows
    assert len(long) == 700 and np.isfinite(long).all()


@both
def test_layers_of_its_encoder(make):
    own = make(num_layers=2, steps=2, bleu_pairs=0).fit(PAIRS)
    widths = own.layer_widths
    assert len(widths) == 3 and widths[-1] == own.embed(["The dog"]).shape[1]
    for layer, width in enumerate(widths):
        assert own.embed(["The dog", "a"], layers=layer).shape == (2, width)
    np.testing.assert_allclose(own.embed(["The dog"], layers=2), own.embed(["The dog"]), atol=1e-5)
    first = own.embed_words(["a dog runs", "dog"], layers=0)
    assert first[0].shape == (3, widths[0])
    with pytest.raises(OptionError, match="layers must be"):
        own.embed(["The dog"], layers=3)
    with pytest.raises(OptionError, match="cls"):
        own.embed(["The dog"], pool="cls")
    assert own.describe()["layer_widths"] == list(widths) and own.to("cpu") is own


def test_a_folder(learned, tmp_path):
    learned.save(tmp_path / "model")
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert {"model.safetensors", "sememe.json", "tokenizer.json", "history.json"} <= names
    opened = sememe.load(tmp_path / "model")
    assert_equal(opened, learned)
    assert opened.translate(PAIRS[7][0]) == learned.translate(PAIRS[7][0])
    manifest = json.loads((tmp_path / "model" / "sememe.json").read_text(encoding="utf-8"))
    assert manifest["kind"] == "transformer" and manifest["metrics"]["validation_perplexity"] > 1
    with pytest.raises(ArtifactError, match="none"):
        sememe.load(tmp_path / "none")
    (tmp_path / "model" / "sememe.json").write_text('{"kind": "bert"}')
    with pytest.raises(ArtifactError, match="not a transformer"):
        Transformer.load(tmp_path / "model")
    with pytest.raises(WriteError, match="is not a transformer"):
        learned.save(tmp_path / "model")


class _StopError(Exception):
    pass


@both
def test_resume_is_as_never_having_stopped(tmp_path, monkeypatch, make):
    step, options = 6, {"dropout": 0.1, "checkpoint_minutes": 1e-9}
    whole = make(**options).fit(PAIRS, dev=PAIRS[:6])
    write = Checkpoints.write

    def write_and_stop(self, number):
        if number > step:
            raise _StopError
        return write(self, number)

    monkeypatch.setattr(Checkpoints, "write", write_and_stop)
    with pytest.raises(_StopError):
        make(**options).fit(PAIRS, dev=PAIRS[:6], out=tmp_path / "model")
    monkeypatch.undo()
    with pytest.raises(OptionError, match=r"smoothing was 0\.1, is 0\.3"):
        make(**options, smoothing=0.3).fit(
            PAIRS, dev=PAIRS[:6], out=tmp_path / "model", resume=True
        )
    resumed = make(**options).fit(PAIRS, dev=PAIRS[:6], out=tmp_path / "model", resume=True)
    assert_equal(whole, resumed)
    assert resumed.scores == whole.scores
    losses = [[record.get("loss") for record in own.history] for own in (whole, resumed)]
    assert losses[0] == losses[1]
    again = make(**options).fit(PAIRS, dev=PAIRS[:6], out=tmp_path / "model", resume=True)
    assert_equal(again, resumed)  # finished already
    assert whole.precision == resumed.precision == again.precision == "fp32"


@both
def test_parts_of_a_step_add_up_to_it(make):
    whole, parts = (
        # A gradient that is nothing but rounding, such as that of a key's bias, stays small so.
        make(accumulate=accumulate, steps=4, epsilon=1e-4).fit(PAIRS, dev=False)
        for accumulate in (1, 4)
    )
    for name, value in whole.network.state_dict().items():
        theirs = parts.network.state_dict()[name]
        np.testing.assert_allclose(value, theirs, atol=2e-4, err_msg=name)


@pytest.mark.parametrize("pieces", ["bpe", "wordpiece"])
def test_chinese(pieces, tmp_path):
    options = {"steps": 100, "width": 64, "learning_rate": 5e-3, "lowercase": True, "average": 1}
    trained = model(**options, pieces=pieces, vocab_size=500, bleu_pairs=9).fit(
        CHINESE, dev=CHINESE
    )
    assert trained.scores["bleu"] > 80 and "tok:zh" in trained.scores["bleu_signature"]
    assert trained.translate("The man sleeps.") == "那个男人在睡觉。"
    trained.save(tmp_path / "model")
    assert Transformer.load(tmp_path / "model").translate("THE MAN SLEEPS.") == "那个男人在睡觉。"
    found = trained.attention("The dog runs.")
    assert "狗" in "".join(found.target) and len(found.target) > 4  # by pieces, not as one word


def test_pairs_are_held_out_where_no_dev_pairs_are_given():
    notes = Notes()
    trained = model(dev_share=0.2).fit(PAIRS, progress=notes)
    assert "are held out" in notes
    assert trained.history.last()["validation_perplexity"] > 1
    assert trained.scores["pairs"] == 4


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: Transformer("giant"), OptionError, "preset must be one of tiny, small"),
        (lambda: model(smoothing=2), OptionError, "smoothing"),
        (lambda: model(nothing=1), OptionError, "no option nothing"),
        (lambda: model(length=3).fit(PAIRS), InputError, "No pair is left"),
        (lambda: model().fit([]), InputError, "no pairs"),
        (lambda: model().fit(PAIRS, resume=True), OptionError, "`out`"),
        (lambda: model(patience=2).fit(PAIRS, dev=False), OptionError, "patience needs dev"),
        (lambda: model().translate("x"), OptionError, "call fit"),
        (lambda: model().save("x"), OptionError, "call fit"),
    ],
)
def test_what_is_wrong(call, error, says):
    with pytest.raises(error, match=says):
        call()
