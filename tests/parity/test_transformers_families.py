"""RoBERTa, XLM-R, DistilBERT, ELECTRA, ALBERT and ModernBERT beside those of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("tokenizers")

from families import CORPUS, FAMILIES, write
from peers import assert_equal_gradients

import sememe
from sememe.errors import ArtifactError, OptionError, SememeError, UnsupportedError
from sememe.examples.batches import Batch
from sememe.nn.rows import bert_inputs
from sememe.tokens.subwords.store import open_or_build_subwords
from sememe.tokens.subwords.tokenizer import SubwordTokenizer

TEXTS = ["the old cat sat", "a dog ran over the mat, the old mat.", "猫坐在垫子上"]


@pytest.fixture(params=FAMILIES, name="family", scope="module")
def family_fixture(request) -> str:
    return request.param


@pytest.fixture(name="opened", scope="module")
def opened_fixture(family, tmp_path_factory) -> tuple[Path, Any, Any]:
    folder = tmp_path_factory.mktemp(family)
    peer = write(family, folder)
    return folder, peer, sememe.load(folder)


def tokenized(folder: Path, *texts: Any) -> Any:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return tokenizer(*texts, padding=True, return_tensors="pt")


def assert_near(found: Any, wanted: Any) -> None:
    torch.testing.assert_close(torch.as_tensor(found), wanted, atol=1e-5, rtol=1e-5)


def test_layers_attention_and_logits_equal_theirs(opened):
    folder, peer, model = opened
    inputs = tokenized(folder, TEXTS)
    is_token = inputs["attention_mask"].bool()
    with torch.no_grad():
        theirs = peer(**inputs, output_hidden_states=True, output_attentions=True)
        own = inputs["input_ids"], inputs.get("token_type_ids"), is_token.sum(1)
        layers, maps = model.network.layers(*own), model.network.maps(*own)
        logits = model.network.masked_logits(model.network(*own))
    for mine, other in zip(layers, theirs.hidden_states, strict=True):
        assert_near(mine[is_token], other[is_token])
    for mine, other in zip(maps, theirs.attentions, strict=True):
        rows = is_token[:, None, :].expand(mine.shape[:3])
        assert_near(mine[rows], other[rows])
    assert_near(logits[is_token], theirs.logits[is_token])


def test_embed_and_attention_of_texts_equal_theirs(opened):
    folder, peer, model = opened
    inputs = tokenized(folder, TEXTS)
    with torch.no_grad():
        hidden = peer(**inputs, output_hidden_states=True).hidden_states[-1]
        pair = tokenized(folder, [TEXTS[0]], [TEXTS[1]])
        maps = peer(**pair, output_attentions=True).attentions
    mask = inputs["attention_mask"][..., None]
    assert_near(model.embed(TEXTS), (hidden * mask).sum(1) / mask.sum(1))
    assert_near(model.embed(TEXTS, pool="cls"), hidden[:, 0])
    found = model.attention(TEXTS[0], TEXTS[1])
    assert_near(found.weights_LHTS, torch.stack(maps)[:, 0])


def test_fill_gives_their_probabilities(opened, family):
    folder, peer, model = opened
    inputs = tokenized(folder, [f"the old {model.tokenizer.token(model.tokenizer.mask_id)} sat"])
    (place,) = torch.nonzero(inputs["input_ids"][0] == model.tokenizer.mask_id).flatten().tolist()
    with torch.no_grad():
        wanted = peer(**inputs).logits[0, place].softmax(-1)
    (found,) = model.fill("the old [MASK] sat", top=5)
    for guess in found:
        assert guess.probability == pytest.approx(wanted[guess.token_id].item(), abs=1e-5)
    wanted[list(model.tokenizer.special_ids)] = 0
    assert [guess.token_id for guess in found] == wanted.topk(5).indices.tolist()


def test_a_saved_model_opens_with_the_same_outputs(opened, family, tmp_path):
    folder, peer, model = opened
    model.save(tmp_path / "again")
    again, told = transformers.AutoModelForMaskedLM.from_pretrained(
        tmp_path / "again", output_loading_info=True
    )
    assert not any(told.values()), told
    assert type(again) is type(peer)
    inputs, theirs = tokenized(tmp_path / "again", TEXTS), tokenized(folder, TEXTS)
    assert inputs.keys() == theirs.keys()
    assert torch.equal(inputs["input_ids"], theirs["input_ids"])
    is_token = inputs["attention_mask"].bool()
    with torch.no_grad():
        found, wanted = again.eval()(**inputs).logits, peer(**theirs).logits
    assert_near(found[is_token], wanted[is_token])
    reopened = sememe.load(tmp_path / "again")
    np.testing.assert_array_equal(reopened.embed(TEXTS), model.embed(TEXTS))
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        assert getattr(again.config, name) == getattr(peer.config, name)


def test_a_step_of_training_has_their_gradients(opened):
    folder, _, _ = opened
    peer = transformers.AutoModelForMaskedLM.from_pretrained(folder, attn_implementation="eager")
    inputs = tokenized(folder, TEXTS)
    ids, lengths = inputs["input_ids"].numpy(), inputs["attention_mask"].sum(1).numpy()
    hidden = np.array([1, 2, ids.shape[1] + 3])
    labels = np.full(ids.size, -100)
    labels[hidden] = [7, 8, 9]
    peer.eval()(**inputs, labels=torch.from_numpy(labels.reshape(ids.shape))).loss.backward()
    network = sememe.load(folder).network
    batch = Batch(
        ids_BT=ids.astype(np.int32), lengths_B=lengths.astype(np.int32),
        num_tokens=int(lengths.sum()), hidden_N=hidden,
        targets_N=np.array([7, 8, 9], np.int32),
    )  # fmt: skip
    network.loss(bert_inputs(batch))[0].backward()
    network.train_heads({"masked head"})
    assert_equal_gradients(network, peer)


ROWS = [{"text": text, "label": "cat" if "cat" in text else "none"} for text in TEXTS * 4]
TAGS = [(["the", "old", "cat"], ["O", "O", "B-PET"]), (["a", "dog"], ["O", "B-PET"])] * 4
OPTIONS = {"steps": 4, "batch_size": 4, "length": 24, "device": "cpu", "workers": 1}


@pytest.mark.parametrize("task", ["Classify", "Tag", "Pairs"])
def test_a_fine_tuned_family_is_saved_and_opened(opened, family, task, tmp_path):
    _, _, model = opened
    rows: Any = {
        "Classify": ROWS, "Tag": TAGS, "Pairs": [row | {"second": "the mat"} for row in ROWS],
    }[task]  # fmt: skip
    tuned = getattr(sememe, task)(model, **OPTIONS).fit(rows, dev=False)
    tuned.save(tmp_path / "tuned")
    again = sememe.load(tmp_path / "tuned")
    asked: Any = {
        "Classify": TEXTS, "Tag": [["the", "old", "cat"]], "Pairs": [("the cat", "the mat")],
    }[task]  # fmt: skip
    for mine, other in zip(again.predict(asked), tuned.predict(asked), strict=True):
        found, wanted = mine.probabilities, other.probabilities
        if task == "Tag":
            assert mine.tags == other.tags
            found, wanted = (dict(enumerate(own)) for own in (found, wanted))
        assert found == pytest.approx(wanted, abs=1e-5)
    body = transformers.AutoModel.from_pretrained(tmp_path / "tuned").eval()
    inputs = tokenized(tmp_path / "tuned", TEXTS)
    with torch.no_grad():
        hidden = body(**inputs).last_hidden_state[:, 0]
    network = again.backbone.encoder.network
    own = inputs["input_ids"], inputs.get("token_type_ids"), inputs["attention_mask"].sum(1)
    with torch.no_grad():
        assert_near(network(*own)[:, 0], hidden)


def test_vocabulary_files_alone_are_read(tmp_path):
    write("roberta", tmp_path)
    whole = sememe.load(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    (tmp_path / "vocab.json").write_text(json.dumps(content["model"]["vocab"]))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    (tmp_path / "tokenizer.json").unlink()
    alone = sememe.load(tmp_path)
    np.testing.assert_array_equal(alone.embed(TEXTS), whole.embed(TEXTS))
    text = "the old [MASK] sat"
    assert alone.fill(text) == whole.fill(text) == whole.fill("the old <mask> sat")


def test_what_a_folder_lacks_is_said(tmp_path):
    write("albert", tmp_path / "albert")
    (tmp_path / "albert" / "tokenizer.json").rename(tmp_path / "albert" / "spiece.model")
    with pytest.raises(ArtifactError, match=r"spiece\.model.*tokenizer\.json"):
        sememe.load(tmp_path / "albert")
    write("modernbert", tmp_path / "modern")
    config = tmp_path / "modern" / "config.json"
    content = json.loads(config.read_text())
    for field, value in (("mlp_bias", True), ("hidden_activation", "silu")):
        config.write_text(json.dumps(content | {field: value}))
        with pytest.raises(SememeError, match=str(value)):
            sememe.load(tmp_path / "modern")


def test_a_discriminator_has_no_masked_head(tmp_path):
    peer = write("electra", tmp_path, "AutoModelForPreTraining")
    model = sememe.load(tmp_path)
    with pytest.raises(UnsupportedError, match="masked head"):
        model.fill("the [MASK]")
    inputs = tokenized(tmp_path, TEXTS)
    with torch.no_grad():
        hidden = peer.electra(**inputs).last_hidden_state
    assert_near(model.embed(TEXTS, pool="cls"), hidden[:, 0])
    model.save(tmp_path / "again")
    again = transformers.AutoModel.from_pretrained(tmp_path / "again").eval()
    with torch.no_grad():
        assert_near(again(**inputs).last_hidden_state, hidden)


def test_albert_says_whether_texts_are_in_order(tmp_path):
    peer = write("albert", tmp_path, "AutoModelForPreTraining")
    model = sememe.load(tmp_path)
    inputs = tokenized(tmp_path, [TEXTS[0]], [TEXTS[1]])
    with torch.no_grad():
        wanted = peer(**inputs).sop_logits.softmax(-1)[0, 0].item()
    assert model.follows(TEXTS[0], TEXTS[1]) == pytest.approx(wanted, abs=1e-5)
    model.save(tmp_path / "again")
    _, told = transformers.AutoModelForPreTraining.from_pretrained(
        tmp_path / "again", output_loading_info=True
    )
    assert not any(told.values()), told


def test_positions_begin_at_the_first_one(opened, family):
    _, peer, model = opened
    if family == "modernbert":
        return  # its positions are rotary
    body = getattr(peer, peer.base_model_prefix)
    table = body.embeddings.position_embeddings.weight.detach().numpy()
    first = peer.config.pad_token_id + 1 if "roberta" in family else 0
    assert len(table) == first + model.config.max_length
    assert np.array_equal(model.positions, table[first:])


DOCUMENTS = [
    "The old cat sat on the mat. A dog ran over it. The cat sat.",
    "猫坐在垫子上。狗在睡觉。",
] * 20
SHORT = {
    "steps": 12, "length": 32, "batch_size": 8, "learning_rate": 1e-3, "validation_share": 0.2,
    "evaluate_batches": 2, "device": "cpu", "workers": 1,
}  # fmt: skip


def test_training_continues_and_is_saved_for_transformers(opened, tmp_path):
    folder, peer, before = opened
    model = sememe.BERT(pretrained=folder, **SHORT).fit(DOCUMENTS, out=tmp_path / "more")
    first, last = model.history[0]["loss"], model.history.last()["loss"]
    assert last < first
    assert model.config == before.config and model.tokenizer.vocab_size == len(before.tokenizer)
    again = sememe.load(tmp_path / "more")
    np.testing.assert_array_equal(again.embed(TEXTS), model.embed(TEXTS))
    assert again.plan == model.plan and again.config == model.config
    theirs, told = transformers.AutoModelForMaskedLM.from_pretrained(
        tmp_path / "more", output_loading_info=True
    )
    assert type(theirs) is type(peer) and not any(told.values()), told
    inputs = tokenized(tmp_path / "more", TEXTS)
    is_token = inputs["attention_mask"].bool()
    own = inputs["input_ids"], inputs.get("token_type_ids"), is_token.sum(1)
    with torch.no_grad():
        logits = again.network.masked_logits(again.network(*own))
        assert_near(logits[is_token], theirs.eval()(**inputs).logits[is_token])


def test_the_first_validation_of_a_continued_training_is_that_of_the_folder(opened):
    _, _, before = opened
    options = SHORT | {"steps": 1, "learning_rate": 1e-12}
    model = sememe.BERT(pretrained=before, **options).fit(DOCUMENTS)
    for name, tensor in before.network.state_dict().items():
        torch.testing.assert_close(model.network.state_dict()[name], tensor, atol=1e-9, rtol=0)
    assert model.network is not before.network


def test_documents_are_tokenized_as_by_their_tokenizer(opened):
    _, _, model = opened
    store = open_or_build_subwords(DOCUMENTS, model.tokenizer)
    wanted = np.concatenate([own.ids for own in model.tokenizer.encode_batch(DOCUMENTS)])
    np.testing.assert_array_equal(store.ids, wanted)
    assert store.num_documents == len(DOCUMENTS)
    assert len(store.sentence_ends) == 5 * len(DOCUMENTS) // 2


def test_what_a_continued_training_refuses(tmp_path):
    write("distilbert", tmp_path)
    for options, word in (({"width": 64}, "width"), ({"vocab_size": 99}, "vocab_size")):
        with pytest.raises(OptionError, match=word):
            sememe.BERT(pretrained=tmp_path, **options)
    model = sememe.BERT(pretrained=tmp_path, **SHORT)
    with pytest.raises(OptionError, match="tokenizer"):
        model.fit(DOCUMENTS, tokenizer=tmp_path)
    with pytest.raises(ArtifactError, match="gpt"):
        sememe.GPT(pretrained=tmp_path)
    with pytest.raises(OptionError, match="not learned"):
        sememe.BERT(pretrained=sememe.BERT())


def test_a_discriminator_continues_with_a_new_masked_head(tmp_path, capsys):
    write("electra", tmp_path, "AutoModelForPreTraining")
    model = sememe.BERT(pretrained=tmp_path, **SHORT).fit(DOCUMENTS, progress=True)
    assert "masked head" in capsys.readouterr().err
    assert model.fill("the [MASK] sat")


def test_gpt_continues(tmp_path):
    tokenizer = SubwordTokenizer.train(CORPUS, kind="bpe", vocab_size=300, min_frequency=1)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=4, n_positions=40, n_inner=50
    )
    peer = transformers.GPT2LMHeadModel(config)
    peer.save_pretrained(tmp_path / "gpt")
    tokenizer.save(tmp_path / "gpt", max_length=40)
    options = SHORT | {"precision": "fp32"}
    model = sememe.GPT(pretrained=tmp_path / "gpt", **options).fit(DOCUMENTS, out=tmp_path / "more")
    assert model.history.last()["loss"] < model.history[0]["loss"]
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "more").eval()
    ids = torch.tensor([tokenizer.encode("the old cat").ids.tolist()])
    with torch.no_grad():
        assert_near(model.network.next_logits(model.network(ids)), again(ids).logits)
