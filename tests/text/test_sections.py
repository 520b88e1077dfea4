"""Parameters out of the three usual ways of writing docstrings."""

import pytest

from sememe.text.docstrings import Parameter, parameters

NUMPYDOC = """Clip values.

    Parameters
    ----------
    a, b : array_like, shape (n,)
        Values `to` clip.

        A second paragraph.
    mode : {'wrap', 'clip'}, optional
        How to clip.
    *args
        Passed on.

    Returns
    -------
    out : ndarray
        Not a parameter.

    Other Parameters
    ----------------
    值 : :class:`~a.b.Thing` (default: None)
    last : float
    """
GOOGLE = """Join rows.

    Args:
        rows (list[tuple(int, str)]): Rows
            to join.
        sep (str, optional): Between them.
        flag: Whether to
            say more.

    Returns:
        out (str): Not a parameter.
    """
SPHINX = """Send it.

    :param str name: The name
        that is sent.
    :param size: How much.
    :type size: int or None
    :param rest: What is left.
    :returns: nothing
    :rtype: int
    """


def told(docstring):
    return [(own.names, own.type, own.text.partition("\n")[0]) for own in parameters(docstring)]


def test_numpydoc():
    assert told(NUMPYDOC) == [
        (("a", "b"), "array_like, shape (n,)", "Values to clip."),
        (("mode",), "'wrap', 'clip'", "How to clip."),
        (("args",), "", "Passed on."),
        (("last",), "float", ""),
    ]


def test_google():
    assert told(GOOGLE) == [
        (("rows",), "list[tuple(int, str)]", "Rows to join."),
        (("sep",), "str", "Between them."),
        (("flag",), "", "Whether to say more."),
    ]
    listed = (
        "Do.\n\nArgs:\n- graph (fx.Graph): The input\n  graph.\n- size: Bytes.\n\nReturns:\n- x"
    )
    assert told(listed) == [
        (("graph",), "fx.Graph", "The input graph."),
        (("size",), "", "Bytes."),
    ]


def test_sphinx():
    assert told(SPHINX) == [
        (("name",), "str", "The name that is sent."),
        (("size",), "int or None", "How much."),
        (("rest",), "", "What is left."),
    ]


@pytest.mark.parametrize(
    "docstring",
    [
        "",
        "Nothing told.",
        "Parameters\n----------",
        "Args:",
        "See Args: there are none.",
        "参数：无",
    ],
)
def test_without_parameters(docstring):
    assert parameters(docstring) == []


@pytest.mark.parametrize(
    "type_", ["int, optional", "int (default: 3)", "int; defaults to 3", "int."]
)
def test_remarks_are_no_part_of_a_type(type_):
    found = parameters(f"X.\n\nParameters\n----------\nn : {type_}\n    Number of them.\n")
    assert found == [Parameter(("n",), "int", "Number of them.")]
