"""Words of a domain become tokens of a BERT that is continued, and old text is repeated."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from recorded_notes import Notes
from sememe import BERT
from sememe.errors import InputError, OptionError
from sememe.models.bert.new_words import most_saving, with_words
from stopping import assert_equal

OLD = [
    "a very big lazy fox jumps over my vast wall",
    "the king sees the queen in the old castle",
    "the queen has a horse",
    "猫坐在垫子上",
] * 30
NEW = ["the ndarray of the king has an eigenvalue", "an eigenvalue of the ndarray", "狗在街上"] * 30
QUICK = {
    "steps": 3, "batch_size": 4, "length": 24, "device": "cpu", "workers": 1, "compile": "no",
    "checkpoint_minutes": 0.0, "validation_share": 0.2, "next_sentence": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert") / "base"
    sizes = {"num_layers": 2, "width": 32, "num_heads": 2, "max_length": 32, "vocab_size": 170}
    BERT("tiny", **sizes, **QUICK).fit(OLD, out=folder)
    return folder


def test_words_are_chosen_by_the_tokens_that_they_save(base):
    tokenizer = BERT.load(base).tokenizer
    counts = Counter({"ndarray": 50, "eigenvalue": 60, "the": 900, "rare": 4, "12345": 90})
    new = most_saving(counts, tokenizer, 2)
    sizes = {word: len(tokenizer.pieces_of(word)) for word in counts}
    saved = {word: counts[word] * (sizes[word] - 1) for word in ("ndarray", "eigenvalue")}
    assert new.words == sorted(saved, key=lambda word: -saved[word])
    assert new.num_saved == sum(saved.values())
    assert new.num_tokens == sum(counts[word] * sizes[word] for word in counts)
    with pytest.raises(InputError, match="nothing to add"):
        most_saving(Counter({"the": 900, "rare": 4}), tokenizer, 2)


def test_vectors_start_as_the_mean_of_the_pieces(base):
    model = BERT.load(base)
    grown = with_words(model, ["ndarray", "狗"])
    assert grown.tokenizer.encode("the ndarray 狗").ids.tolist()[1:] == [
        grown.tokenizer.id("ndarray"), grown.tokenizer.id("狗")
    ]  # fmt: skip
    for name in ("embedding.tokens.weight", "masked_bias"):
        before, after = (own.network.state_dict()[name].numpy() for own in (model, grown))
        pieces = model.tokenizer.pieces_of("ndarray")
        own = after[grown.tokenizer.id("ndarray")]
        np.testing.assert_allclose(own, before[pieces].mean(0), atol=1e-6)
        np.testing.assert_array_equal(after[: len(model.tokenizer)], before[: len(model.tokenizer)])
    text = "the king [MASK] the queen"
    old, new = (own.fill(text, top=3)[0] for own in (model, grown))
    assert [guess.token for guess in new if len(guess.token) < 7][:1] == [old[0].token]


def test_the_folder_opens_in_transformers(base, tmp_path):
    transformers = pytest.importorskip("transformers")
    model = BERT(pretrained=base, add_words="2", **QUICK)
    notes = Notes()
    model.fit(NEW, out=tmp_path / "domain", progress=notes)
    assert "2 new words are tokens now" in notes and "fewer tokens" in notes
    again, theirs = (
        BERT.load(tmp_path / "domain"),
        transformers.AutoTokenizer.from_pretrained(tmp_path / "domain"),
    )
    text = "the ndarray has an eigenvalue"
    assert theirs.tokenize(text) == [again.tokenizer.token(i) for i in again.token_ids([text])[0]]
    assert {"ndarray", "eigenvalue"} <= {*theirs.tokenize(text)}
    assert again.tokenizer.vocab_size == len(BERT.load(base).tokenizer) + 2
    # A finished run is known again, and the original is not grown twice.
    same = BERT(pretrained=base, add_words="2", **QUICK)
    same.fit(NEW, out=tmp_path / "domain", resume=True, progress=notes)
    assert "finished already" in notes
    assert_equal(same, again)


def test_words_of_a_file_and_what_cannot_be_added(base, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("Eigenvalue\nthe\n狗\n心肌梗死\n\n", encoding="utf-8")
    notes = Notes()
    model = BERT(pretrained=base, add_words=str(words), **QUICK).fit(NEW, progress=notes)
    assert "eigenvalue" in model.tokenizer and "狗" in model.tokenizer
    assert "2 lines are tokens already or several words" in notes
    words.write_text("心肌梗死\n", encoding="utf-8")
    for wanted, what, error in (
        (str(words), "Chinese character", InputError), ("nowhere.txt", "nowhere.txt", InputError),
        ("0", "1 to", OptionError),
    ):  # fmt: skip
        with pytest.raises(error, match=what):
            BERT(pretrained=base, add_words=wanted, **QUICK).fit(NEW)
    with pytest.raises(OptionError, match="--from"):
        BERT(add_words="3", **QUICK).fit(NEW)
    with pytest.raises(OptionError, match="lora"):
        BERT(pretrained=base, add_words="3", lora=2, **QUICK).fit(NEW)


def test_old_text_is_repeated_in_its_share_and_validated_by_itself(base, tmp_path):
    old = tmp_path / "old.txt"
    old.write_text("\n\n".join(OLD), encoding="utf-8")
    options = {**QUICK, "steps": 2, "replay": str(old), "replay_share": 0.4}
    model = BERT(pretrained=base, **options).fit(NEW, out=tmp_path / "both")
    assert model.languages == {"domain": 0.6, "replay": 0.4}
    last = model.history.last()
    assert {"validation_domain_masked_loss", "validation_replay_masked_loss"} <= {*last}
    assert BERT.load(tmp_path / "both").domain.replay_share == 0.4
    with pytest.raises(OptionError, match="--from"):
        BERT(replay=str(old), **QUICK).fit(NEW)
    with pytest.raises(OptionError, match="replay"):
        BERT(pretrained=base, replay_share=0.9, **QUICK)
    with pytest.raises(OptionError, match="one text"):
        BERT(pretrained=base, replay=str(old), **QUICK).fit({"en": NEW, "zh": OLD})


def test_word_perplexity_masks_the_same_words_for_every_vocabulary(base):
    model = BERT.load(base)
    grown = with_words(model, ["ndarray", "eigenvalue"])
    found = [own.word_perplexity(NEW) for own in (model, grown)]
    assert found[0].num_words == found[1].num_words > 20
    long = [own.word_perplexity([" ".join(NEW * 3)]).num_words for own in (model, grown)]
    assert long[0] == long[1] > 100  # also where the rows of one vocabulary are too long
    short = model.word_perplexity([" ".join(NEW * 3)], num_words=300).num_words
    assert 0 < short < long[0] / 2  # the limit holds within a document
    assert found[0].perplexity == pytest.approx(np.exp(found[0].loss))
    # Nothing of OLD is written otherwise by the grown tokenizer, whose new tokens get some chance.
    both = [own.word_perplexity(OLD).loss for own in (model, grown)]
    assert both[0] < both[1] < both[0] + 0.2
    with pytest.raises(InputError, match="too short"):
        model.word_perplexity(OLD, num_words=0)
