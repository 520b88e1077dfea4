"""The command that learns word pieces: text in, a tokenizer's folder out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sememe.cli import training
from sememe.cli.options import Json, Quiet, expand
from sememe.cli.screen import examples, print_json, remark
from sememe.text.settings import TextSettings
from sememe.tokens.subword_config import TokenizerConfig

if TYPE_CHECKING:
    from sememe.tokens.subwords import SubwordTokenizer

EXAMPLES = examples(
    "sememe train tokenizer my-texts/ --vocab-size 16000 --out runs/pieces",
    "sememe train tokenizer my-texts/ --kind bpe --vocab-size 32000 --out runs/bytes",
    "sememe train tokenizer news.jsonl.gz --field body --language zh --out runs/news",
    "sememe train tokenizer --mix en=my-texts/ --mix zh=news.txt --out runs/both",
    "sememe train tokenizer my-texts/ --keep-case --accents keep --out runs/cased",
)


@expand(config="Tokenizer", text="Text")
def tokenizer(
    corpus: training.Corpus = None,
    mix: training.Mix = None,
    out: training.Out = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    config: TokenizerConfig,
    text: TextSettings,
) -> None:
    """Learn sub-words for BERT (wordpiece) or GPT (bpe), in files that transformers opens.

    The options carry the names of the Python call:
    sememe.SubwordTokenizer.train("text.txt", kind="wordpiece", vocab_size=30522).
    """
    from sememe.progress import Reporter
    from sememe.tokens.subword_training import train_tokenizer

    out = training.checked_out(out, "tokenizer")
    texts = training.by_language(corpus, mix)
    trained = train_tokenizer(texts, config, text=text, progress=Reporter(quiet=quiet))
    facts = _facts(trained)
    _save(trained, out, {**facts, "config": config.to_dict(), "text": text.to_dict()})
    if json:
        print_json({"path": str(out), **facts})
        return
    remark(f"Saved {trained.vocab_size:,} tokens ({trained.kind}) to {out}", quiet)
    model = "gpt" if trained.kind == "bpe" else "bert"
    remark(f"Try: sememe train {model} CORPUS --tokenizer {out} --out runs/{model}", quiet)


def _facts(trained: SubwordTokenizer) -> dict[str, Any]:
    special = {trained.token(token_id): token_id for token_id in sorted(trained.special_ids)}
    return {
        "tokenizer": trained.kind,
        "vocab_size": trained.vocab_size,
        "lowercase": trained.lowercase,
        "strip_accents": trained.strip_accents,
        "special_tokens": special,
        "fingerprint": trained.fingerprint,
    }


def _save(trained: SubwordTokenizer, out: Path, facts: dict[str, Any]) -> None:
    from sememe.storage.folder import MANIFEST, write_folder, write_json
    from sememe.storage.provenance import provenance

    with write_folder(out) as folder:
        trained.save(folder)
        write_json(folder / MANIFEST, {"kind": "tokenizer", **facts, "provenance": provenance()})
