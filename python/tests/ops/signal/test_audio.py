"""Sound files, spectrograms and what speech recognisers make of them."""

import audio_cases
import headrace as tf
import pytest
import recorded


@pytest.mark.parametrize("name", recorded.names(audio_cases))
def test_as_recorded(name):
    recorded.check(audio_cases, name, tf, rtol=1e-4, atol=1e-4)


def test_files_cut_anywhere():
    whole = audio_cases.wav(chunks=b"LIST\x04\0\0\0abcd", size=18, extra=b"\0\0")
    for n in range(len(whole)):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.audio.decode_wav(whole[:n])


def test_files_with_a_byte_changed():
    whole = audio_cases.wav(chunks=b"LIST\x04\0\0\0abcd")
    for n in range(len(whole)):
        for byte in (0, 1, 0x7F, 0x80, 0xFF):
            try:
                tf.audio.decode_wav(whole[:n] + bytes([byte]) + whole[n + 1 :])
            except tf.errors.InvalidArgumentError:
                pass


def test_there_and_back():
    x = tf.random.uniform([100, 3], -1, 1)
    back, rate = tf.audio.decode_wav(tf.audio.encode_wav(x, 22050))
    assert rate == 22050
    assert tf.reduce_max(tf.abs(back - x)) <= 2**-16 + 1e-7


def test_sizes_that_are_too_large():
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.raw_ops.AudioSpectrogram(input=tf.zeros([4, 1]), window_size=2**31, stride=1)
    with pytest.raises(tf.errors.ResourceExhaustedError):
        tf.raw_ops.Mfcc(
            spectrogram=tf.ones([0, 1, 3]),
            sample_rate=8000,
            filterbank_channel_count=2**20,
            dct_coefficient_count=2**20,
        )
