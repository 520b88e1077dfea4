"""Pictures of vectors and of training: arrays in, PNG and SVG files out."""

from sememe.plots.attention import attention
from sememe.plots.bars import bars
from sememe.plots.curves import history
from sememe.plots.descent import descent
from sememe.plots.positions import positions
from sememe.plots.projection import pca
from sememe.plots.strips import heatmap

__all__ = ["attention", "bars", "descent", "heatmap", "history", "pca", "positions"]
