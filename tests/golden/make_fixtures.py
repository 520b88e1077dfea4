"""A small model of every kind the program opens: `python tests/golden/make_fixtures.py FOLDER`.

The folder gets the models; beside this script fixtures.tar.xz packs them and expected.json keeps
what they answer. Run it with the version whose folders later versions must open: what it writes
replaces the promise, so a new kind is added with --only NAME, which leaves the others alone.
"""

from __future__ import annotations

import argparse
import json
import lzma
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import program
import questions
import sample_texts
import trainings

HERE = Path(__file__).parent
ARCHIVE, EXPECTED = HERE / "fixtures.tar.xz", HERE / "expected.json"
# Trainings whose folders are not kept: a table of three megabytes, and a BERT like the others.
NOT_KEPT = ("elmo-subwords", "bert-phrases")

# ---- files that other programs write --------------------------------------------------------

CONVERSIONS = {
    "vectors.txt": "word2vec-skipgram-negative --format word2vec",
    "vectors.bin": "word2vec-skipgram-negative --format word2vec-binary",
    "vectors.bin.gz": "word2vec-cbow-negative --format word2vec-binary",
    "vectors.glove": "glove --format glove",
    "vectors-folder": "vectors.txt --format folder",
    "fasttext.vec": "fasttext --format word2vec",
    "fasttext.bin": "fasttext --format fasttext",
    "table.floret": "floret --format floret",
    "classifier.bin": "classifier --format fasttext",
    "classifier.ftz": "classifier-quantized --format fasttext",
    "ngram.arpa": "ngram --format arpa",
    "ngram.arpa.gz": "ngram --format arpa",
}
BERTS = {
    "huggingface-bert": "BertForPreTraining",
    "huggingface-bert-body": "BertModel",
    "huggingface-bert-sharded": "BertForPreTraining",
    "huggingface-classify": "BertForSequenceClassification",
    "huggingface-regress": "BertForSequenceClassification",
    "huggingface-choose": "BertForMultipleChoice",
    "huggingface-tag": "BertForTokenClassification",
    "huggingface-answer": "BertForQuestionAnswering",
}
GPTS = {"huggingface-gpt2": "GPT2LMHeadModel", "huggingface-gpt1": "OpenAIGPTLMHeadModel"}


def _labels(name: str) -> dict[str, Any]:
    labels = {
        "huggingface-regress": ["score"],
        "huggingface-classify": ["bad", "good"],
        "huggingface-tag": ["O", "B-ANIMAL", "I-ANIMAL"],
    }.get(name)
    if labels is None:
        return {}
    ids = {label: index for index, label in enumerate(labels)}
    return {"id2label": dict(enumerate(labels)), "label2id": ids}


def write_huggingface(name: str) -> None:
    """Write a folder as transformers does: random weights of its own, one of our tokenizers."""
    import torch
    import transformers

    torch.manual_seed(sum(map(ord, name)))
    pieces = Path("tokenizer-wordpiece" if name in BERTS else "tokenizer-bpe")
    size = len(json.loads((pieces / "tokenizer.json").read_text("utf-8"))["model"]["vocab"])
    if name in BERTS:
        config: Any = transformers.BertConfig(
            vocab_size=size, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
            intermediate_size=32, max_position_embeddings=64, initializer_range=0.3,
            **_labels(name),
        )  # fmt: skip
        network = getattr(transformers, BERTS[name])(config)
    else:
        sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64}
        own = transformers.GPT2Config if "gpt2" in name else transformers.OpenAIGPTConfig
        config = own(
            vocab_size=size, initializer_range=0.3, bos_token_id=0, eos_token_id=0, **sizes
        )
        network = getattr(transformers, GPTS[name])(config)
    is_sharded = name.endswith("sharded")
    network.save_pretrained(name, max_shard_size="10KB" if is_sharded else "1GB")
    for path in pieces.iterdir():
        if path.name != "sememe.json":
            shutil.copy(path, Path(name) / path.name)


def write_sentence_encoder(name: str) -> None:
    """Write a folder as sentence-transformers or model2vec does, of the BERT or random vectors."""
    if "static" in name:
        from model2vec import StaticModel
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file("tokenizer-wordpiece/tokenizer.json")
        random = np.random.default_rng(7)
        table = random.normal(0, 1, (tokenizer.get_vocab_size(), 8)).astype(np.float32)
        config = {"model_type": "model2vec", "normalize": True}
        StaticModel(table, tokenizer, config=config).save_pretrained(name)
        return
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Dense, Pooling

    torch.manual_seed(7)
    parts = [
        Transformer("huggingface-bert-body", max_seq_length=48),
        Pooling(16, pooling_mode="cls"), Dense(16, 8, activation_function=torch.nn.Tanh()),
        Normalize(),
    ]  # fmt: skip
    prompts = {"query": "find: ", "document": ""}
    SentenceTransformer(modules=parts, device="cpu", prompts=prompts).save(name)


