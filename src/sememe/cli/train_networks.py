"""The commands that train networks on plain text: NNLM, ELMo, ULMFiT, GPT, BERT; tokenizers."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sememe.cli import training
from sememe.cli.options import Cluster, Json, Quiet, expand, flag, is_typed
from sememe.cli.program import examples, needed, print_json, remark
from sememe.errors import OptionError
from sememe.examples.masking.config import MaskingConfig
from sememe.machine import provenance
from sememe.models.bert.config import (
    BERT_PRESETS,
    OF_RECIPES,
    BERTTrainingConfig,
    DistillationConfig,
    DomainConfig,
)
from sememe.models.elmo.config import PRESETS as ELMO_PRESETS, CasedTextSettings, ELMoTrainingConfig
from sememe.models.gpt.config import GPT_PRESETS, GPTTrainingConfig
from sememe.models.nnlm.config import PRESETS as NNLM_PRESETS, NNLMTrainingConfig
from sememe.models.ulmfit.config import PRESETS as ULMFIT_PRESETS, ULMFiTTrainingConfig
from sememe.progress import Reporter
from sememe.storage.folder import check_replaceable, write_folder
from sememe.text.settings import TextSettings
from sememe.tokens.subwords.tokenizer import TokenizerConfig
from sememe.training.lora import LoRAOptions

if TYPE_CHECKING:
    from sememe.tokens.subwords.tokenizer import SubwordTokenizer


NNLM_SIZES = training.sizes(
    "dropout",
    window=(int, "Context words before the target (--ranking: per side); default: from preset."),
    dim=(int, "Dimensions of a word vector; default: from the preset."),
    num_hidden=(int, "Units of the hidden layer; default: from the preset."),
)
ELMO_SIZES = training.sizes(
    "num_cells",
    "dropout",
    num_layers=(int, "LSTM layers per direction; default: from the preset."),
    width=(int, "Dimensions of each layer's output; default: from the preset."),
    filters=(str, 'Character CNN filters as WIDTH:COUNT, such as "1:32 2:64 3:128".'),
    num_highways=(int, "Highway layers; default: from the preset."),
    cell_clip=(float, "Clip cell states to ± this; disables cuDNN, slow."),
    output_clip=(float, "Clip projections to ± this; disables cuDNN, slow."),
)
ULMFIT_SIZES = training.sizes(
    "num_cells",
    num_layers=(int, "LSTM layers; default: from the preset."),
    width=(int, "Dimensions of a word vector; default: from the preset."),
    dropout_factor=(float, "Factor for the paper's five dropouts; default: from the preset."),
)


@training.app.command(
    epilog=examples(
        "sememe train nnlm --out runs/nnlm --budget 2m",
        "sememe train nnlm my-texts/ --out runs/mine --preset small --epochs 5",
        "sememe train nnlm my-texts/ --direct --window 3 --out runs/mine",
        "sememe train nnlm my-texts/ --ranking --window 5 --out runs/ranking",
        "sememe train nnlm news.txt --language zh --out runs/news",
        "sememe suggest runs/nnlm 'the shape of the '",
    )
)
@expand(
    asked=None,
    sizes=NNLM_SIZES,
    preset=training.or_auto(NNLM_PRESETS),
    config="Training",
    text="Text",
)
def nnlm(
    *,
    corpus: training.Corpus = None,
    asked: training.NetworkOptions,
    preset: training.Preset = "tiny",
    ranking: Annotated[
        bool,
        flag("--ranking", help="Rank real windows above corrupted ones (Collobert & Weston)."),
    ] = False,
    direct: Annotated[
        bool, flag("--direct", help="Also connect word vectors directly to the output layer.")
    ] = False,
    sizes: training.Sizes,
    config: NNLMTrainingConfig,
    text: TextSettings,
) -> None:
    """Train Bengio's neural language model: predict the next word.

    In Python:
    sememe.NNLM(preset="tiny", budget="2m").fit("text.txt").
    """
    from sememe.models.nnlm.model import NNLM

    architecture = "ranking" if ranking else "softmax"
    model = NNLM(
        training.first(preset),
        architecture=architecture,
        direct=direct,
        **sizes.given(),
        **config.to_dict(),
    )
    trained = training.train_network(model, corpus, text, asked, preset=preset)
    if trained is not None and not asked.json:
        word = training.example_word(trained.vocabulary)
        remark(f"Try: sememe neighbors {asked.out} {word}", asked.quiet)


@training.app.command(
    epilog=examples(
        "sememe train elmo --out runs/elmo --budget 5m",
        "sememe train elmo my-texts/ --out runs/mine --preset small --epochs 3",
        "sememe train elmo news.txt --language zh --out runs/news",
        "sememe train elmo tokens.txt --language none --input words --out runs/tokens",
        "sememe train elmo my-texts/ --out runs/mine --preset small --epochs 3 --resume",
    )
)
@expand(
    asked=None,
    sizes=ELMO_SIZES,
    preset=training.or_auto(ELMO_PRESETS),
    config="Training",
    text="Text",
)
def elmo(
    *,
    corpus: training.Corpus = None,
    asked: training.NetworkOptions,
    preset: training.Preset = "tiny",
    input: Annotated[
        Literal["characters", "words", "subwords"],
        typer.Option(help="Word input: character CNN, one vector per word, or character n-grams."),
    ] = "characters",
    sizes: training.Sizes,
    config: ELMoTrainingConfig,
    text: CasedTextSettings,
) -> None:
    """Train ELMo: contextual word vectors from two LSTM directions.

    In Python:
    sememe.ELMo(preset="tiny", budget="5m").fit("text.txt").
    """
    from sememe.models.elmo.model import ELMo

    model = ELMo(training.first(preset), input=input, **sizes.given(), **config.to_dict())
    training.train_network(model, corpus, text, asked, preset=preset)


@training.app.command(
    epilog=examples(
        "sememe train ulmfit --out runs/general --budget 5m",
        "sememe train ulmfit reviews.txt --from runs/general --epochs 5 --out runs/reviews",
        "sememe finetune classify runs/reviews --train train.tsv --schedule slanted "
        "--layer-decay 0.3846 --unfreeze-every 1 --epochs 8 --out runs/opinions",
        "sememe train ulmfit news.txt --language zh --out runs/news",
        "sememe suggest runs/general 'the most '",
    )
)
@expand(
    asked=None,
    sizes=ULMFIT_SIZES,
    preset=training.or_auto(ULMFIT_PRESETS),
    config="Training",
    text="Text",
)
def ulmfit(
    *,
    corpus: training.Corpus = None,
    asked: training.NetworkOptions,
    start: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="ULMFiT model to adapt to this corpus; keeps size and vocabulary.",
        ),
    ] = None,
    preset: training.Preset = "tiny",
    sizes: training.Sizes,
    config: ULMFiTTrainingConfig,
    text: TextSettings,
) -> None:
    """Train ULMFiT's language model, an AWD-LSTM.

    Train it on any corpus first, then adapt it to the text of a task with
    --from.

    In Python:
    sememe.ULMFiT(preset="tiny", budget="5m").fit("text.txt");
    --from is its `start`.
    """
    from sememe.models.ulmfit.model import ULMFiT

    own = {**sizes.given(), **config.to_dict()}
    model = ULMFiT(training.first(preset), start=start, **own)
    training.train_network(model, corpus, _text_for(start, text), asked, preset=preset)


From = Annotated[
    Path | None,
    typer.Option(
        "--from", help="Model folder to continue, also of Hugging Face; keeps size and tokenizer."
    ),
]


def _text_for(start: Path | None, text: TextSettings) -> TextSettings | None:
    """The text settings; those of the model to start from, if no others are given."""
    return None if start is not None and text == TextSettings() else text


def _of_all_parts(sizes: training.Sizes) -> dict[str, Any]:
    """The sizes of a BERT or GPT, with one dropout rate for all their parts."""
    given = sizes.given()
    return given | ({"attention_dropout": given["dropout"]} if "dropout" in given else {})


@training.app.command(
    epilog=examples(
        "sememe train gpt --out runs/gpt --budget 5m",
        "sememe train gpt my-texts/ --out runs/mine --preset mini --steps 20000",
        "sememe train gpt news.txt --language zh --out runs/news",
        "sememe train gpt my-texts/ --out runs/mine --preset mini --steps 20000 --resume",
        "sememe train gpt my-texts/ --from gpt2-folder/ --budget 20m --out runs/adapted",
        "sememe train gpt my-texts/ --attention alternating --band 64 --length 512 --out runs/mine",
        "sememe train gpt my-texts/ --preview",
    )
)
@expand(
    asked=None,
    sizes=training.TRANSFORMER_SIZES,
    preset=training.or_auto(GPT_PRESETS),
    config="Training",
    lora="LoRA",
    text="Text",
)
def gpt(
    *,
    corpus: training.Corpus = None,
    mix: training.Mix = None,
    asked: training.NetworkOptions,
    preview: training.Preview = False,
    preset: training.Preset = "tiny",
    tokenizer: training.Tokenizer = None,
    start: From = None,
    attention: Annotated[
        Literal["dense", "alternating"] | None,
        typer.Option(
            help="Dense in every layer, or every second one banded (GPT-3); default: dense.",
            show_default=False,
        ),
    ] = None,
    band: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1_000_000,
            help="Earlier tokens that a banded layer sees; default: 128.",
            show_default=False,
        ),
    ] = None,
    sizes: training.Sizes,
    config: GPTTrainingConfig,
    lora: LoRAOptions,
    text: TextSettings,
) -> None:
    """Train GPT: a left-to-right Transformer language model.

    In Python:
    sememe.GPT(preset="tiny", budget="5m").fit("text.txt");
    --from is its `pretrained`.
    """
    from sememe.models.gpt.model import GPT

    if band is not None and attention != "alternating":
        raise OptionError("--band needs --attention alternating.")
    pattern = {"attention": attention, "band": band}
    given = {name: value for name, value in pattern.items() if value is not None}
    own = {**_of_all_parts(sizes), **config.to_dict(), **lora.to_dict(), **given}
    model = GPT(training.first(preset), pretrained=start, **own)
    training.train_network(
        model, training.by_language(corpus, mix), _text_for(start, text), asked,
        tokenizer=tokenizer, preview=preview, preset=preset,
    )  # fmt: skip


@training.app.command(
    epilog=examples(
        "sememe train bert --out runs/bert --budget 5m",
        "sememe train bert my-texts/ --out runs/mine --preset mini --steps 20000",
        "sememe train bert news.txt --language zh --unit word --out runs/news",
        "sememe train bert my-texts/ --out runs/mine --preset mini --steps 20000 --resume",
        "sememe train bert --mix en=my-texts/ --mix zh=news.txt --out runs/both",
        "sememe train bert my-texts/ --from roberta-folder/ --budget 20m --out runs/adapted",
        "sememe train bert my-texts/ --recipe modern --out runs/modern",
        "sememe train bert my-texts/ --from runs/bert --add-words 500 --out runs/domain",
        "sememe train bert my-texts/ --teacher runs/large --preset tiny --out runs/student",
        "sememe train bert my-texts/ --unit word --preview",
    )
)
@expand(
    asked=None,
    sizes=training.BERT_SIZES,
    preset=training.or_auto(BERT_PRESETS),
    config="Training",
    masking="Masking",
    lora="LoRA",
    domain="Domain",
    distillation="Distillation",
    text="Text",
)
def bert(
    *,
    context: typer.Context,
    corpus: training.Corpus = None,
    mix: training.Mix = None,
    asked: training.NetworkOptions,
    preview: training.Preview = False,
    preset: training.Preset = "tiny",
    recipe: Annotated[
        Literal["paper", "modern"],
        typer.Option(help="Default options: the paper's, or later ones that learn more per token."),
    ] = "paper",
    tokenizer: training.Tokenizer = None,
    start: From = None,
    sizes: training.Sizes,
    config: BERTTrainingConfig,
    masking: MaskingConfig,
    lora: LoRAOptions,
    domain: DomainConfig,
    distillation: DistillationConfig,
    text: TextSettings,
) -> None:
    """Train BERT: a bidirectional masked language model.

    In Python:
    sememe.BERT(preset="tiny", budget="5m").fit("text.txt");
    --from is its `pretrained`.
    """
    from sememe.models.bert.model import BERT

    own = {**_of_all_parts(sizes), **config.to_dict(), **asdict(masking), **lora.to_dict()}
    own |= domain.to_dict() | distillation.to_dict()
    if recipe != "paper":  # what was not typed is the recipe's
        for name in OF_RECIPES:
            if not is_typed(context, name):
                own.pop(name)
    model = BERT(training.first(preset), pretrained=start, recipe=recipe, **own)
    training.train_network(
        model, training.by_language(corpus, mix), _text_for(start, text), asked,
        tokenizer=tokenizer, preview=preview, preset=preset,
    )  # fmt: skip


@training.app.command(
    epilog=examples(
        "sememe train tokenizer my-texts/ --vocab-size 16000 --out runs/pieces",
        "sememe train tokenizer my-texts/ --kind bpe --vocab-size 32000 --out runs/bytes",
        "sememe train tokenizer news.jsonl.gz --column text=body --language zh --out runs/news",
        "sememe train tokenizer --mix en=my-texts/ --mix zh=news.txt --out runs/both",
        "sememe train tokenizer my-texts/ --keep-case --accents keep --out runs/cased",
    )
)
@expand(config="Tokenizer", text="Text")
def tokenizer(
    corpus: training.Corpus = None,
    mix: training.Mix = None,
    out: training.Out = None,
    overwrite: training.Overwrite = False,
    cluster: Cluster = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    config: TokenizerConfig,
    text: TextSettings,
) -> None:
    """Train a sub-word tokenizer: WordPiece (BERT) or BPE (GPT).

    The files open in transformers.

    In Python:
    sememe.SubwordTokenizer.train("text.txt", vocab_size=30522).
    """
    from sememe.tokens.store import names_of
    from sememe.tokens.subwords.tokenizer import SubwordTokenizer

    out = needed(out)
    check_replaceable(out, "tokenizer", overwrite=overwrite)
    texts = training.by_language(corpus, mix)
    progress = Reporter(quiet=quiet)
    with training.on_cluster(cluster, progress):
        trained = SubwordTokenizer.train(texts, config, text=text, progress=progress)
    facts = _facts(trained)
    known = {"config": config.to_dict(), "text": text.to_dict(), "data": {"train": names_of(texts)}}
    _save(trained, out, {**facts, **known})
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
    from sememe.card import write_manifest

    with write_folder(out) as folder:
        trained.save(folder)
        write_manifest(folder, {"kind": "tokenizer", **facts, "provenance": provenance()})
