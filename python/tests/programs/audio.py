"""Sounds: frames, spectra, cepstra, and a gradient through all of it."""

import numpy as np
import tensorflow as tf

t = np.arange(2048) / 8000
wave = tf.constant(
    0.5 * np.sin(2 * np.pi * 440 * t) + 0.1 * np.sin(2 * np.pi * 1500 * t), tf.float32
)
spectrum = tf.abs(tf.signal.stft(wave, 256, 128))
print(spectrum.shape, int(tf.argmax(spectrum[3])), "%.3f" % tf.reduce_max(spectrum))
mel = tf.signal.linear_to_mel_weight_matrix(20, 129, 8000, 80.0, 4000.0)
log_mel = tf.math.log(tf.tensordot(spectrum, mel, 1) + 1e-6)
print(np.round(tf.signal.mfccs_from_log_mel_spectrograms(log_mel)[2, :5].numpy(), 2))
with tf.GradientTape() as tape:
    tape.watch(wave)
    power = tf.reduce_sum(tf.square(tf.abs(tf.signal.stft(wave, 64, 32))))
grad = tape.gradient(power, wave)
print(grad.shape, np.round(grad[1000:1004].numpy(), 2))
back = tf.signal.inverse_stft(
    tf.signal.stft(wave, 256, 128),
    256,
    128,
    window_fn=tf.signal.inverse_stft_window_fn(128),
)
print(back.shape, "%.4f" % tf.reduce_max(tf.abs(back[256:1700] - wave[256:1700])))
encoded = tf.audio.encode_wav(wave[:, None], 8000)
decoded, rate = tf.audio.decode_wav(encoded)
print(decoded.shape, rate.numpy(), "%.4f" % tf.reduce_max(tf.abs(decoded[:, 0] - wave)))
print(np.round(tf.signal.dct(wave[:8]).numpy(), 3))
print(np.round(tf.signal.overlap_and_add(tf.ones([3, 4]), 2).numpy(), 1))


@tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
def loudness(x):
    frames = tf.signal.frame(x, 100, 50, pad_end=True)
    return tf.sqrt(tf.reduce_mean(tf.square(frames), -1))


print(np.round(loudness(wave[:220]).numpy(), 3), loudness(wave[:60]).shape)
