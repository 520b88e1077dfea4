"""A small text for networks: animals and people that see and like each other."""

_NAMES = ("cat", "dog", "king", "girl", "fish")
SENTENCES = [
    f"The {name} sees the {other}. Then the {other} likes the {name} and rain falls."
    for name in _NAMES for other in _NAMES
]  # fmt: skip
DOCUMENTS = SENTENCES * 3
