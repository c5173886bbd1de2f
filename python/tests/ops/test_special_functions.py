"""Special functions against values of 40 digits, over the joints of their fits.

EXPECTED was made by mpmath with mp.dps = 40 at POINTS, each printed by repr(float(.)).
"""

import headrace as tf
import numpy as np
import pytest

POINTS = [2.0**-20, 0.25, 0.8125, 1.59375, 1.609375, 1.9921875, 2.5, 3.984375]
POINTS += [5.75, 6.25, 7.984375, 8.5, 13.0, 40.0]
EXPECTED = {
    "Dawsn": [
        9.536743164056718e-07,
        0.23983916356289822,
        0.5338584424352436,
        0.4016905242279341,
        0.3973210051914367,
        0.3029514563585746,
        0.2230837221674355,
        0.12989390221280642,
        0.08833628281447531,
        0.08106609406101173,
        0.06312549919253606,
        0.05923937177997214,
        0.03857635523800775,
        0.012503909917843973,
    ],
    "Expint": [
        -13.285726992622829,
        -0.5425432646619137,
        1.382117748053901,
        3.585994772377915,
        3.634392863895019,
        4.925427082975198,
        7.0737658945786,
        19.41884469309149,
        70.81145070124873,
        104.68406707017327,
        434.59733161958314,
        674.2638015183371,
        37197.688490689034,
        6039718263611242.0,
    ],
    "Spence": [
        1.6449198924341066,
        0.9784693929303061,
        0.19710940301340374,
        -0.5232061393063044,
        -0.5354394149197252,
        -0.8170459158353884,
        -1.1473806603755707,
        -1.932146490580891,
        -2.658466980308455,
        -2.837693898144259,
        -3.395517430252681,
        -3.5457171042558464,
        -4.650655935392819,
        -8.330297527721036,
    ],
    "FresnelCos": [
        9.5367431640625e-07,
        0.2497591503565432,
        0.7293742592245207,
        0.3695204702741177,
        0.3596585566118246,
        0.4804440339779591,
        0.45741300964177706,
        0.48290094583672905,
        0.5551285733184721,
        0.4492850934585048,
        0.4845751123669346,
        0.5141775985837335,
        0.5244851153043584,
        0.49999841685744545,
    ],
    "FresnelSin": [
        4.541495440115407e-19,
        0.008175600235777757,
        0.2599994842170212,
        0.6436401091341488,
        0.6315257554214195,
        0.34360713797162445,
        0.6191817558195929,
        0.422042838689203,
        0.5048948894811567,
        0.49542162367354675,
        0.4632410456773466,
        0.4653412489810745,
        0.4999538844819126,
        0.4920422537902731,
    ],
    "BesselI0": [
        1.0000000000002274,
        1.015686141223608,
        1.171974701999484,
        1.7432214761937885,
        1.76019796311277,
        2.267203649290308,
        3.289839144050123,
        11.150506937777335,
        53.54894309757917,
        84.49957347949471,
        421.3619619166182,
        683.1619269901156,
        49444.489582217575,
        1.48947747934199e16,
    ],
    "BesselI0e": [
        0.9999990463263657,
        0.7910171621397194,
        0.5200606214953463,
        0.35415692417388406,
        0.35206174098692206,
        0.30923916631641085,
        0.27004644161220276,
        0.2074447918977414,
        0.17043454776436387,
        0.16312255113296784,
        0.14357714840762836,
        0.13900184305484758,
        0.11176083381585476,
        0.06327827987523534,
    ],
    "BesselI1": [
        4.768371582031792e-07,
        0.12597910894546793,
        0.4407084630395244,
        1.0781271414396485,
        1.0948973607523795,
        1.5790789538889398,
        2.5167162452886984,
        9.621986054315807,
        48.63800040963193,
        77.40811795864835,
        394.0170463895526,
        641.6199025400667,
        47502.98735899586,
        1.4707396163259352e16,
    ],
    "BesselI1e": [
        4.7683670345604516e-07,
        0.09811262869736824,
        0.19556319500375596,
        0.21903481427634816,
        0.21899324911545356,
        0.21538120733056348,
        0.20658464953126657,
        0.17900808508697164,
        0.1548040936844058,
        0.14943282149087514,
        0.1342594943484789,
        0.13054935509459586,
        0.10737239924698763,
        0.062482229074442064,
    ],
    "BesselK0": [
        13.978875126860725,
        1.5415067512483027,
        0.5547017892688328,
        0.18946534462083675,
        0.18571360333301187,
        0.11499220616856469,
        0.06234755320036619,
        0.011356484741472037,
        0.0016303992413962054,
        0.0009499365977602127,
        0.00014891871361995973,
        8.625756634932507e-05,
        7.784543861420496e-07,
        8.392861100099567e-19,
    ],
    "BesselK0e": [
        13.978888458161261,
        1.9793338485985688,
        1.2500397786467252,
        0.9325811107827979,
        0.9285096000284889,
        0.84307157004348,
        0.7595486903280996,
        0.6104301811586001,
        0.5122562141835687,
        0.4920793402616024,
        0.4370380804531382,
        0.4239359993336981,
        0.3443986454973262,
        0.19755558495729816,
    ],
    "BesselK1": [
        1048575.999993096,
        3.7470259744407115,
        0.841577430035451,
        0.24275931416254093,
        0.23748572485369965,
        0.14131020466201782,
        0.07389081634774707,
        0.012708700612370161,
        0.0017668637144706957,
        0.0010232855886346353,
        0.0001579831895594982,
        9.119724775006898e-05,
        8.078588412202347e-07,
        8.497131954861039e-19,
    ],
    "BesselK1e": [
        1048576.9999935727,
        4.811276588171025,
        1.896524014718379,
        1.194903222579496,
        1.1873539225932817,
        1.0360233973851747,
        0.900174423907878,
        0.6831140615871564,
        0.5551320770843822,
        0.5300750582110345,
        0.46363998338818063,
        0.4482133915630794,
        0.35740757020864,
        0.20000996725443349,
    ],
}


