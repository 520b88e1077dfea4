"""Word vectors under a head: means, readers and words never seen, against plain formulas."""

import numpy as np
import pytest
import torch

import sememe
from sememe import OneHot
from sememe.errors import OptionError
from sememe.examples.batches import TokenSequence
from sememe.models.static.encoder import text_of
from sememe.nn.encoders import inputs_of
from sememe.nn.word_encoder import BETWEEN_ID, NUM_MARKS, START_ID, WordCoder, WordEncoder
from sememe.tasks.answer import Answer
from sememe.tasks.classify import Classify, Pairs
from sememe.tasks.tag import Tag
from sememe.tasks.texts import Choose, Regress
from sememe.text.settings import TextSettings
from sememe.vectors import WordVectors
from sememe.vectors.lexicon import Lexicon
from sememe.vectors.onehot import OneHotVectors
from sememe.vectors.subwords import SubwordVectors

GOOD = ["good", "fine", "great", "lovely"]
BAD = ["bad", "poor", "awful", "sad"]
OTHERS = ["the", "film", "was", "a", "and", "very", "day", "Paris", "天气", "很", "好", "坏"]
WORDS = GOOD + BAD + OTHERS


@pytest.fixture
def vectors() -> WordVectors:
    """Words of which good and bad ones lie on two sides."""
    rng = np.random.default_rng(2)
    rows = rng.normal(0, 0.3, (len(WORDS), 12))
    rows[:4, 0] += 2
    rows[4:8, 0] -= 2
    return WordVectors(WORDS, rows)


@pytest.fixture
def subword_vectors() -> SubwordVectors:
    table = np.random.default_rng(3).normal(0, 1, (len(WORDS) + 200, 12)).astype(np.float32)
    return SubwordVectors(WORDS, table, minn=2, maxn=4, bucket=200)


def coder_of(vectors, length=32, **settings) -> WordCoder:
    return WordCoder(Lexicon(vectors), TextSettings(**settings), length)


def encoder_of(coder, reads, **options) -> WordEncoder:
    encoder = WordEncoder(coder.lexicon, reads=reads, dropout=0.0, **options)
    encoder.initialise(torch.Generator().manual_seed(1))
    encoder.learn_words(len(coder.lexicon), torch.Generator().manual_seed(1))
    return encoder


def framed(coder, first, second=None) -> TokenSequence:
    ids = [encoding.ids for encoding in coder.encode([first] + ([second] if second else []))]
    return coder.frame(*ids).sequence


# ---- coder ---------------------------------------------------------------------------------


def test_words_know_their_places_and_case_is_matched(vectors):
    coder = coder_of(vectors, lowercase=False)
    text = "Was the film GOOD? Paris: “unseen-word”!"
    (encoding,) = coder.encode([text])
    words = [coder.lexicon.words[number - NUM_MARKS] for number in encoding.ids]
    assert words == ["was", "the", "film", "good", "Paris", "unseen", "word"]
    places = zip(encoding.starts, encoding.ends, strict=True)
    assert [text[a:b] for a, b in places] == [
        "Was", "the", "film", "GOOD", "Paris", "unseen", "word",
    ]  # fmt: skip
    again, marks, empty = coder.encode([text, "?!", ""])
    assert again.ids.tolist() == encoding.ids.tolist()
    assert len(marks.ids) == 2 and len(empty.ids) == 0


def test_chinese_words_are_cut_and_placed(vectors):
    coder = coder_of(vectors, language="zh")
    text = "北京的天气很好，Ｐａｒｉｓ😀"
    (encoding,) = coder.encode([text])
    words = [coder.lexicon.words[number - NUM_MARKS] for number in encoding.ids]
    assert "天气" in words and "paris" in words
    for word, start, end in zip(words, encoding.starts, encoding.ends, strict=True):
        assert text[start:end] == word or word == "paris"


def test_frames_mark_texts_and_cut_the_longer(vectors):
    coder = coder_of(vectors, length=6)
    first, second = (encoding.ids for encoding in coder.encode(["the film", "a very sad bad day"]))
    framed = coder.frame(first, second)
    ids, segments = framed.sequence
    assert ids[0] == START_ID and ids[3] == BETWEEN_ID and len(ids) == 6 and framed.cut
    assert segments.tolist() == [0, 0, 0, 1, 1, 1] and framed.starts == (1, 4)
    assert ids[framed.starts[1] :].tolist() == second[:2].tolist()


