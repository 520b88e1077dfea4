"""Messages of errors are one line, whatever the file that they quote holds."""

from __future__ import annotations

from sememe.errors import ArtifactError, UnknownWordError, visible


def test_control_characters_are_displayed_and_never_sent_to_the_terminal():
    hostile = "a\x1b[31m\nb\r\x00\x7f\x9b\u2028\udc80é国"
    assert visible(hostile) == r"a\x1b[31m\nb\r\x00\x7f\x9b\u2028\udc80é国"
    for error in (ArtifactError(f"The label {hostile} is unknown."), UnknownWordError(hostile)):
        assert str(error).isprintable()
        assert "国" in str(error)
