"""Pictures of vectors and of training: arrays in, PNG and SVG files out."""

from sememe.plots.charts import bars, descent, history
from sememe.plots.heatmaps import attention, heatmap, positions
from sememe.plots.projection import pca

__all__ = ["attention", "bars", "descent", "heatmap", "history", "pca", "positions"]