def write_released_elmo(name: str) -> None:
    """Write the two files of the released ELMo: options as JSON, weights as HDF5."""
    import h5py

    cells, width, characters = 10, 6, 4
    filters = [[1, 3], [2, 4], [3, 5]]
    num_filters = sum(num for _, num in filters)
    options = {
        "lstm": {
            "cell_clip": 3, "proj_clip": 3, "dim": cells, "projection_dim": width, "n_layers": 2,
            "use_skip_connections": True,
        },
        "char_cnn": {
            "activation": "relu", "embedding": {"dim": characters}, "filters": filters,
            "n_highway": 1, "n_characters": 262, "max_characters_per_token": 20,
        },
    }  # fmt: skip
    random = np.random.default_rng(5)
    shapes: dict[str, tuple[int, ...]] = {"char_embed": (261, characters)}
    for index, (size, num) in enumerate(filters):
        shapes[f"CNN/W_cnn_{index}"] = (1, size, characters, num)
        shapes[f"CNN/b_cnn_{index}"] = (num,)
    for part in ("carry", "transform"):
        shapes[f"CNN_high_0/W_{part}"] = (num_filters, num_filters)
        shapes[f"CNN_high_0/b_{part}"] = (num_filters,)
    shapes |= {"CNN_proj/W_proj": (num_filters, width), "CNN_proj/b_proj": (width,)}
    for direction in range(2):
        for index in range(2):
            place = f"RNN_{direction}/RNN/MultiRNNCell/Cell{index}/LSTMCell"
            shapes[f"{place}/W_0"] = (2 * width, 4 * cells)
            shapes[f"{place}/B"] = (4 * cells,)
            shapes[f"{place}/W_P_0"] = (cells, width)
    folder = Path(name)
    folder.mkdir()
    (folder / "elmo_small_options.json").write_text(json.dumps(options, indent=1) + "\n")
    with h5py.File(folder / "elmo_small_weights.hdf5", "w") as file:
        for key, shape in shapes.items():
            file.create_dataset(key, data=random.normal(0, 0.4, shape).astype(np.float32))


# ---- all of them ------------------------------------------------------------------------------


def _converted(name: str) -> None:
    source, *more = CONVERSIONS[name].split()
    program.run("convert", source, name, *more, "--quiet")


def writers() -> dict[str, Callable[[str], Any]]:
    """What writes each fixture, in an order in which each finds what it stands on."""
    trained = {name: lambda own: trainings.train(own, own) for name in trainings.COMMANDS}
    return {
        **{name: write for name, write in trained.items() if name not in NOT_KEPT},
        **dict.fromkeys(CONVERSIONS, _converted),
        **dict.fromkeys([*BERTS, *GPTS], write_huggingface),
        **dict.fromkeys(["sentence", "sentence-static"], write_sentence_encoder),
        "elmo-released": write_released_elmo,
    }


def write_fixtures(folder: Path, only: list[str]) -> None:
    """Write the fixtures, or only some of them, into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    sample_texts.write(folder / "texts")
    with program.working_in(folder):
        for name, write in writers().items():
            if not only or name in only:
                write(name)
                print(name, flush=True)
        for picture in Path().rglob("*.png"):
            picture.unlink()


def unpack(folder: Path) -> None:
    """Unpack the committed fixtures into a folder, with the texts that questions speak of."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    sample_texts.write(folder / "texts")


def pack(folder: Path) -> None:
    """Pack the fixtures so that the same files make the same archive."""
    with (
        lzma.open(ARCHIVE, "wb", preset=9 | lzma.PRESET_EXTREME) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in sorted(writers()):
            for path in (folder / name, *sorted((folder / name).rglob("*"))):
                info = archive.gettarinfo(path, path.relative_to(folder).as_posix())
                info.mtime = info.uid = info.gid = 0
                info.uname = info.gname = ""
                info.mode = 0o755 if path.is_dir() else 0o644
                if path.is_dir():
                    archive.addfile(info)
                    continue
                with path.open("rb") as file:
                    archive.addfile(info, file)


def answers(folder: Path, only: list[str]) -> dict[str, dict[str, Any]]:
    """What each fixture answers to its questions."""
    found = {}
    with program.working_in(folder):
        for name, own in questions.QUESTIONS.items():
            if not only or name in only:
                found[name] = {questions.name_of(one): questions.ask(one, name) for one in own}
    return found


def main() -> None:
    """Write fixtures, their archive and their answers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="an empty folder for the models")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="add only these")
    asked = parser.parse_args()
    expected = {}
    if asked.only:
        asked.folder.mkdir(parents=True, exist_ok=True)
        unpack(asked.folder)
        expected = json.loads(EXPECTED.read_text("utf-8"))
    elif asked.folder.exists() and any(asked.folder.iterdir()):
        parser.error(f"{asked.folder} is not empty")
    write_fixtures(asked.folder, asked.only)
    expected |= answers(asked.folder, asked.only)
    pack(asked.folder)
    trainings.write_lines(EXPECTED, expected)
    print(f"{ARCHIVE.stat().st_size:,} bytes packed, {len(expected)} fixtures answered.")


if __name__ == "__main__":
    main()
