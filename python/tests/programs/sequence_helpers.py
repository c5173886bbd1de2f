"""Windows, pairs of words and Tokenizer by many calls."""

import random

import numpy as np
import tensorflow as tf

U = tf.keras.utils
S = tf.keras.preprocessing.sequence


def t(name, f):
    try:
        print(name, f())
    except Exception as e:
        print(name, type(e).__name__, str(e)[:100])


d = np.arange(20)
y = d * 10


def ts(*a, **k):
    return [
        tf.nest.map_structure(lambda x: x.numpy().tolist(), b)
        for b in U.timeseries_dataset_from_array(*a, **k)
    ]


t("a", lambda: ts(d, None, 4))
t("b", lambda: ts(d, y, 4, batch_size=3))
t("c", lambda: ts(d, y, 3, sequence_stride=2, sampling_rate=2, batch_size=4))
t("d", lambda: ts(d, y[4:], 4, batch_size=5))
t("e", lambda: ts(d, y, 4, start_index=3, end_index=12))
t("f", lambda: ts(d, None, 4, batch_size=None, end_index=8))
t("g", lambda: ts(d, y, 4, shuffle=True, seed=3, batch_size=4))
t(
    "h",
    lambda: ts(
        d.reshape(10, 2).astype("f"),
        d[:10],
        3,
        batch_size=2,
        start_index=1,
        end_index=9,
    ),
)
t("i", lambda: ts(d, y, 4, end_index=0))
t("j", lambda: ts(d, y, 4, start_index=-1))
t("k", lambda: ts(d, y, 4, sampling_rate=0))
t("l", lambda: ts(d, y, 30))
t("n", lambda: ts(d, y, 4, sequence_stride=20))
t("o", lambda: ts(d, y, 4, shuffle=True, seed=3, batch_size=None))
t("p", lambda: ts(d, y, 4, start_index=5, end_index=5))
t("q", lambda: ts(d, y, 4, end_index=20))
t("q2", lambda: ts(d, y, 4, end_index=21))
t("r", lambda: ts(d, y, 4, start_index=19))
t("samp", lambda: S.make_sampling_table(8).round(6).tolist())
t("samp2", lambda: S.make_sampling_table(5, 1e-3).round(6).tolist())


def sk(*a, **k):
    random.seed(5)
    return S.skipgrams(*a, **k)


t("sk", lambda: sk([1, 2, 3, 0, 4], 10, seed=3))
t(
    "sk0",
    lambda: sk([1, 2, 3, 0, 4], 10, window_size=1, negative_samples=0.0, shuffle=False),
)
t("skc", lambda: sk([1, 2, 3, 4], 10, categorical=True, seed=1, window_size=1))
t(
    "skt",
    lambda: sk(
        [1, 2, 3, 4, 5, 6], 10, sampling_table=S.make_sampling_table(10, 1e-1), seed=1
    ),
)


def tg(**k):
    g = S.TimeseriesGenerator(d, y, **k)
    return len(g), [(a.tolist(), b.tolist()) for a, b in (g[i] for i in range(len(g)))]


t("tg", lambda: tg(length=4, batch_size=5))
t(
    "tg2",
    lambda: tg(
        length=4,
        batch_size=3,
        sampling_rate=2,
        stride=2,
        reverse=True,
        start_index=1,
        end_index=15,
    ),
)
t("tg3", lambda: tg(length=25))
t("tgs", lambda: (np.random.seed(1), tg(length=4, batch_size=5, shuffle=True))[1])
t("tgj", lambda: S.TimeseriesGenerator(d, y, 4).to_json())
T = tf.keras.preprocessing.text
txt = ["The cat sat on the mat, the end.", "A dog! A cat?"]
t("words", lambda: T.text_to_word_sequence(txt[0]))
t("words2", lambda: T.text_to_word_sequence("a-B c", lower=False, split="-"))
t("oh", lambda: T.one_hot("a b a", 50) == T.one_hot("a b a", 50))
t("hash", lambda: T.hashing_trick(txt[0], 20, hash_function="md5"))


def tok(**k):
    x = T.Tokenizer(**k)
    x.fit_on_texts(txt)
    return x


t(
    "t1",
    lambda: (
        lambda x: (
            x.word_index,
            dict(x.word_counts),
            x.texts_to_sequences(txt + ["a new cat"]),
            x.document_count,
            sorted(x.word_docs.items()),
            sorted(x.index_docs.items()),
        )
    )(tok()),
)
t(
    "t2",
    lambda: (
        lambda x: (
            x.texts_to_sequences(["the new cat sat"]),
            x.sequences_to_texts([[1, 2, 3, 9]]),
        )
    )(tok(num_words=4, oov_token="<o>")),
)
t("t3", lambda: tok(char_level=True).texts_to_sequences(["cat"]))
for m in ("binary", "count", "freq", "tfidf"):
    t("m " + m, lambda: tok().texts_to_matrix(txt, m).round(4).tolist())
    t("mn " + m, lambda: tok(num_words=4).texts_to_matrix(txt, m).round(4).tolist())
t(
    "js2",
    lambda: T.tokenizer_from_json(tok(num_words=5).to_json()).texts_to_sequences(txt),
)
t("ana", lambda: tok(analyzer=lambda s: s.split()).word_index)
t(
    "list",
    lambda: (
        lambda x: (
            x.fit_on_texts([["A", "b"], ["b"]]),
            x.word_index,
            x.texts_to_sequences([["a", "B"]]),
        )
    )(T.Tokenizer()),
)
t("bad", lambda: T.Tokenizer(foo=1))
t("nofit", lambda: T.Tokenizer().texts_to_matrix(["a"]))
t("freq0", lambda: tok().sequences_to_matrix([[]], "freq").tolist())
t(
    "seqfit",
    lambda: (
        lambda x: (
            x.fit_on_sequences([[1, 2], [2]]),
            dict(x.index_docs),
            x.sequences_to_matrix([[1, 2]], "tfidf").tolist() if x.num_words else 0,
        )
    )(T.Tokenizer(num_words=4)),
)