def run(name, x):
    return getattr(tf.raw_ops, name)(x=x).numpy()


def units(got, want, dtype):
    """The distance in units of the last place of `dtype`."""
    want = np.asarray(want)
    return np.abs(got.astype("float64") - want) / np.spacing(
        np.abs(want).astype(dtype)
    ).astype("float64")


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("dtype, most", [("float32", 0.51), ("float64", 4)])
def test_values_are_within_units_of_the_last_place(name, dtype, most):
    # Many numbers and few go different ways: whole vectors and what is left.
    for times in (1, 5):
        x = np.tile(np.array(POINTS, dtype), times)
        want = np.tile(EXPECTED[name], times)
        ok = np.abs(want) < np.finfo(dtype).max
        assert units(run(name, x), want, dtype)[ok].max() <= most


@pytest.mark.parametrize("name", EXPECTED)
def test_half_goes_through_float(name):
    x = np.array(POINTS, "float16")
    want = run(name, x.astype("float32"))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(run(name, x), want.astype("float16"))


@pytest.mark.parametrize(
    "name, odd",
    [("Dawsn", True), ("FresnelCos", True), ("FresnelSin", True)]
    + [("BesselI0", False), ("BesselI0e", False)]
    + [("BesselI1", True), ("BesselI1e", True)],
)
def test_functions_of_negative_numbers(name, odd):
    x = np.array(POINTS)
    np.testing.assert_array_equal(run(name, -x), run(name, x) * (-1 if odd else 1))


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    "name, x, want",
    [
        ("Dawsn", [0.0, INF, -INF, NAN], [0.0, 0.0, -0.0, NAN]),
        ("Expint", [0.0, -1.0, INF, NAN], [-INF, NAN, NAN, NAN]),
        ("Spence", [0.0, 1.0, -1.0, NAN], [np.pi**2 / 6, 0.0, NAN, NAN]),
        ("FresnelCos", [0.0, INF, -INF, NAN], [0.0, 0.5, -0.5, NAN]),
        ("FresnelSin", [0.0, 1e30, -INF, NAN], [0.0, 0.5, -0.5, NAN]),
        ("BesselI0e", [0.0, INF, NAN], [1.0, 0.0, NAN]),
        ("BesselI1e", [0.0, INF, NAN], [0.0, 0.0, NAN]),
        ("BesselI0", [0.0, NAN], [1.0, NAN]),
        ("BesselK0", [0.0, -1.0, INF, NAN], [INF, INF, 0.0, NAN]),
        ("BesselK1e", [0.0, -1.0, INF, NAN], [INF, INF, 0.0, NAN]),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ends_of_the_range(name, x, want, dtype):
    np.testing.assert_array_equal(
        run(name, np.array(x, dtype)), np.array(want).astype(dtype)
    )


@pytest.mark.parametrize("dtype, most", [("float32", 2), ("float64", 4)])
@pytest.mark.parametrize(
    "name, low, high", [("Asin", -1, 1), ("Acos", -1, 1), ("Atan", -30, 30)]
)
def test_inverse_angles(name, low, high, dtype, most):
    x = np.random.RandomState(0).uniform(low, high, 20011).astype(dtype)
    x[:6] = [0.5, -0.5, 1.0, -1.0, 1e-30, 0.0]
    exact = {"Asin": np.arcsin, "Acos": np.arccos, "Atan": np.arctan}[name]
    want = exact(x.astype("float64"))
    got = run(name, x)
    assert np.array_equal(np.signbit(got), np.signbit(want))
    assert units(got[:5], want[:5], dtype).max() <= most
    assert units(got[6:], want[6:], dtype).max() <= most


def test_inverse_angles_beyond_their_range():
    x = np.array([INF, -INF, NAN, 3e38, 1.5], "float32")
    half = np.float32(np.pi / 2)
    np.testing.assert_array_equal(run("Atan", x)[:4], [half, -half, NAN, half])
    assert np.isnan(run("Asin", x)).all()
    assert np.isnan(run("Acos", x)).all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_exp_of_complex_numbers(dtype):
    random = np.random.RandomState(1)
    z = (random.randn(1001) * 20 + 1j * random.randn(1001) * 300).astype(dtype)
    z[5:8] = [1e4j, -3 + 1e6j, 3 + 0j]
    want = np.exp(z.astype("complex128"))
    rtol = 1e-6 if dtype == "complex64" else 1e-13
    assert (np.abs(run("Exp", z) - want) <= rtol * np.abs(want)).all()
    # Where size or angle has no number, as the C library has it.
    odd = np.array([complex(INF, 0), complex(-INF, INF), complex(95, 1.5)], dtype)
    got = run("Exp", odd)
    assert got[0] == complex(INF, 0)
    assert got[1] == 0
    with np.errstate(over="ignore"):  # its imaginary part
        want = np.exp(odd[2:])
    np.testing.assert_allclose(got[2:].real, want.real, rtol=1e-5)
