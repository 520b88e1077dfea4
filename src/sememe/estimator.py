"""The protocol of scikit-learn, for every model: parameters, `transform`, tags, copies.

Models do not inherit from scikit-learn, whose import takes as long as all of `import sememe`: this
class is a base of `Model`, and scikit-learn is imported where it is used. In a pipeline a model
takes a list of texts: `Word2Vec` and its kin are trained on it, what `sememe.load` opened is used
as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import fields
from functools import cache, partial, update_wrapper, wraps
from os import PathLike
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sememe.errors import InputError, OptionError
from sememe.frames import is_frame, is_series, texts_of

if TYPE_CHECKING:
    import numpy as np
    from sklearn.utils import Tags

Output = str | None  # default, pandas or polars


class _Method:
    """A method that exists, for `hasattr` too, only if the model has a capability."""

    def __init__(self, capability: str, method: Callable[..., Any]) -> None:
        self.capability, self.method = capability, method
        update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, model: Any, owner: Any = None) -> Any:
        if model is None:
            return self.method
        model.require(self.capability)  # raises UnsupportedError, an AttributeError
        return MethodType(self.method, model)


def only_with(capability: str) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a method of models that have a capability; others raise UnsupportedError."""
    return partial(_Method, capability)


def unless_pretrained(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `fit`: a pipeline's call leaves a pretrained model as it is, others are refused."""

    @wraps(fit)
    def fitted(self: Estimator, *args: Any, **options: Any) -> Any:
        if not self.is_pretrained:
            return fit(self, *args, **options)
        if options or not args or args[0] is None or isinstance(args[0], str | PathLike):
            name = type(self).__name__
            raise OptionError(
                f"This {name} was opened by sememe.load, and is used with its weights: train a new "
                f"one with sememe.{name}(…).fit(…)."
            )
        return self

    return fitted


class Estimator:
    """What scikit-learn calls. A subclass has `embed`, and `fit` if it can be trained."""

    embed: Callable[..., np.ndarray]
    config: Any = None  # dataclass of the model's options
    settings: Any = None  # TextSettings, if they are options of the constructor too
    # Options of `embed` that `transform` uses; auto is the model's own pooling.
    embed_options: Mapping[str, Any] = {"pool": "auto", "layers": "last"}
    is_classifier: ClassVar[bool] = False
    is_pretrained: bool = False  # opened by sememe.load: `fit` leaves it as it is
    _output: Output = None

    # ---- parameters -----------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        """The options of the constructor, by name."""
        parts = [part for part in (self.config, self.settings) if part is not None]
        return {own.name: getattr(part, own.name) for part in parts for own in fields(part)}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name: the options, and those of `transform`."""
        own = {} if self.is_pretrained else self.options()
        return {**own, **self.embed_options}

    def set_params(self, **params: Any) -> Self:
        """Change parameters; a model whose options have changed must be fitted again."""
        options = {name: params[name] for name in params if name not in self.embed_options}
        if options and self.is_pretrained:
            raise OptionError(
                f"A {type(self).__name__} that was opened with its weights has no parameter "
                f"{', '.join(options)}; it has {', '.join(self.embed_options)}."
            )
        if options:
            vars(self).update(vars(self._unfitted(options)))  # which checks them
        self.embed_options = {
            name: params.get(name, own) for name, own in self.embed_options.items()
        }
        return self

    def _unfitted(self, options: dict[str, Any]) -> Self:
        """An unfitted model with the same parameters, except for some options."""
        made = type(self)(**{**self.options(), **options})
        made.embed_options, made._output = self.embed_options, self._output
        return made

    def __sklearn_clone__(self) -> Self:
        """An unfitted model with the same parameters; a pretrained one with the same weights."""
        return copy(self) if self.is_pretrained else self._unfitted({})

    # ---- learning and using ---------------------------------------------------------------------

    @property
    def is_fitted(self) -> bool:
        """Whether there is something to use."""
        return True

    def __sklearn_is_fitted__(self) -> bool:
        return self.is_fitted

    @unless_pretrained
    def fit(self, *args: Any, **options: Any) -> Any:
        """Leave a model that is not trained, such as word vectors, as it is."""
        return self

    @only_with("embed")
    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Train on texts, unless the model is pretrained, and give their vectors."""
        if not self.is_pretrained:
            self.fit(text_array(X), y, **options)
        return self.transform(X)

    @only_with("embed")
    def transform(self, X: Any) -> Any:
        """One vector for each text, (texts, D), by `embed`."""
        if not self.is_fitted:
            raise not_fitted(f"This {type(self).__name__} is not fitted yet: call fit first.")
        options = {name: own for name, own in self.embed_options.items() if own != "auto"}
        rows_ND = self.embed(text_array(X).tolist(), **options)
        return self._contained(rows_ND, getattr(X, "index", None))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the columns of `transform`: word2vec0, word2vec1 …"""
        import numpy as np

        width, stem = len(self.transform(["."])[0]), type(self).__name__.lower()
        return np.array([f"{stem}{column}" for column in range(width)], object)

    def set_output(self, *, transform: Output = None) -> Self:
        """Let `transform` give an array (default), or a table of pandas or polars."""
        if transform not in (None, "default", "pandas", "polars"):
            raise OptionError(f"transform must be default, pandas or polars, not {transform!r}.")
        self._output = transform or self._output
        return self

    def _contained(self, rows_ND: np.ndarray, index: Any) -> Any:
        if self._output in (None, "default"):
            return rows_ND
        names = [f"{type(self).__name__.lower()}{column}" for column in range(rows_ND.shape[1])]
        if self._output == "pandas":
            import pandas

            return pandas.DataFrame(rows_ND, columns=names, index=index)
        import polars

        return polars.DataFrame(rows_ND, schema=names)

    def __sklearn_tags__(self) -> Tags:
        """What scikit-learn may expect: texts as input, and float32 as output."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="classifier" if self.is_classifier else None,
            target_tags=TargetTags(required=self.is_classifier),
            transformer_tags=TransformerTags(preserves_dtype=["float32"]),
            classifier_tags=ClassifierTags() if self.is_classifier else None,
            input_tags=InputTags(two_d_array=False, string=True),
            # Several threads add up their changes in any order.
            non_deterministic=not self.is_pretrained and self.options().get("workers", 1) != 1,
            requires_fit=not self.is_pretrained,
        )


def text_array(texts: Any) -> np.ndarray:
    """Texts as an array of objects, which is never mistaken for a list of files.

    A list, an array, a column of a table, or a table or array with one column.
    """
    import numpy as np

    if isinstance(texts, str) or texts is None:
        raise InputError(f"A list of texts was expected, not {texts!r:.40}.")
    shape = getattr(texts, "shape", ())
    if len(shape) > 2 or shape[1:] not in ((), (1,)):
        raise InputError(f"Texts are expected in one column, not in a table of shape {shape}.")
    if is_frame(texts):
        texts = texts[texts.columns[0]]
    texts = np.ravel(texts) if shape[1:] and not is_series(texts) else texts_of(texts)
    found = np.empty(len(texts), object)
    for index, text in enumerate(texts):
        found[index] = text
    return found


@cache
def _not_fitted_class() -> type[OptionError]:
    from sklearn.exceptions import NotFittedError

    return type("NotFittedError", (OptionError, NotFittedError), {})


def not_fitted(message: str) -> OptionError:
    """The error for a model that is used before `fit`; scikit-learn's NotFittedError too."""
    return _not_fitted_class()(message)
