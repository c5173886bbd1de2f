"""Reinforcement learning of a walk on a line, by REINFORCE."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
policy = tf.keras.Sequential(
    [
        tf.keras.layers.Input((5,)),
        tf.keras.layers.Dense(8, activation="tanh"),
        tf.keras.layers.Dense(2),
    ]
)
optimizer = tf.keras.optimizers.Adam(0.05)
rng = np.random.default_rng(1)


def discounted(rewards, rate=0.9):
    ta = tf.TensorArray(tf.float32, size=len(rewards))
    total = tf.constant(0.0)
    for i in reversed(range(len(rewards))):
        total = rewards[i] + rate * total
        ta = ta.write(i, total)
    return ta.stack()


for episode in range(12):
    place, states, actions, rewards = 2, [], [], []
    while 0 < place < 4 and len(states) < 20:
        state = np.eye(5, dtype="float32")[place]
        probability = tf.nn.softmax(policy(state[None]))[0].numpy()
        action = int(rng.random() < probability[1])
        place += 1 if action else -1
        states.append(state)
        actions.append(action)
        rewards.append(1.0 if place == 4 else -0.1)
    returns = discounted(rewards)
    with tf.GradientTape() as tape:
        logits = policy(np.array(states))
        log = tf.nn.sparse_softmax_cross_entropy_with_logits(actions, logits)
        loss = tf.reduce_mean(log * returns)
    optimizer.apply_gradients(
        zip(tape.gradient(loss, policy.trainable_variables), policy.trainable_variables)
    )
    if episode % 3 == 0:
        print(episode, len(states), "%.3f" % sum(rewards), "%.3f" % loss)
print(np.round(tf.nn.softmax(policy(np.eye(5, dtype="float32")[1:4])).numpy()[:, 1], 2))
