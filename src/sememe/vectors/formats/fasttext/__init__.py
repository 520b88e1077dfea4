"""Facebook's fastText model files: .bin and quantised .ftz, read as memory maps and written."""

from sememe.vectors.formats.fasttext.model import FastTextArgs, FastTextFile
from sememe.vectors.formats.fasttext.reading import is_fasttext, read_model
from sememe.vectors.formats.fasttext.writing import write_model
from sememe.vectors.quantized import ProductQuantizer, QuantizedMatrix

__all__ = [
    "FastTextArgs",
    "FastTextFile",
    "ProductQuantizer",
    "QuantizedMatrix",
    "is_fasttext",
    "read_model",
    "write_model",
]
