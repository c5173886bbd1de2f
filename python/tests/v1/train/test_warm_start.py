"""Variables that begin with a checkpoint's values for other vocabularies and names."""

import pytest

import headrace as tf

v1 = tf.compat.v1
VocabInfo = v1.train.VocabInfo


@pytest.fixture
def old(tmp_path):
    """(folder, prefix) of a checkpoint with e [3, 2], k [2, 3] and o, and of the files
    "old" (a, b, c) and "new" (c, d, a)."""
    (tmp_path / "old").write_text("a\nb\nc\n")
    (tmp_path / "new").write_text("c\nd\na\n")
    with tf.Graph().as_default(), v1.Session() as session:
        v1.get_variable("e", initializer=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        v1.get_variable("k", initializer=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        v1.get_variable("o", initializer=7.0)
        session.run(v1.global_variables_initializer())
        return tmp_path, v1.train.Saver().save(session, str(tmp_path / "m"))


def _words(folder, size=3, buckets=1, **options):
    new, before = str(folder / "new"), str(folder / "old")
    return VocabInfo(new, size, buckets, before, **options)


def _values(path, build, **options):
    with tf.Graph().as_default(), v1.Session() as session:
        build()
        v1.train.warm_start(path, **options)
        session.run(v1.global_variables_initializer())
        return {v.name: session.run(v).tolist() for v in v1.global_variables()}


def _embedding():
    v1.get_variable("e", shape=[4, 2], initializer=v1.ones_initializer())
    v1.get_variable("o", initializer=0.0)


MOVED = [[5.0, 6.0], [0.0, 0.0], [1.0, 2.0], [0.0, 0.0]]


def test_rows_go_with_their_words(old):
    folder, path = old
    of = {"e": _words(folder)}
    found = _values(path, _embedding, var_name_to_vocab_info=of)
    assert found == {"e:0": MOVED, "o:0": 7.0}
    # None: those with words alone.
    found = _values(
        path, _embedding, vars_to_warm_start=None, var_name_to_vocab_info=of
    )
    assert found == {"e:0": MOVED, "o:0": 0.0}


def test_rows_of_a_cut_variable(old):
    folder, path = old

    def build():
        v1.get_variable("e", [4, 2], partitioner=v1.fixed_size_partitioner(2))

    found = _values(path, build, var_name_to_vocab_info={"e": _words(folder)})
    assert found == {"e/part_0:0": MOVED[:2], "e/part_1:0": MOVED[2:]}


def test_fewer_old_words_and_another_value_for_new_ones(old):
    folder, path = old
    nines = v1.constant_initializer(9.0)
    of = _words(folder, old_vocab_size=2, backup_initializer=nines)
    found = _values(path, _embedding, var_name_to_vocab_info={"e": of})
    assert found["e:0"] == [[9.0, 9.0], [9.0, 9.0], [1.0, 2.0], [9.0, 9.0]]


def test_columns_of_a_variable_with_another_name(old):
    folder, path = old
    found = _values(
        path,
        lambda: v1.get_variable("k2", shape=[2, 3]),
        var_name_to_prev_var_name={"k2": "k"},
        var_name_to_vocab_info={"k2": _words(folder, buckets=0, axis=1)},
    )
    assert found == {"k2:0": [[3.0, 0.0, 1.0], [6.0, 0.0, 4.0]]}


def test_what_is_refused(old):
    folder, path = old
    of = _words(folder)
    with pytest.raises(
        ValueError, match="in var_name_to_vocab_info that were not used"
    ):
        _values(
            path,
            _embedding,
            vars_to_warm_start="o",
            var_name_to_vocab_info={"e": of},
        )
    with pytest.raises(ValueError, match="values for the axis argument are 0 and 1"):
        _words(folder, axis=2)
    long = _words(folder, size=4)
    with pytest.raises(ValueError, match="new has 3 words, not 4"):
        _values(path, _embedding, var_name_to_vocab_info={"e": long})
    short = _words(folder, buckets=0)
    with pytest.raises(ValueError, match="has 4 places from 0 on for 3 words"):
        _values(path, _embedding, var_name_to_vocab_info={"e": short})


def test_names_of_a_checkpoint_with_an_object_graph(tmp_path):
    with tf.Graph().as_default(), v1.Session() as session:
        variable = v1.get_variable("w", initializer=[1.0, 2.0])
        session.run(variable.initializer)
        tf.train.Checkpoint(inner=tf.train.Checkpoint(v=variable)).save(
            str(tmp_path / "c"), session=session
        )

    def build():
        v1.get_variable("w", initializer=[0.0, 0.0])

    assert _values(str(tmp_path), build) == {"w:0": [1.0, 2.0]}
    with pytest.raises(ValueError, match=r"variables were missing: \['x'\]"):
        _values(str(tmp_path), lambda: v1.get_variable("x", initializer=0.0))
