"""The heads that `transformers` knows: the class to open a folder with, and its name for ours."""

from __future__ import annotations

from typing import NamedTuple

from sememe.networks.encoders import NetworkEncoder
from sememe.networks.heads import ChoiceHead, ClassHead, Head, ScoreHead, SpanHead, TokenHead


class Peer(NamedTuple):
    """A class of `transformers`, and what it calls the linear map of the head."""

    architecture: str
    prefix: str


_ENDINGS = {
    ClassHead: "ForSequenceClassification",
    ScoreHead: "ForSequenceClassification",
    ChoiceHead: "ForMultipleChoice",
    TokenHead: "ForTokenClassification",
    SpanHead: "ForQuestionAnswering",
}


def peer_of(encoder: NetworkEncoder, head: Head) -> Peer | None:
    """The class of `transformers` for an encoder with a head, or None where it has none."""
    if not encoder.is_standard or type(head) not in _ENDINGS:
        return None
    ending = _ENDINGS[type(head)]
    norm = getattr(encoder.network.config, "norm", None)  # GPT's alone
    start = {None: "Bert", "pre": "GPT2", "post": "OpenAIGPT"}[norm]
    if isinstance(head, SpanHead):
        prefix = "qa_outputs"
    elif start != "Bert" and isinstance(head, ClassHead):
        prefix = "score"
    else:
        prefix = "classifier"
    known = {"Bert": None, "GPT2": (ClassHead, TokenHead, SpanHead), "OpenAIGPT": (ClassHead,)}
    allowed = known[start]
    return Peer(start + ending, prefix) if allowed is None or isinstance(head, allowed) else None
