"""TensorFlow 1's way: skip-grams with noise-contrastive loss, as in word2vec_basic.py."""

import collections
import random

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
words = (
    "anarchism originated as a term of abuse first used against early working "
    "class radicals including the diggers of the english revolution and the sans "
    "culottes of the french revolution whilst the term is still used in a way "
) * 4
words = words.split()
vocabulary_size = 24


def build_dataset(words, n_words):
    count = [["UNK", -1]]
    count.extend(collections.Counter(words).most_common(n_words - 1))
    dictionary = {word: i for i, (word, _) in enumerate(count)}
    data = [dictionary.get(word, 0) for word in words]
    count[0][1] = data.count(0)
    return data, count, dictionary, {i: w for w, i in dictionary.items()}


data, count, dictionary, reverse_dictionary = build_dataset(words, vocabulary_size)
print("Most common words (+UNK)", count[:3], data[:6])
data_index = 0
random.seed(3)


def generate_batch(batch_size, num_skips, skip_window):
    global data_index
    batch = np.ndarray(shape=(batch_size), dtype=np.int32)
    labels = np.ndarray(shape=(batch_size, 1), dtype=np.int32)
    span = 2 * skip_window + 1
    for i in range(batch_size // num_skips):
        window = [data[(data_index + k) % len(data)] for k in range(span)]
        targets = [w for w in range(span) if w != skip_window]
        for j, target in enumerate(random.sample(targets, num_skips)):
            batch[i * num_skips + j] = window[skip_window]
            labels[i * num_skips + j, 0] = window[target]
        data_index = (data_index + 1) % len(data)
    return batch, labels


batch_size, embedding_size, num_sampled = 16, 8, 6
valid_examples = np.array([1, 2, 5])
graph = tf.Graph()
with graph.as_default():
    tf.set_random_seed(11)
    with tf.name_scope("inputs"):
        train_inputs = tf.placeholder(tf.int32, shape=[batch_size])
        train_labels = tf.placeholder(tf.int32, shape=[batch_size, 1])
        valid_dataset = tf.constant(valid_examples, dtype=tf.int32)
    with tf.device("/cpu:0"):
        with tf.name_scope("embeddings"):
            embeddings = tf.Variable(
                tf.random_uniform([vocabulary_size, embedding_size], -1.0, 1.0)
            )
            embed = tf.nn.embedding_lookup(embeddings, train_inputs)
        with tf.name_scope("weights"):
            nce_weights = tf.Variable(
                tf.truncated_normal(
                    [vocabulary_size, embedding_size],
                    stddev=1.0 / np.sqrt(embedding_size),
                )
            )
        with tf.name_scope("biases"):
            nce_biases = tf.Variable(tf.zeros([vocabulary_size]))
    with tf.name_scope("loss"):
        loss = tf.reduce_mean(
            tf.nn.nce_loss(
                weights=nce_weights,
                biases=nce_biases,
                labels=train_labels,
                inputs=embed,
                num_sampled=num_sampled,
                num_classes=vocabulary_size,
            )
        )
        sampled = tf.nn.sampled_softmax_loss(
            nce_weights, nce_biases, train_labels, embed, 4, vocabulary_size, seed=5
        )
        sampled = tf.reduce_mean(sampled)
    tf.summary.scalar("loss", loss)
    with tf.name_scope("optimizer"):
        optimizer = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
        softmax_step = tf.train.AdagradOptimizer(0.5).minimize(sampled)
    norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keepdims=True))
    normalized_embeddings = embeddings / norm
    valid_embeddings = tf.nn.embedding_lookup(normalized_embeddings, valid_dataset)
    similarity = tf.matmul(valid_embeddings, normalized_embeddings, transpose_b=True)
    merged = tf.summary.merge_all()
    init = tf.global_variables_initializer()

with tf.Session(graph=graph) as session:
    init.run()
    print(np.round(session.run(normalized_embeddings[:2]), 4))
    for step in range(31):
        inputs, labels = generate_batch(batch_size, 2, 1)
        feed_dict = {train_inputs: inputs, train_labels: labels}
        _, summary, loss_val = session.run([optimizer, merged, loss], feed_dict)
        if step % 10 == 0:
            print("Loss at step", step, ": %.3f" % loss_val)
            value = tf.Summary.FromString(summary).value[0]
            print(value.tag, abs(value.simple_value - loss_val) < 1e-5)
    _, value = session.run([softmax_step, sampled], feed_dict)
    print("sampled %.3f" % value)
    sim = similarity.eval()
    for i, word in enumerate(valid_examples):
        nearest = (-sim[i, :]).argsort()[1:3]
        print(reverse_dictionary[word], np.round(sim[i, nearest], 2))
