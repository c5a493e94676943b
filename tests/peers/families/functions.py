"""exp, erf, tanh and what is built on them, as f32 polynomials: no f64 stands behind them.

Alone it measures them against math.erf and math.tanh:

    functions.py
"""
import math
import sys

import numpy as np

F = np.float32
CLIP = 3.504  # 1 - erf(3.504) is 12u, which rounding makes 11u


def poly(x, *coefficients):
    """Horner, the highest power first."""
    y = np.full_like(x, F(coefficients[0]))
    for c in coefficients[1:]:
        y = y * x + F(c)
    return y


def exp_cephes(x):
    """2^n·exp(r), n·ln 2 taken off in two parts."""
    x = np.clip(x, F(-103.9), F(88.7))
    n = np.rint(x * F(1.44269504088896341))
    r = (x - n * F(0.693359375)) + n * F(2.12194440e-4)
    y = poly(r, 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2,
             1.6666665459e-1, 5.0000001201e-1)
    return np.ldexp((y * (r * r) + r) + F(1), n.astype(np.int32))


def exp_numpy(x):
    return np.exp(x)


EXPS = {"cephes": exp_cephes, "numpy": exp_numpy}


def erf_rational(x):
    """x·p(x²)/q(x²), as Eigen and XLA have had it."""
    x = np.clip(x, F(-4), F(4))
    z = x * x
    p = poly(z, -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06,
             -5.69250639462346e-05, -7.34990630326855e-04, -2.95459980854025e-03,
             -1.60960333262415e-02)
    q = poly(z, -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03,
             -7.37332916720468e-03, -1.42647390514189e-02)
    return x * p / q


def erf_clipped(x):
    """The same, which takes erf to be constant early: off by 11u where |erf| is near 1."""
    return erf_rational(np.clip(x, F(-CLIP), F(CLIP)))


ERFS = {"rational": erf_rational, "clipped": erf_clipped}


def tanh_rational(x):
    """x·p(x²)/q(x²), as Eigen and XLA have it."""
    y = np.clip(x, F(-7.90531110763549805), F(7.90531110763549805))
    z = y * y
    p = poly(z, -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11,
             5.12229709037114e-08, 1.48572235717979e-05, 6.37261928875436e-04,
             4.89352455891786e-03)
    q = poly(z, 1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03,
             4.89352518554385e-03)
    return np.where(np.abs(x) < F(0.0004), x, y * p / q)


def tanh_exp(x):
    """By exp where it does not cancel, else by a polynomial, as Cephes has it."""
    size = np.abs(x)
    large = F(1) - F(2) / (exp_cephes(size + size) + F(1))
    z = x * x
    small = poly(z, -5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1,
                 -3.33332819422e-1) * z * x + x
    return np.where(size < F(0.625), small, np.copysign(large, x))


TANHS = {"rational": tanh_rational, "exp": tanh_exp}


class Functions:
    """A run's choice of them."""

    def __init__(self, exp="numpy", erf="rational", tanh="rational", rsqrt="root"):
        self.exp, self.erf, self.tanh = EXPS[exp], ERFS[erf], TANHS[tanh]
        self.rsqrt = {"root": lambda x: F(1) / np.sqrt(x),
                      "quotient": lambda x: np.sqrt(F(1) / x)}[rsqrt]


def ulps(f, exact, points):
    """The largest error in units of 2u|f|, and the largest in u."""
    y = f(points).astype(np.float64)
    right = np.array([exact(float(x)) for x in points])
    error = np.abs(y - right)
    return (error / np.maximum(np.abs(right) * 2.0**-23, 2.0**-149)).max(), error.max() * 2.0**24


# What each is good for, in ulp, as a trace's `ulp` counts them.
CLAIMED = {"erf rational": 5, "erf clipped": 5.5, "tanh rational": 5, "tanh exp": 5,
           "exp cephes": 2, "exp numpy": 3}


def main():
    """0 if each is as good as it claims."""
    points = np.concatenate([np.linspace(-6, 6, 60001), np.geomspace(1e-6, 6, 20000)]).astype(F)
    held = True
    for table, exact in ((ERFS, math.erf), (TANHS, math.tanh), (EXPS, math.exp)):
        for name, f in table.items():
            name = f"{exact.__name__} {name}"
            off, absolute = ulps(f, exact, points)
            held = held and off <= CLAIMED[name]
            print(f"{name}: {off:.2f} ulp of {CLAIMED[name]}" + (
                "" if table is EXPS else f", {absolute:.1f}u"))
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
