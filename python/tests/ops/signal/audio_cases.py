"""Cases of test_audio.py (recorded.py writes their values)."""

import struct

import numpy as np


def wav(
    bits=16,
    channels=2,
    rate=8000,
    data=b"\x01\x00\x02\x00\xff\x7f\x00\x80",
    kind=1,
    size=16,
    extra=b"",
    chunks=b"",
    data_size=None,
    bytes_per_second=None,
    block=None,
):
    """A sound file, right or wrong."""
    block = channels * bits // 8 if block is None else block
    if bytes_per_second is None:
        bytes_per_second = rate * block
    head = struct.pack(
        "<IHHIIHH", size, kind, channels, rate, bytes_per_second, block, bits
    )
    data_size = len(data) if data_size is None else data_size
    body = b"WAVEfmt " + head + extra + chunks + b"data"
    body += struct.pack("<I", data_size) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


FILES = {
    "plain": {},
    "eight_bits": {"bits": 8},
    "floats": {"kind": 3},
    "long_format": {"size": 18, "extra": b"\0\0"},
    "longer_format": {"size": 40, "extra": b"\0" * 24},
    "odd_format": {"size": 17},
    "list_chunk": {"chunks": b"LIST\x04\0\0\0abcd"},
    "odd_chunk": {"chunks": b"LIST\x03\0\0\0abc"},
    "data_too_long": {"data_size": 100},
    "data_too_short": {"data_size": 4},
    "data_odd": {"data_size": 3},
    "data_empty": {"data": b""},
    "no_channels": {"channels": 0},
    "three_channels": {"channels": 3},
    "no_rate": {"rate": 0},
    "wrong_speed": {"bytes_per_second": 1},
    "wrong_block": {"block": 3},
    "huge_chunk": {"chunks": b"LIST\xff\xff\xff\xffabcd"},
    "huge_data": {"data_size": 2**31},
    "rest": {"data": b"abcde"},
}


def _file_case(keys):
    return lambda tf: tf.audio.decode_wav(wav(**keys))


for _name, _keys in FILES.items():
    globals()["case_file_" + _name] = _file_case(_keys)


def case_decode_as_wished(tf):
    return [
        tf.audio.decode_wav(wav(), desired_channels=c, desired_samples=s)
        for c in (-1, 0, 1, 3)
        for s in (-1, 0, 1, 4)
    ]


def case_decode_negative_channels(tf):
    return tf.audio.decode_wav(wav(), desired_channels=-2)


def case_decode_vector(tf):
    return tf.audio.decode_wav([wav()])


def case_encode(tf):
    x = np.array([[0, 0.5], [-0.5, 1], [-1, 2], [3, -3], [1e-5, 0.99999]], "f4")
    odd = np.array([np.nan, np.inf, -np.inf, 0.3, -0.7, 2e-5, 4e-5], "f4")
    return [
        tf.audio.encode_wav(x, 8000),
        tf.audio.encode_wav(odd[:, None], 44100),
        tf.audio.encode_wav(np.zeros((0, 2), "f4"), 1),
    ]


def case_encode_no_channels(tf):
    return tf.audio.encode_wav(np.zeros((2, 0), "f4"), 1)


def case_encode_vector(tf):
    return tf.audio.encode_wav(np.zeros(2, "f4"), 1)


def case_encode_rate(tf):
    return tf.audio.encode_wav(np.zeros((2, 1), "f4"), -1)


def case_encode_channels(tf):
    return tf.audio.encode_wav(np.zeros((2, 70000), "f4"), 1)


def _noise(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("f4")


def case_spectrogram(tf):
    x = _noise(40, 2)
    return [
        tf.raw_ops.AudioSpectrogram(
            input=x, window_size=w, stride=s, magnitude_squared=w % 2 == 0
        )
        for w, s in ((10, 4), (16, 5), (33, 1), (2, 1), (3, 7), (41, 1))
    ]


def case_spectrogram_window(tf):
    return tf.raw_ops.AudioSpectrogram(input=_noise(4, 1), window_size=1, stride=1)


def case_spectrogram_stride(tf):
    return tf.raw_ops.AudioSpectrogram(input=_noise(4, 1), window_size=3, stride=0)


def _mfcc(tf, **keys):
    power = _noise(2, 3, 33) ** 2 * 100
    rate = keys.pop("sample_rate", 8000)
    return tf.raw_ops.Mfcc(spectrogram=power, sample_rate=rate, **keys)


def case_mfcc(tf):
    return [
        _mfcc(tf),
        _mfcc(tf, sample_rate=16000),
        _mfcc(tf, dct_coefficient_count=40),
        _mfcc(tf, filterbank_channel_count=80),
        _mfcc(tf, filterbank_channel_count=17, lower_frequency_limit=300.0),
        _mfcc(tf, upper_frequency_limit=5000.0),
        _mfcc(tf, upper_frequency_limit=2000.0),
    ]


def case_mfcc_rate(tf):
    return _mfcc(tf, sample_rate=0)


def case_mfcc_limits(tf):
    return _mfcc(tf, lower_frequency_limit=5000.0)


def case_mfcc_coefficients(tf):
    return _mfcc(tf, dct_coefficient_count=41)
