"""A preview of word2vec as text for a terminal of 80 columns, wide Chinese characters included."""

from __future__ import annotations

from textwrap import wrap

from sememe.static.word2vec.preview import NUM_SHOWN, Change, Decision, Pair, Preview
from sememe.static.word2vec.preview_lines import Line

WIDTH = 80
_NUM_NUMBERS = 4


def render(preview: Preview) -> str:
    """Write the first lines, their pairs and the update of the first pair, step by step."""
    config = preview.config
    head = (
        f"First lines ({preview.num_words:,} words seen {config['min_count']:,} times or more in "
        f"the first {preview.num_tokens:,} of the text; · is rarer; sub-sampling drops the words "
        "in parentheses):"
    )
    text = [*wrap(head, WIDTH), *map(_line, preview.lines), ""]
    text += wrap(_caption(preview), WIDTH)
    text += [_pair(pair, config["loss"]) for pair in preview.pairs]
    if preview.pool:
        shares = (
            f"{preview.block} neighboring centres share a pool of {preview.pool} noise words: each "
            f"pair is scored against all of them (some are shown here), and one of them weighs "
            f"{config['negatives']}/{preview.pool}."
        )
        text += wrap(shares, WIDTH)
    return "\n".join([*text, "", *_update(preview)])


def _caption(preview: Preview) -> str:
    loss = preview.config["loss"]
    if preview.config["architecture"] == "cbow":
        who = f"{preview.config['combine']} of a window → its centre"
    elif loss == "softmax":
        who = "centre → word of its window"
    else:
        who = "word of a window → its centre"
    what = {
        "negative": "label 1 | noise words, label 0",
        "hierarchical": "| nodes from the root of the Huffman tree: turn and label",
        "softmax": "label 1, probability | the likeliest other words, label 0",
    }
    return f"Training pairs ({who}, {what[loss]}):".replace(", |", " |")


def _update(preview: Preview) -> list[str]:
    pair, shown = preview.pairs[0], preview.update[: NUM_SHOWN + 1]
    is_softmax = preview.config["loss"] == "softmax"
    name = f"{_fit(_source(pair), 26).rstrip()} → {_fit(pair.target, 16).rstrip()}"
    caption = (
        f"Output vectors start at zero, which shows little: {preview.num_passes} passes over these "
        "lines came before."
    )
    title = "softmax" if is_softmax else "sigmoid"
    titles = f"{'label':>7}{'dot product':>13}{title:>10}{'error':>10}{'weight':>9}{'step':>10}"
    table = [f"{'':20}{titles}"]
    table += [f"  {_fit(one.name, 18)}{_numbers(one)}" for one in shown]
    num_decisions = preview.num_words if is_softmax else len(preview.update)
    if num_decisions > len(shown):
        table.append(f"  … and {num_decisions - len(shown):,} more")
    is_cbow = preview.config["architecture"] == "cbow"
    joined = f"{preview.config['combine']} of the input vectors" if is_cbow else "input vector"
    moved = "each input vector" if is_cbow else "the input vector"
    rule = (
        f"error = label - {title}; step = rate × weight × error. Each output vector moves by step "
        f"× {joined}, {moved} by the sum of step × output vector:"
    )
    vectors = [_change("in", change) for change in preview.inputs[:2]]
    vectors += [_change("out", change) for change in preview.outputs[: NUM_SHOWN + 1]]
    head = f"One update by {name} alone, rate {preview.rate:g}:"
    return [head, *table, *wrap(rule, WIDTH), *vectors, *wrap(caption, WIDTH)]


def _numbers(one: Decision) -> str:
    return (
        f"{one.label:7}{one.score:+13.5f}{one.probability:10.5f}"
        f"{one.label - one.probability:+10.5f}{one.weight:9.4f}{one.step:+10.5f}"
    )


def _line(line: Line) -> str:
    forms = {"kept": "{}", "thinned": "({})", "rare": "·"}
    return _cut("  " + " ".join(forms[fate].format(word) for word, fate in line[:WIDTH]))


def _pair(pair: Pair, loss: str) -> str:
    def form(one: Decision) -> str:
        chance = f" {one.probability:.5f}" if loss == "softmax" else ""
        return f"{one.name} {one.label}{chance}"

    target, rest = pair.target, pair.decisions
    if loss != "hierarchical":  # there the target is asked for itself
        target, rest = form(rest[0]), rest[1:]
    return _cut(f"  {_source(pair)} → {target} | " + "  ".join(map(form, rest)))


def _source(pair: Pair) -> str:
    more = " + …" if len(pair.source) > 4 else ""
    return " + ".join(pair.source[:4]) + more


def _change(side: str, change: Change) -> str:
    before, after = (
        " ".join(map(_short, vector[:_NUM_NUMBERS])) for vector in (change.before, change.after)
    )
    return f"{_fit(f'{side} {change.name}', 14)} {before} → {after}"


def _short(number: float) -> str:
    """Write a number in seven places, without a zero before the point."""
    text = f"{number:+.5f}"
    return text[0] + text[2:] if text[1:3] == "0." else f"{number:+#.5g}"


def _cut(line: str) -> str:
    """Cut a line to the width of the terminal."""
    from rich.cells import cell_len, set_cell_size

    return line if cell_len(line) <= WIDTH else set_cell_size(line, WIDTH - 2) + " …"


def _fit(name: str, size: int) -> str:
    """Cut or pad a name to `size` cells."""
    from rich.cells import cell_len, set_cell_size

    is_long = cell_len(name) > size
    return set_cell_size(name, size - 1) + "…" if is_long else set_cell_size(name, size)