def test_settings_are_told_or_guessed(vectors, tmp_path):
    vectors.save(tmp_path / "v")
    assert text_of(vectors) == text_of(sememe.load(tmp_path / "v"))
    assert text_of(vectors).language == "en" and not text_of(vectors).lowercase
    chinese = WordVectors(["天气", "很", "好"], np.eye(3))
    assert text_of(chinese).language == "zh"
    told = OneHot(min_count=1).fit([["天气", "好"]], language="de")
    assert text_of(told) == told.text and told.text.language == "de"
    told.save(tmp_path / "told")
    assert text_of(sememe.load(tmp_path / "told")) == told.text


# ---- encoder -------------------------------------------------------------------------------


def directions(vectors, words, taught=None):
    """Words as a reader sees them: from the middle of those it was taught, of one length."""
    center = np.mean([vectors[word] for word in taught or words], 0)
    apart = {word: vectors[word] - center for word in words}
    return {word: row / np.sqrt(np.square(row).mean()) for word, row in apart.items()}


def test_a_text_is_the_mean_of_its_words(vectors):
    coder = coder_of(vectors)
    sequences = [framed(coder, "the film was good"), framed(coder, "bad unseen")]
    encoder = encoder_of(coder, "text")
    inputs = inputs_of(sequences)
    tokens_ND = encoder.tokens(inputs)
    means_BD = encoder.sequences(tokens_ND, inputs)
    apart = directions(vectors, ["the", "film", "was", "good", "bad"])
    expected = np.mean([apart[word] for word in ("the", "film", "was", "good")], 0)
    np.testing.assert_allclose(means_BD[0].detach(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(means_BD[1].detach(), apart["bad"] / 2, rtol=1e-5)


def test_two_texts_are_compared_and_an_empty_one_is_zero(vectors):
    coder = coder_of(vectors)
    first, second = (encoding.ids for encoding in coder.encode(["good", "sad day"]))
    empty = np.empty(0, np.int32)
    sequences = [coder.frame(first, second).sequence, coder.frame(first, empty).sequence]
    encoder = encoder_of(coder, "texts")
    inputs = inputs_of(sequences)
    both_BD = encoder.sequences(encoder.tokens(inputs), inputs).detach().numpy()
    apart = directions(vectors, ["good", "sad", "day"])
    u, v = apart["good"], (apart["sad"] + apart["day"]) / 2
    expected = np.concatenate([u, v, abs(u - v), u * v])
    np.testing.assert_allclose(both_BD[0], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(both_BD[1], np.concatenate([u, 0 * u, abs(u), 0 * u]), rtol=1e-5)
    assert encoder.width == both_BD.shape[1] == 48


def plain_question(encoder, ids, segments):
    """What a CrossReader makes of one sequence, without padding and batches."""
    reader = encoder.reader
    x_TD = encoder.look_up(torch.from_numpy(ids.astype(np.int64)))
    is_word = np.array([word_id not in (START_ID, BETWEEN_ID) for word_id in ids])
    keys_TD = x_TD @ reader.align.weight.T + reader.align.bias
    seen = []
    for t in range(len(ids)):
        others = np.flatnonzero(is_word & (segments != segments[t]))
        scores = torch.stack([keys_TD[t] @ keys_TD[s] for s in others]) / keys_TD.shape[1] ** 0.5
        shares = torch.softmax(scores, 0)
        aligned = sum(share * x_TD[s] for share, s in zip(shares, others, strict=True))
        marks = torch.tensor([float(ids[t] in ids[others]), float(segments[t] == 0)])
        compared = [x_TD[t], aligned, (x_TD[t] - aligned).abs(), x_TD[t] * aligned]
        seen.append(torch.relu(reader.compare(torch.cat([*compared, marks]))))
    read, _ = reader.lstm.lstm(torch.stack(seen)[None])
    asked = read[0][torch.from_numpy(is_word & (segments == 0))].mean(0)
    return torch.cat([read[0], read[0] * asked], 1)


def test_question_attention_equals_the_plain_one_values_and_gradients(vectors):
    coder = coder_of(vectors)
    pairs = [("was the day", "the film was a good day"), ("unseen", "very sad unseen film")]
    sequences = [framed(coder, *pair) for pair in pairs]
    encoder = encoder_of(coder, "question", reader_width=5)
    torch.nn.init.normal_(encoder.added_WD, std=0.3)
    torch.nn.init.normal_(encoder.marks.weight, std=0.3)
    inputs = inputs_of(sequences)
    weights = torch.randn(sum(inputs.lengths), encoder.width)

    def gradients(outputs):
        encoder.zero_grad()
        (outputs * weights).sum().backward()
        return {name: p.grad.clone() for name, p in encoder.named_parameters()}

    batched = encoder.tokens(inputs)
    one_by_one = torch.cat([plain_question(encoder, *own) for own in sequences])
    torch.testing.assert_close(batched, one_by_one, rtol=1e-4, atol=1e-5)
    fast, plain = gradients(batched), gradients(one_by_one)
    for name in fast:
        torch.testing.assert_close(fast[name], plain[name], rtol=1e-3, atol=1e-5)
    assert fast["added_WD"].abs().sum() > 0 and fast["marks.weight"].abs().sum() > 0


def test_an_empty_question_gives_finite_numbers(vectors):
    coder = coder_of(vectors)
    (context,) = coder.encode(["the film"])
    encoder = encoder_of(coder, "question", reader_width=3)
    inputs = inputs_of([coder.frame(np.empty(0, np.int32), context.ids).sequence])
    assert torch.isfinite(encoder.tokens(inputs)).all()


def test_what_is_added_learns_as_the_vectors_themselves_would(vectors):
    coder = coder_of(vectors)
    sequence = framed(coder, "good good film")
    encoder = encoder_of(coder, "text")
    inputs = inputs_of([sequence])
    encoder.sequences(encoder.tokens(inputs), inputs).sum().backward()
    gradient = {w: encoder.added_WD.grad[i] for i, w in enumerate(coder.lexicon.words)}
    assert torch.allclose(gradient["good"], torch.full((12,), 2 / 3))
    assert torch.allclose(gradient["film"], torch.full((12,), 1 / 3))
    frozen = encoder_of(coder, "text", is_frozen=True)
    assert not len(frozen.added_WD) and frozen.marks.weight.requires_grad


def test_words_never_seen_have_subword_vectors_or_a_learned_one(vectors, subword_vectors):
    for own, is_known in ((subword_vectors, True), (vectors, False)):
        coder = coder_of(own)
        framed(coder, "good film")
        encoder = encoder_of(coder, "words")
        torch.nn.init.ones_(encoder.marks.weight)
        inputs = inputs_of([framed(coder, "goodness filmic")])  # met after the words were learned
        rows_ND = encoder.tokens(inputs).detach().numpy()[1:]
        if is_known:
            apart = directions(own, ["goodness", "filmic"], ["good", "film"])
            expected = np.stack([apart["goodness"], apart["filmic"]])
            np.testing.assert_allclose(rows_ND, expected, rtol=1e-5)
        else:
            assert (rows_ND == 1).all()


def test_one_hot_words_learn_a_matrix(vectors):
    coder = coder_of(OneHotVectors(WORDS))
    sequence = framed(coder, "good film")
    encoder = encoder_of(coder, "text", is_frozen=True)
    assert encoder.added_WD.shape == (2, encoder.width) and encoder.added_WD.requires_grad
    inputs = inputs_of([sequence])
    one_hot_2W = torch.eye(2)
    expected = (one_hot_2W @ encoder.added_WD).mean(0)
    torch.testing.assert_close(encoder.sequences(encoder.tokens(inputs), inputs)[0], expected)


# ---- tasks ---------------------------------------------------------------------------------


def reviews(num=60):
    rng = np.random.default_rng(5)
    rows = []
    for index in range(num):
        words = GOOD if index % 2 else BAD
        text = f"the {rng.choice(OTHERS[:6])} film was {rng.choice(words)} and {rng.choice(words)}"
        rows.append((text, "+" if index % 2 else "-"))
    return rows


@pytest.mark.parametrize(
    "options", [{}, {"freeze": True}, {"reader_width": 6, "learning_rate": 0.03}]
)
def test_classify(vectors, tmp_path, options):
    rows = reviews()
    task = Classify(vectors, epochs=8, batch_size=4, **options).fit(rows[:48], dev=rows[48:])
    assert task.scores.metrics["accuracy"] == 1.0
    task.save(tmp_path / "task")
    again = Classify.load(tmp_path / "task")
    texts = [text for text, _ in rows] + ["wholly unseen words", "!!!"]
    assert again.predict(texts) == task.predict(texts)
    unseen = [("the very day was lovely", "+"), ("Paris was poor", "-")]
    assert again.evaluate(unseen).metrics["accuracy"] == 1.0


def test_the_same_seed_gives_the_same_task_and_resume_knows_the_vectors(vectors, tmp_path):
    rows = reviews()
    options = {"epochs": 2, "batch_size": 8, "seed": 3}
    first = Classify(vectors, **options).fit(rows, dev=False, out=tmp_path / "a")
    second = Classify(vectors, **options).fit(rows, dev=False)
    assert first.predict(rows) == second.predict(rows)
    other = WordVectors(WORDS, vectors.vectors + 1)
    assert first.plan == second.plan
    assert first.plan != Classify(other, **options).fit(rows, dev=False).plan


def test_pairs_regress_and_choose(vectors):
    pairs = [(a, b, "same" if (a in GOOD) == (b in GOOD) else "other")
             for a in GOOD + BAD for b in GOOD + BAD]  # fmt: skip
    task = Pairs(vectors, epochs=12, batch_size=8, reader_width=0).fit(pairs, dev=False)
    assert task.evaluate(pairs).metrics["accuracy"] > 0.95
    scores = [(text, 5.0 if label == "+" else 0.0) for text, label in reviews()]
    fitted = Regress(vectors, epochs=20, batch_size=8).fit(scores, dev=False)
    assert fitted.evaluate(scores).metrics["pearson"] > 0.9
    choices = [(text, ["good", "bad"], "0" if label == "+" else "1") for text, label in reviews()]
    chosen = Choose(vectors, epochs=20, batch_size=8).fit(choices, dev=False)
    assert chosen.evaluate(choices).metrics["accuracy"] > 0.95


def test_tag_in_english_and_chinese(vectors, tmp_path):
    # Whether a day is good decides the tag of the word before: a word alone cannot tell.
    rows = [(["the", word, "day", "!"], ["O", "B-X" if word in GOOD else "O", "O", "O"])
            for word in GOOD + BAD]  # fmt: skip
    rows += [(["天", "气", "好"], ["B-Y", "I-Y", "O"])]
    task = Tag(vectors, epochs=40, batch_size=2, reader_width=8, learning_rate=0.02, dropout=0)
    task.fit(rows, dev=False, out=tmp_path / "tags")
    assert task.evaluate(rows).metrics["f1"] == 1.0
    again = Tag.load(tmp_path / "tags")
    (found,) = again.predict([["a", "great", "day"]])
    assert found.tags == task.predict([["a", "great", "day"]])[0].tags
    assert found.words == ("a", "great", "day")


def test_answers_are_exact_spans(vectors, tmp_path):
    names = ["Paris", "unseen", "other", "天气"]
    contexts = [(a, b, x, y) for a in names for b in names if a != b for x in GOOD for y in BAD]
    rows = [
        {"id": f"{i}{k}", "question": f"How was {asked}?", "context": f"{a} was {x}, {b} was {y}.",
         "answers": [x if asked == a else y]}
        for i, (a, b, x, y) in enumerate(contexts) for k, asked in enumerate((a, b))
    ]  # fmt: skip
    task = Answer(vectors, epochs=5, batch_size=16, reader_width=16, learning_rate=0.01)
    task.fit(rows[:300], dev=False, out=tmp_path / "qa")
    assert task.evaluate(rows[300:]).metrics["exact"] > 0.95
    again = Answer.load(tmp_path / "qa")
    (said,) = again.predict(
        [{"question": "How was zzz?", "context": "Paris was sad, zzz was fine."}]
    )
    assert said.text == "Paris was sad, zzz was fine."[said.start : said.end] == "fine"


def test_one_task_goes_on_from_another(vectors):
    rows = reviews()
    first = Classify(vectors, epochs=8, batch_size=8).fit(rows, dev=False)
    more = [
        (f"{word} again", label) for words, label in ((GOOD, "+"), (BAD, "-")) for word in words
    ]
    second = Classify(first, epochs=1, batch_size=4, learning_rate=1e-5).fit(more, dev=False)
    assert second.evaluate(more).metrics["accuracy"] == 1.0  # it knew before
    assert len(second.objective.encoder.added_WD) > len(first.objective.encoder.added_WD)


def test_an_ensemble_shares_its_words(vectors, tmp_path):
    from sememe.tasks.trials import fit_trials

    rows = reviews()
    task = fit_trials(
        lambda options: Classify(vectors, epochs=2, batch_size=8, **options),
        [{"seed": 1}, {"seed": 2}], rows, ensemble=True, out=tmp_path / "two",
    )  # fmt: skip
    again = Classify.load(tmp_path / "two")
    texts = ["a brand new text", "the film was good"]
    assert len(again.others) == 1 and again.predict(texts) == task.predict(texts)


def test_options_that_word_vectors_cannot_have(vectors):
    for options in ({"features": "last"}, {"lm_weight": 0.5}):
        with pytest.raises(OptionError, match="Word vectors have no layers"):
            Classify(vectors, **options).fit(reviews(), dev=False)
