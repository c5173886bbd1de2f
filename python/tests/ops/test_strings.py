"""Strings."""

import headrace as tf


def test_reduce_join_over_all_dimensions():
    reduce_join = tf.strings.reduce_join
    rows = [["abc", "123"], ["def", "456"]]
    assert reduce_join(rows).numpy() == b"abc123def456"
    assert reduce_join(rows, axis=[0, 1]).numpy() == b"abcdef123456"
    assert reduce_join(rows, axis=0, separator="-").numpy().tolist() == [
        b"abc-def",
        b"123-456",
    ]


def test_bytes_that_are_no_utf8_have_no_case():
    text = [b"a\xffB", b"\xc3\xa4\xc0\xaf", b"\xe2\x82", b"x\xf0\x9f\x98y"]
    for change, ends in (
        (tf.strings.upper, "AB\u00c4XY"),
        (tf.strings.lower, "ab\u00e4xy"),
    ):
        a, b, umlaut, x, y = ends
        wanted = [f"{a}\ufffd{b}", f"{umlaut}\ufffd\ufffd", "\ufffd", f"{x}\ufffd{y}"]
        got = change(text, encoding="utf-8").numpy().tolist()
        assert [t.decode() for t in got] == wanted
    assert tf.strings.upper(text[0]).numpy() == b"A\xffB"
